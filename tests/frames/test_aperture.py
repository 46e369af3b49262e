"""Test the rectangle that containers declare as visible."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from vkssim.types import Samples

from ..ladder.ladders import encode
from ..support.pictures import clip
from ..support.shown import with_clap, with_pixel_crop
from .reading import open_source, read

LUMA = clip(4, 48, 64)


def _encoded(path: Path) -> bytes:
    encode(path, LUMA, "ffv1" if path.suffix == ".mkv" else "mpeg4")
    return path.read_bytes()


def _read(path: Path) -> tuple[Samples, tuple[str, ...]]:
    with open_source(str(path)) as source:
        return read(source), source.info.notes


@pytest.mark.parametrize("ending", ["mp4", "mov", "mkv"])
def test_the_rectangle_that_is_shown(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"clip.{ending}"
    data = _encoded(path)
    whole, notes = _read(path)
    assert notes == ()
    crops = {"left": 14, "right": 10, "top": 6, "bottom": 10}
    path.write_bytes(with_pixel_crop(data, **crops) if ending == "mkv" else with_clap(data, 40, 1, 32, 1, 2, 1, -4, 2))
    shown, notes = _read(path)
    np.testing.assert_array_equal(shown, whole[:, 6:38, 14:54])
    assert notes == ("cropped to 40x32+14+6, as its container says",)


@pytest.mark.parametrize(
    ("numbers", "width"),
    [((41, 2, 32, 1, 0, 1, 0, 1), 21), ((40, 0, 32, 1, 0, 1, 0, 1), 64), ((40, 1, 32, 1, 50, 1, 0, 1), 64)],
    ids=["parts of samples", "no numbers", "outside"],
)
def test_unusual_rectangles_are_those_of_ffmpeg(tmp_path: Path, numbers: tuple[int, ...], width: int) -> None:
    path = tmp_path / "clip.mp4"
    path.write_bytes(with_clap(_encoded(path), *numbers))
    assert _read(path)[0].shape[2] == width
