"""Scaling and deepening."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from av.video.reformatter import Interpolation

from vkssim.frames.info import VideoInfo
from vkssim.frames.picture.scale import Scale, ToBitDepth
from vkssim.types import plane_shapes
from vkssim.utils.choices import RESAMPLERS

from .encoding import noise_planes, video_frame


@pytest.mark.parametrize("resampler", RESAMPLERS)
def test_luma_is_that_of_the_whole_frame(resampler: str) -> None:
    """libswscale scales the luma of yuv420p as it scales a grey picture."""
    planes = noise_planes(64, 48, "420", 8)
    frame: Any = video_frame(64, 48, "yuv420p", planes)
    how = Interpolation[resampler.upper()].value | 0x40000 | 0x80000  # accurate rounding, bit-exact
    whole = np.frombuffer(frame.reformat(96, 80, interpolation=how, threads=1).planes[0], np.uint8).reshape(80, -1)[:, :96]
    np.testing.assert_array_equal(Scale(96, 80, resampler, 8, "420")(planes)[0], whole)


@pytest.mark.parametrize("bits", [8, 9, 10, 12, 14, 16])
@pytest.mark.parametrize("chroma", ["420", "444", "410"])
def test_shapes_and_means(chroma: str, bits: int) -> None:
    """Every depth and chroma format, odd sizes; the mean of a picture stays."""
    planes = noise_planes(63, 49, chroma, bits)
    scaled = Scale(41, 31, "area", bits, chroma)(planes)
    assert [plane.shape for plane in scaled] == plane_shapes(41, 31, chroma)
    assert all(plane.dtype == planes[0].dtype for plane in scaled)
    assert abs(scaled[0].mean() / planes[0].mean() - 1) < 0.02


@pytest.mark.parametrize("resampler", ["bicubic", "lanczos"])
def test_samples_stay_where_they_are(resampler: str) -> None:
    """A ramp stays a ramp: sample centres at (i + 1/2) / n, no shift."""
    ramp = np.tile(np.linspace(0, 60000, 64).astype(np.uint16), (48, 1))
    (scaled,) = Scale(32, 24, resampler, 16, "400")((ramp,))
    expected = (ramp[::2, ::2].astype(float) + ramp[::2, 1::2]) / 2
    np.testing.assert_allclose(scaled[:, 4:-4], expected[:, 4:-4], atol=40)


def test_notes() -> None:
    info = VideoInfo("clip", "raw", 64, 48, 8, chroma="420", notes=("before",))
    assert Scale(96, 80, "bicubic", 8, "420").info(info).notes == ("before", "scaled from 64x48 to 96x80, bicubic")
    deep = ToBitDepth(2).info(info)
    assert (deep.bits, deep.notes[1]) == (10, "brought from 8 to 10 bits, exactly")


def test_deeper() -> None:
    planes = noise_planes(64, 48, "420", 10)
    for plane, other in zip(ToBitDepth(6)(planes), planes, strict=True):
        assert plane.dtype == np.uint16
        np.testing.assert_array_equal(plane / 256, other / 4)
