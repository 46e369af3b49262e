"""Cropping, black bars, scaling and deepening."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from av.video.reformatter import Interpolation

from vkssim.errors import InputError, OptionError
from vkssim.frames.info import VideoInfo
from vkssim.frames.source import ProcessedSource
from vkssim.frames.transforms import Crop, Scale, is_scaled, requested_turn, shape, stretched, unlike, without_bars
from vkssim.types import plane_shapes
from vkssim.utils.choices import RESAMPLERS

from ..support.clips import raw_bytes, write
from ..support.pictures import clip
from .encoding import noise_planes, video_frame
from .reading import describe, open_source, read


def _info(width: int = 64, height: int = 48, aspect: str | None = None, bits: int = 8, chroma: str = "420") -> VideoInfo:
    sample_aspect = None if aspect is None else Fraction(aspect)
    return VideoInfo(f"{width}x{height}", "raw", width, height, bits, chroma=chroma, sample_aspect=sample_aspect)


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
    with pytest.raises(InputError, match=r"32x24\+2\+3 begins between .* of 64x48, which is 420: X .* 2, Y of 2"):
        Crop(32, 24, 2, 3).check_aligned(_info())
    assert Crop(32, 24, 2, 3).info(_info()).chroma == "400", "luma can be cropped anywhere"


@pytest.mark.parametrize("rectangle", [(65, 48), (64, 49), (32, 24, 33, 0), (32, 24, 0, 25), (0, 24)])
def test_rectangle_that_does_not_fit(rectangle: tuple[Any, ...]) -> None:
    with pytest.raises(InputError, match="within 64x48, which is 64x48; `crop_reference` and `crop_distorted` crop one clip"):
        Crop(*rectangle).info(_info())
    with pytest.raises(InputError, match=r"does not lie within 64x48, which is 64x48$"):
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


@pytest.mark.parametrize(
    ("other", "bits", "said"),
    [
        ((640, 272), 10, "their shapes differ (1.78:1 and 2.35:1), as if one was cropped."),
        ((640, 272), 10, "`deepen` makes their depth alike"),
        ((640, 360), 10, "`deepen` brings the clip of less depth to the depth of the other"),
        ((320, 180), 10, "and the clip of less depth to the depth of the other"),
    ],
)
def test_shapes_and_depths_are_named(other: tuple[int, int], bits: int, said: str) -> None:
    message = unlike(_info(640, 360), _info(*other, bits=bits))
    assert f"{other[0]}x{other[1]} with 10 bits; they must be alike" in message
    assert said in message
    assert ("scale" in message) == (other == (320, 180))


TURNED = "by 90 degrees clockwise"


@pytest.mark.parametrize(
    ("first", "second", "said", "cure"),
    [
        ((48, 64, 90), (64, 48, 0), f"the display matrix of first turns it {TURNED}, and second has none", "turn_distorted=90"),
        ((48, 64, 270), (64, 48, 0), f"{TURNED.replace('clock', 'counter-clock')}, and second has none", "turn_distorted=270"),
        ((64, 48, 0), (48, 64, 90), f"the display matrix of second turns it {TURNED}, and first has none", "turn_reference=90"),
        ((48, 64, 90), (64, 48, 90), "`turn_distorted=270` counter-clockwise", "turn_distorted=90"),
        ((48, 64, 0), (64, 48, 0), "`turn_distorted=270` counter-clockwise", "turn_distorted=90"),
        ((360, 640, 90), (320, 180, 0), "first turns it", "turn_distorted=90"),
    ],
)
def test_a_rotation_that_was_lost(first: tuple[int, ...], second: tuple[int, ...], said: str, cure: str) -> None:
    """The clip that is turned is named, and the option that turns the other; neither is cropped."""
    infos = [
        VideoInfo(path, "raw", width, height, 8, rotation=rotation)
        for path, (width, height, rotation) in (("first", first), ("second", second))
    ]
    message = unlike(infos[0], infos[1])
    assert f"{said}" in message
    assert f"`{cure}` turns" in message
    assert "crop" not in message
    assert ("`scale=reference` then brings" in message) == (first[0] == 360)


def test_what_a_turned_clip_states() -> None:
    """Only a rotation that the clip states itself explains sizes that differ."""
    before = _info(64, 48)
    for degrees in (90, 180, 270):
        requested = requested_turn(degrees)
        assert requested is not None
        stated = replace(requested, requested=False)
        assert (stated.info(before).rotation, requested.info(before).rotation) == (degrees, 0)
        assert requested.info(before).notes == (f"turned {requested}",)
    assert requested_turn(0) is None


def test_shape_of_samples_that_are_not_square() -> None:
    assert shape(_info(720, 576, "64/45")) == pytest.approx(16 / 9)
    turned = requested_turn(90)
    assert turned is not None
    assert shape(turned.info(_info(720, 576, "64/45"))) == pytest.approx(9 / 16)


def test_scaling_that_stretches_is_warned_of() -> None:
    before = _info(640, 272)
    after = Scale(640, 360, "bicubic", 8, "420").info(before)
    assert after.warnings == (stretched(before, replace(before, height=360)),)
    assert "640x272 was stretched from 640x272 to 640x360: its shape changed from 2.35:1 to 1.78:1" in after.warnings[0]
    (turned,) = Scale(360, 640, "bicubic", 8, "420").info(_info(640, 360)).warnings
    assert "--turn-distorted" in turned
    assert Scale(320, 136, "bicubic", 8, "420").info(before).warnings == ()
    assert Scale(1024, 576, "bicubic", 8, "420").info(_info(720, 576, "64/45")).warnings == ()
