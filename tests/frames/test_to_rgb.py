"""Y'CbCr as R'G'B' to be looked at, against FFmpeg's own conversion."""

from __future__ import annotations

from typing import Any

import av
import numpy as np
import pytest

from vkssim.frames.info import VideoInfo
from vkssim.frames.picture.to_rgb import to_rgb

from ..support.pictures import quantise, texture

LIMITED = {"black": (16, 128, 128), "white": (235, 128, 128), "red": (81, 90, 240), "blue": (41, 240, 110)}
RGB = {"black": (0, 0, 0), "white": (255, 255, 255), "red": (255, 0, 0), "blue": (0, 0, 255)}


def _info(bits: int = 8, chroma: str = "444", **known: Any) -> VideoInfo:
    return VideoInfo("", "", 1, 1, bits, chroma=chroma, **known)


@pytest.mark.parametrize("bits", [8, 10, 16])
@pytest.mark.parametrize("name", RGB)
def test_corners_of_the_cube(name: str, bits: int) -> None:
    """BT.601 of limited range, which is what is taken where a small picture says nothing."""
    planes = tuple(np.full((1, 1), value << (bits - 8), np.uint8 if bits == 8 else np.uint16) for value in LIMITED[name])
    assert np.abs(to_rgb(planes, _info(bits))[0, 0].astype(int) - RGB[name]).max() <= 1


def test_grey_has_the_range_that_is_stated() -> None:
    ramp = np.arange(256, dtype=np.uint8)[None]
    full, limited = (to_rgb((ramp,), _info(chroma="400", range=name))[0] for name in ("full", "limited"))
    np.testing.assert_array_equal(full, np.stack([ramp[0]] * 3, axis=1))
    np.testing.assert_array_equal(limited[[0, 16, 235, 255]], [[0] * 3, [0] * 3, [255] * 3, [255] * 3])


@pytest.mark.parametrize(("pixel_format", "rows", "columns"), [("yuv420p", 2, 2), ("yuv422p", 1, 2), ("yuv444p", 1, 1)])
@pytest.mark.parametrize(("matrix", "number"), [("BT.601", 5), ("BT.709", 1)])
def test_as_ffmpeg_converts(pixel_format: str, rows: int, columns: int, matrix: str, number: int) -> None:
    """But for how chroma is spread: here it is flat."""
    cb = np.full((48 // rows, 64 // columns), 100, np.uint8)
    planes = (quantise(texture(48, 64), 8), cb, np.full_like(cb, 160))
    frame = av.VideoFrame(64, 48, pixel_format)
    for plane, samples in zip(frame.planes, planes, strict=True):
        padded = np.zeros((plane.height, plane.line_size), np.uint8)
        padded[:, : plane.width] = samples
        plane.update(padded.tobytes())
    expected = frame.to_ndarray(format="rgb24", src_colorspace=number, dst_colorspace=number)
    got = to_rgb(planes, VideoInfo("", "", 64, 48, 8, matrix=matrix, range="limited"))
    assert np.abs(got.astype(int) - expected).max() <= 3
