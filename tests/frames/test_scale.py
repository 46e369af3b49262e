"""Scaling and deepening."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from av.video.reformatter import Interpolation

from vkssim.frames.info import VideoInfo
from vkssim.frames.picture.steps import Scale, by_degrees, is_scaled, shape, stretched, unlike
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


def _info(width: int, height: int, aspect: str | None = None, bits: int = 8) -> VideoInfo:
    sample_aspect = None if aspect is None else Fraction(aspect)
    return VideoInfo(f"{width}x{height}", "raw", width, height, bits, sample_aspect=sample_aspect)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (_info(1920, 1080), _info(1280, 720)),
        (_info(1920, 1080), _info(854, 480)),
        (_info(1920, 1080), _info(426, 240)),
        (_info(1920, 800), _info(640, 266)),
        (_info(1024, 576), _info(720, 576, "64/45")),
        (_info(1440, 1080, "4/3"), _info(1920, 1080)),
        (_info(1440, 1080, "4/3"), _info(720, 540)),
    ],
    ids=lambda info: info.path,
)
def test_scaled(first: VideoInfo, second: VideoInfo) -> None:
    assert is_scaled(first, second)
    assert is_scaled(second, first)
    assert "`scale=reference` brings both to the size" in unlike(first, second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (_info(640, 360), _info(640, 272)),
        (_info(640, 360), _info(638, 360)),
        (_info(1920, 1080), _info(1280, 534)),
        (_info(1920, 1080), _info(720, 576)),
    ],
    ids=lambda info: info.path,
)
def test_not_scaled_but_cropped(first: VideoInfo, second: VideoInfo) -> None:
    assert not is_scaled(first, second)
    assert not is_scaled(second, first)
    message = unlike(first, second)
    assert re.search("`crop_(reference|distorted)", message)
    assert "scale" not in message


def test_the_middle_is_named_where_one_side_was_kept() -> None:
    """The message has a crop to copy: on even samples, of the clip that shows more."""
    wide, tall = _info(640, 272), _info(640, 360)
    assert "`crop_reference=auto` removes the black bars of 640x360, `crop_reference=640x272+0+44` keeps" in unlike(tall, wide)
    assert "`crop_distorted=640x272+0+44` keeps the middle of its pictures" in unlike(wide, tall)
    assert "`crop_distorted=480x360+80+0` keeps" in unlike(_info(480, 360), tall)
    assert "640x270+0+44" in unlike(tall, _info(640, 270)), "not +45, which is between samples of chroma"
    assert "with auto, which removes black bars, or with WxH+X+Y" in unlike(tall, _info(320, 136))


@pytest.mark.parametrize(
    ("other", "bits", "said"),
    [
        ((640, 272), 10, "their shapes differ (1.78:1 and 2.35:1), as if one was cropped."),
        ((640, 272), 10, "`deepen` makes their depth alike"),
        ((640, 360), 10, "`deepen` brings the clip of less depth to the depth of the other, exactly"),
        ((320, 180), 10, "and the clip of less depth to the depth of the other"),
    ],
)
def test_shapes_and_depths_are_named(other: tuple[int, int], bits: int, said: str) -> None:
    message = unlike(_info(640, 360), _info(*other, bits=bits))
    assert f"{other[0]}x{other[1]} with 10 bits; they must be alike" in message
    assert said in message
    assert ("scale" in message) == (other == (320, 180))


def test_shape_of_samples_that_are_not_square() -> None:
    assert shape(_info(720, 576, "64/45")) == pytest.approx(16 / 9)
    turned = by_degrees(90)
    assert turned is not None
    assert shape(turned.info(_info(720, 576, "64/45"))) == pytest.approx(9 / 16)


def test_scaling_that_stretches_is_warned_of() -> None:
    before = _info(640, 272)
    after = Scale(640, 360, "bicubic", 8, "420").info(before)
    assert after.warnings == (stretched(before, replace(before, height=360)),)
    assert "640x272 was stretched from 640x272 to 640x360: its shape changed from 2.35:1 to 1.78:1" in after.warnings[0]
    assert Scale(320, 136, "bicubic", 8, "420").info(before).warnings == ()
    assert Scale(1024, 576, "bicubic", 8, "420").info(_info(720, 576, "64/45")).warnings == ()
