"""Test the rectangle that containers declare as visible."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vkssim import score_files
from vkssim.frames.decode.boxes import stated_crop
from vkssim.frames.open import open_source
from vkssim.frames.options import RawDescription

from ..ladder.ladders import encode
from ..support.pictures import clip
from ..support.shown import with_clap, with_pixel_crop

LUMA = clip(4, 48, 64)
TINY: dict[str, Any] = {"features": "float_ssim=scale=1", "backend": "cpu"}


def _encode(path: Path) -> bytes:
    encode(path, LUMA, "mpeg4" if path.suffix in (".mp4", ".mov") else "ffv1")
    return path.read_bytes()


@pytest.mark.parametrize("ending", [".mp4", ".mov"])
def test_clean_aperture(tmp_path: Path, ending: str) -> None:
    whole = tmp_path / f"whole{ending}"
    cropped = tmp_path / f"cropped{ending}"
    cropped.write_bytes(with_clap(_encode(whole), 40, 1, 32, 1, 2, 1, -4, 2))
    assert stated_crop(str(whole), 64, 48) is None
    crop = stated_crop(str(cropped), 64, 48)
    assert crop is not None
    assert (crop.width, crop.height, crop.left, crop.top) == (40, 32, 14, 6)
    with open_source(str(whole), RawDescription()) as first, open_source(str(cropped), RawDescription()) as second:
        planes, shown = first.info.new_planes(1), second.info.new_planes(1)
        assert first.read([0], [planes]) == second.read([0], [shown]) == 1
        np.testing.assert_array_equal(shown[0], planes[0][6:38, 14:54])
    report = score_files(cropped, cropped, **TINY)
    assert (report.width, report.height) == (40, 32)
    assert "cropped to 40x32+14+6, as its container says" in report.notes[0]


def test_pixel_crop(tmp_path: Path) -> None:
    path = tmp_path / "clip.mkv"
    path.write_bytes(with_pixel_crop(_encode(path), left=4, right=8, top=2, bottom=6))
    crop = stated_crop(str(path), 64, 48)
    assert crop is not None
    assert (crop.width, crop.height, crop.left, crop.top) == (52, 40, 4, 2)
    with open_source(str(path), RawDescription()) as source:
        shown = source.info.new_planes(1)
        assert source.read([0], [shown]) == 1
        np.testing.assert_array_equal(shown[0], LUMA[0][2:42, 4:56])


@pytest.mark.parametrize("numbers", [(41, 2, 32, 1, 0, 1, 0, 1), (40, 0, 32, 1, 0, 1, 0, 1), (40, 1, 32, 1, 50, 1, 0, 1)])
def test_what_is_no_rectangle_of_samples_is_passed_over(tmp_path: Path, numbers: tuple[int, ...]) -> None:
    path = tmp_path / "clip.mp4"
    path.write_bytes(with_clap(_encode(path), *numbers))
    assert stated_crop(str(path), 64, 48) is None


@pytest.mark.parametrize("ending", [".mp4", ".mkv"])
def test_damage_is_no_crop_and_no_error(tmp_path: Path, ending: str) -> None:
    path, random = tmp_path / f"clip{ending}", np.random.default_rng(0)
    data = _encode(path)
    for _ in range(200):
        broken = bytearray(data[: random.integers(1, len(data))] if random.random() < 0.3 else data)
        for place in random.integers(0, len(broken), 8):
            broken[place] = random.integers(0, 256)
        path.write_bytes(broken)
        stated_crop(str(path), 64, 48)
