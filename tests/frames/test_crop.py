"""Cropping, and finding black bars."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vkssim.errors import InputError, OptionError
from vkssim.frames.info import VideoInfo
from vkssim.frames.picture.steps import Crop, without_bars
from vkssim.frames.source import ProcessedSource
from vkssim.types import plane_shapes

from ..support.clips import raw_bytes, write
from ..support.pictures import clip
from .encoding import noise_planes
from .reading import describe, open_source, read


def _info(width: int = 64, height: int = 48, chroma: str = "420", bits: int = 8) -> VideoInfo:
    return VideoInfo("clip", "raw", width, height, bits, chroma=chroma)


def test_every_chroma_that_belongs_to_the_rectangle() -> None:
    for chroma, left, top in (("420", 6, 4), ("422", 6, 5), ("444", 7, 5), ("411", 4, 3), ("440", 5, 2), ("410", 8, 4)):
        planes = noise_planes(64, 48, chroma, 8)
        cropped = Crop(33, 21, left, top)(planes)
        assert [plane.shape for plane in cropped] == plane_shapes(33, 21, chroma)
        np.testing.assert_array_equal(cropped[0], planes[0][top : top + 21, left : left + 33])
        rows, columns = 48 // planes[1].shape[0], 64 // planes[1].shape[1]
        assert cropped[1][0, 0] == planes[1][top // rows, left // columns]


def test_chroma_that_does_not_begin_there() -> None:
    Crop(32, 24, 2, 4).check_aligned(_info())
    Crop(32, 24, 3, 5).check_aligned(_info(chroma="444"))
    with pytest.raises(InputError, match=r"32x24\+2\+3 begins between samples of chroma of clip, which is 420: X .* 2, Y of 2"):
        Crop(32, 24, 2, 3).check_aligned(_info())
    assert Crop(32, 24, 2, 3).info(_info()).chroma == "400", "luma can be cropped anywhere"


@pytest.mark.parametrize("rectangle", [(65, 48), (64, 49), (32, 24, 33, 0), (32, 24, 0, 25), (0, 24)])
def test_rectangle_that_does_not_fit(rectangle: tuple[Any, ...]) -> None:
    with pytest.raises(InputError, match="within clip, which is 64x48; `crop_reference` and `crop_distorted` crop one clip"):
        Crop(*rectangle).info(_info())
    with pytest.raises(InputError, match=r"does not lie within clip, which is 64x48$"):
        replace(Crop(*rectangle), own=True).info(_info())


def test_parse() -> None:
    assert Crop.parse("1920x800+0+140") == Crop(1920, 800, 0, 140)
    assert Crop.parse("1920x800") == Crop(1920, 800, 0, 0)
    for text in ("", "1920", "1920x", "1920x800+3", "-1x3+0+0", "1920:800:0:140", "9999999x1"):
        with pytest.raises(OptionError, match=r"auto or WxH\+X\+Y is possible"):
            Crop.parse(text)


def test_source_is_read_as_before(tmp_path: Path) -> None:
    """From several threads if possible, at any position, into padded rows."""
    luma = clip(6)
    path = write(tmp_path / "clip.yuv", raw_bytes(luma))
    with ProcessedSource(open_source(path, describe(luma)), Crop(20, 16, 5, 3)) as source:
        assert source.concurrent
        assert (source.info.width, source.info.height, source.length) == (20, 16, 6)
        assert source.info.notes == ("cropped to 20x16+5+3",)
        np.testing.assert_array_equal(read(source, range(4, 1, -1)), luma[4:1:-1, 3:19, 5:25])
        assert len(read(source, range(5, 9))) == 1


@pytest.mark.parametrize("bits", [8, 10])
@pytest.mark.parametrize(
    ("top", "below", "left", "right", "found"),
    [
        (6, 6, 0, 0, Crop(64, 36, 0, 6)),
        (0, 0, 8, 8, Crop(48, 48, 8, 0)),
        (5, 7, 3, 0, Crop(62, 38, 2, 4)),
    ],
)
def test_black_bars(bits: int, top: int, below: int, left: int, right: int, found: Crop) -> None:
    """Dark noise is a bar; the rectangle begins and ends on even samples, and loses no part of the picture."""
    rng = np.random.default_rng(5)
    scale = 1 << (bits - 8)
    frames = []
    for number in range(3):
        luma = rng.integers(10 * scale, 22 * scale, (48, 64)).astype(np.uint16)
        if number:  # the first is a dark scene
            luma[top : 48 - below, left : 64 - right] = rng.integers(60 * scale, 235 * scale)
        frames.append((luma,))
    crop = without_bars(frames, _info(bits=bits))
    assert crop is not None
    assert (crop.width, crop.height, crop.left, crop.top) == (found.width, found.height, found.left, found.top)
    assert "found in 3 frames" in crop.info(_info(bits=bits)).notes[0]


@pytest.mark.parametrize("level", [16, 120])
def test_no_bars(level: int) -> None:
    """Neither in a bright picture nor in a black one."""
    assert without_bars([(np.full((48, 64), level, np.uint8),)], _info()) is None
