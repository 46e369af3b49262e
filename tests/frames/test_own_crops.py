"""Each clip cropped by itself: a letterboxed master against a cropped encode."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vkssim import PictureOptions, ScoreReport, score_files
from vkssim.errors import InputError, OptionError

from ..support.clips import write, y4m_bytes
from ..support.commands import vkssim
from ..support.pictures import Picture, clip

CONTENT = clip(6, 40, 64)
CODED = CONTENT // 16 * 16


def _boxed(luma: Picture, above: int, below: int, left: int = 0, right: int = 0) -> Picture:
    """A picture with black bars."""
    return np.pad(luma, ((0, 0), (above, below), (left, right)), constant_values=16)


BOXED = _boxed(CONTENT, 8, 8)
NARROW = _boxed(CONTENT, 0, 0, 8, 8)
LARGE = CODED.repeat(2, axis=1).repeat(2, axis=2)


def _y4m(path: Path, luma: Picture) -> str:
    return write(path, y4m_bytes(luma))


def _score(reference: str, distorted: str, **pictures: Any) -> ScoreReport:
    options = PictureOptions(**pictures)
    return score_files(reference, distorted, features="float_ssim=scale=1", backend="cpu", pictures=options)


def _plain(folder: Path) -> list[float]:
    paths = _y4m(folder / "plain-ref.y4m", CONTENT), _y4m(folder / "plain-dis.y4m", CODED)
    scores: list[float] = _score(*paths).column("float_ssim").tolist()
    return scores


@pytest.mark.parametrize("crop", ["auto", "64x40+0+8"])
def test_a_letterboxed_master_against_a_cropped_encode(tmp_path: Path, crop: str) -> None:
    paths = _y4m(tmp_path / "ref.y4m", BOXED), _y4m(tmp_path / "dis.y4m", CODED)
    report = _score(*paths, crop_reference=crop)
    assert report.column("float_ssim").tolist() == _plain(tmp_path)
    assert report.scoring is not None
    assert (report.scoring.reference.cropped_to, report.scoring.distorted.cropped_to) == ("64x40+0+8", None)
    assert report.scoring.cropped_to is None, "which --crop says of both"
    found = " (black bars off, found in 6 frames)" if crop == "auto" else ""
    assert report.notes == [f"{paths[0]}: cropped to 64x40+0+8{found}"]


@pytest.mark.parametrize(
    ("reference", "distorted", "options", "shown", "cropped_to"),
    [
        (BOXED, _boxed(CODED, 4, 2, 6, 10), {"crop_reference": "auto", "crop_distorted": "auto"}, (CONTENT, CODED), None),
        (BOXED, LARGE, {"crop_reference": "auto", "scale": "distorted"}, (CONTENT, LARGE), None),
        (
            BOXED,
            CODED,
            {"crop_reference": "auto", "crop": "40x30+2+4"},
            (CONTENT[:, 4:34, 2:42], CODED[:, 4:34, 2:42]),
            "40x30+2+4",
        ),
        (_boxed(NARROW, 8, 8), NARROW, {"crop_reference": "80x40+0+8", "crop": "auto"}, (CONTENT, CONTENT), "64x40+8+0"),
    ],
    ids=["bars of both", "before scaling", "both once more", "bars of the cropped reference"],
)
def test_crops(
    tmp_path: Path,
    reference: Picture,
    distorted: Picture,
    options: dict[str, str],
    shown: tuple[Picture, Picture],
    cropped_to: str | None,
) -> None:
    """The scores are those of the pictures that are left. `crop` looks at the reference after its own crop."""
    report = _score(_y4m(tmp_path / "ref.y4m", reference), _y4m(tmp_path / "dis.y4m", distorted), **options)
    paths = [_y4m(tmp_path / f"shown-{number}.y4m", luma) for number, luma in enumerate(shown)]
    expected = _score(*paths, scale=options.get("scale"))
    assert report.column("float_ssim").tolist() == expected.column("float_ssim").tolist()
    assert not any("stretched" in warning for warning in report.warnings)
    assert report.scoring is not None
    assert report.scoring.cropped_to == cropped_to


@pytest.mark.parametrize(
    "options",
    [{"crop": "all"}, {"crop_reference": "64:40"}, {"crop_distorted": "64:40"}, {"scale": "0.5x2"}, {"resampler": "x"}],
)
def test_options_that_are_none(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match="possible"):
        PictureOptions(**options)


def test_a_pipe_is_not_looked_at_twice(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="`crop_distorted=auto` reads the distorted clip twice"):
        _score(_y4m(tmp_path / "ref.y4m", CONTENT), "-", crop_distorted="auto")


def test_the_message_leads_to_the_cure(tmp_path: Path) -> None:
    """The option that the message names works; an earlier one stretched the picture."""
    paths = _y4m(tmp_path / "ref.y4m", BOXED), _y4m(tmp_path / "dis.y4m", CODED)
    words = ("score", "-r", paths[0], "-d", paths[1], "--feature", "float_ssim=scale=1", "--backend", "cpu")
    refused = vkssim(*words)
    assert refused.exit_code == 2
    assert "--crop-reference" in refused.stderr
    assert "--scale" not in refused.stderr
    assert vkssim(*words, "--crop-reference", "auto").exit_code == 0
    stretched = vkssim(*words, "--scale", "reference")
    assert stretched.exit_code == 0
    assert "was stretched from 64x40 to 64x56" in stretched.stderr
