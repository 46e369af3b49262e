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


def _y4m(path: Path, luma: Picture, space: str = "420", pixel_format: str = "420") -> str:
    return write(path, y4m_bytes(luma, space, pixel_format))


def _score(reference: str, distorted: str, **pictures: Any) -> ScoreReport:
    options = PictureOptions(**pictures)
    return score_files(reference, distorted, features="float_ssim=scale=1", backend="cpu", pictures=options)


def _plain(folder: Path) -> list[float]:
    paths = _y4m(folder / "plain-ref.y4m", CONTENT), _y4m(folder / "plain-dis.y4m", CODED)
    scores: list[float] = _score(*paths).column("float_ssim").tolist()
    return scores


@pytest.mark.parametrize("crop", ["auto", "64x40+0+8"])
def test_a_letterboxed_master_against_a_cropped_encode(tmp_path: Path, crop: str) -> None:
    paths = _y4m(tmp_path / "ref.y4m", _boxed(CONTENT, 8, 8)), _y4m(tmp_path / "dis.y4m", CODED)
    report = _score(*paths, crop_reference=crop)
    assert report.column("float_ssim").tolist() == _plain(tmp_path)
    assert report.scoring is not None
    assert (report.scoring.reference.cropped_to, report.scoring.distorted.cropped_to) == ("64x40+0+8", None)
    assert report.scoring.cropped_to is None, "which --crop says of both"
    found = " (black bars off, found in 6 frames)" if crop == "auto" else ""
    assert report.notes == [f"{paths[0]}: cropped to 64x40+0+8{found}"]


def test_the_cure_for_unlike_shapes_can_be_followed(tmp_path: Path) -> None:
    paths = _y4m(tmp_path / "ref.y4m", _boxed(CONTENT, 8, 8)), _y4m(tmp_path / "dis.y4m", CODED)
    with pytest.raises(InputError) as raised:
        _score(*paths)
    for crop in ("auto", "64x40+0+8"):
        assert f"`crop_reference={crop}` " in str(raised.value)
        assert _score(*paths, crop_reference=crop).column("float_ssim").tolist() == _plain(tmp_path)
    with pytest.raises(InputError, match="`crop_reference` and `crop_distorted` crop one clip alone"):
        _score(*paths, crop="64x40+0+8")
    with pytest.raises(InputError, match=r"does not lie within .*ref\.y4m, which is 64x56$"):
        _score(*paths, crop_reference="64x40+0+18")


def test_both_have_bars_of_their_own(tmp_path: Path) -> None:
    paths = _y4m(tmp_path / "ref.y4m", _boxed(CONTENT, 8, 8)), _y4m(tmp_path / "dis.y4m", _boxed(CODED, 4, 2, 6, 10))
    report = _score(*paths, crop_reference="auto", crop_distorted="auto")
    assert report.column("float_ssim").tolist() == _plain(tmp_path)


def test_cropped_before_it_is_scaled(tmp_path: Path) -> None:
    large = CODED.repeat(2, axis=1).repeat(2, axis=2)
    paths = _y4m(tmp_path / "ref.y4m", _boxed(CONTENT, 8, 8)), _y4m(tmp_path / "dis.y4m", large)
    report = _score(*paths, crop_reference="auto", scale="distorted")
    assert (report.width, report.height) == (128, 80)
    assert not [warning for warning in report.warnings if "stretched" in warning]


def test_both_are_cropped_once_more(tmp_path: Path) -> None:
    paths = _y4m(tmp_path / "ref.y4m", _boxed(CONTENT, 8, 8)), _y4m(tmp_path / "dis.y4m", CODED)
    report = _score(*paths, crop_reference="auto", crop="40x30+2+4")
    assert (report.width, report.height) == (40, 30)
    assert report.scoring is not None
    assert (report.scoring.reference.cropped_to, report.scoring.cropped_to) == ("64x40+0+8", "40x30+2+4")


def test_bars_of_both_behind_bars_of_one(tmp_path: Path) -> None:
    """--crop auto looks at the reference as it is after its own crop."""
    narrow = np.pad(CONTENT, ((0, 0), (0, 0), (8, 8)), constant_values=16)
    paths = _y4m(tmp_path / "ref.y4m", _boxed(narrow, 8, 8)), _y4m(tmp_path / "dis.y4m", narrow)
    report = _score(*paths, crop_reference="80x40+0+8", crop="auto")
    assert (report.width, report.height) == (64, 40)
    assert report.column("float_ssim").tolist() == [1.0] * 6


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
    paths = _y4m(tmp_path / "ref.y4m", _boxed(CONTENT, 8, 8)), _y4m(tmp_path / "dis.y4m", CODED)
    words = ("score", "-r", paths[0], "-d", paths[1], "--feature", "float_ssim=scale=1", "--backend", "cpu")
    refused = vkssim(*words)
    assert refused.exit_code == 2
    assert "--crop-reference" in refused.stderr
    assert "--scale" not in refused.stderr
    assert vkssim(*words, "--crop-reference", "auto").exit_code == 0
    stretched = vkssim(*words, "--scale", "reference")
    assert stretched.exit_code == 0
    assert "was stretched from 64x40 to 64x56" in stretched.stderr
