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


@pytest.mark.parametrize("rate", [12, 25, 50])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("libsvtav1", {"preset": "12"}),
        ("libsvtav1", {"preset": "9"}),
        ("libsvtav1", {"preset": "8"}),
        ("libvpx-vp9", {"cpu-used": "8", "deadline": "realtime"}),
        ("libx264", {"preset": "ultrafast"}),
        ("libx264", {"preset": "ultrafast", "g": "40"}),
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
