"""The key frames and bit rates that a search expects of encoders, compared with theirs."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import Any, cast

import av
import numpy as np
import pytest

from vkssim.clips import VideoFacts
from vkssim.errors import OptionError
from vkssim.search.encoders import encoder_of
from vkssim.search.recipe import Recipe

from ..support.children import in_child


def recipe(name: str, options: dict[str, str], rate: int = 25) -> Recipe:
    facts = cast(VideoFacts, SimpleNamespace(rate=Fraction(rate)))
    return Recipe(encoder_of(name), encoder_of(name).parameter(None), facts, "yuv420p", options)


@in_child
def keys(name: str, options: dict[str, str], rate: int, frames: int, cut: int | None = None) -> list[int]:
    """Return the numbers of the key frames of a grey clip, which turns into a texture at a cut."""
    context: Any = av.CodecContext.create(name, "w")
    context.width, context.height, context.pix_fmt = 64, 64, "yuv420p"
    context.time_base, context.framerate, context.options = Fraction(1, rate), Fraction(rate), options
    flat = np.full((96, 64), 128, np.uint8)
    texture = np.random.default_rng(1).integers(0, 255, flat.shape, np.uint8)
    packets = []
    for number in range(frames):
        frame = av.VideoFrame.from_ndarray(flat if cut is None or number < cut else texture, "yuv420p")
        frame.pts, frame.time_base = number, Fraction(1, rate)
        packets += context.encode(frame)
    packets += context.encode(None)
    return [packet.pts for packet in packets if packet.is_keyframe]


@pytest.mark.parametrize(
    ("name", "options", "rate"),
    [
        *(("libsvtav1", {"preset": "12"}, rate) for rate in (12, 25, 50)),
        ("libsvtav1", {"preset": "9"}, 25),
        ("libsvtav1", {"preset": "8"}, 12),
        ("libsvtav1", {"preset": "8"}, 50),
        ("libvpx-vp9", {"cpu-used": "8", "deadline": "realtime"}, 25),
        *(("libx264", {"preset": "ultrafast"}, rate) for rate in (12, 50)),
        ("libx264", {"preset": "ultrafast", "g": "40"}, 25),
    ],
)
def test_the_distance_of_key_frames(name: str, options: dict[str, str], rate: int) -> None:
    distance = recipe(name, options, rate).key_frames
    assert keys(name, options, rate, distance + 2) == [0, distance]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("libx264", {"preset": "veryfast"}),
        ("libx264", {"preset": "veryfast", "sc_threshold": "0"}),
        ("libx265", {"preset": "superfast"}),
        ("libx265", {"preset": "superfast", "x265-params": "scenecut=0"}),
        ("libsvtav1", {"preset": "12"}),
        ("libvpx-vp9", {"cpu-used": "8"}),
    ],
)
def test_key_frames_at_cuts(name: str, options: dict[str, str]) -> None:
    own = dict(part.split("=") for value in options.values() for part in value.split(":") if "=" in part)
    found = keys(name, options, 25, 60, cut=40)
    assert found == ([0, 40] if recipe(name, {**options, **own}).keys_at_cuts else [0])


def test_bit_rates_are_whole_numbers_within_their_range_and_each_occurs_once() -> None:
    encoder = encoder_of("libx264")
    assert encoder.parameter("bitrate", least=1.5, most=5.7).values == (5, 4, 3, 2)
    assert encoder.parameter("bitrate", least=500, most=500).values == (500,)
    with pytest.raises(OptionError, match=r"from 1\.5 to 1\.7 kbit/s; both must .* with a whole number between them"):
        encoder.parameter("bitrate", least=1.5, most=1.7)


@pytest.mark.parametrize("parameter", ["crf", "qp"])
def test_no_setting_of_libx264_is_lossless(parameter: str) -> None:
    """Players refuse the profile of lossless streams, High 4:4:4 Predictive."""
    best = encoder_of("libx264").parameter(parameter).values[0]
    assert _profile({parameter: f"{best:g}"}) == "High"
    assert _profile({parameter: f"{best - 1:g}"}) == "High 4:4:4 Predictive"


@in_child
def _profile(options: dict[str, str]) -> str:
    context: Any = av.CodecContext.create("libx264", "w")
    context.width, context.height, context.pix_fmt, context.time_base = 64, 64, "yuv420p", Fraction(1, 25)
    context.options = options
    frame = av.VideoFrame.from_ndarray(np.random.default_rng(1).integers(0, 255, (96, 64), np.uint8), "yuv420p")
    packets = [*context.encode(frame), *context.encode(None)]
    decoder: Any = av.CodecContext.create("h264", "r")
    assert [decoded for packet in (*packets, None) for decoded in decoder.decode(packet)]
    return str(decoder.profile)
