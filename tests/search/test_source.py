"""The clip that a search reads: its frames by number, and how long they are shown."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import av
import numpy as np
import pytest
from av.stream import Disposition

import vkssim
from vkssim.errors import InputError
from vkssim.search.command_line import command_line
from vkssim.search.encoders import encoder_of
from vkssim.search.recipe import make_recipe
from vkssim.search.source import Scan, Source, luma

from ..frames.encoding import encode_frames, video_frame
from .clips import FRAMES, QUICK, SCALED, pictures, source


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> str:
    return source(tmp_path_factory.mktemp("source") / "clip.mkv")


def test_frames_of_a_range_are_those_of_the_clip(clip: str) -> None:
    found = Source(clip)
    times = found.scan().times
    every = [luma(frame, 8).copy() for frame in found.frames(0, None)]
    some = [luma(frame, 8).copy() for frame in found.frames(9, 5, times)]
    assert len(every) == FRAMES
    np.testing.assert_array_equal(some, every[9:14])
    with pytest.raises(InputError, match="had more when it was read first"):
        list(found.frames(FRAMES - 2, 5, times))


@pytest.mark.parametrize("options", [{}, {"x264-params": "open-gop=1"}], ids=["closed", "open"])
def test_frames_of_a_range_of_a_file_without_an_index(tmp_path: Path, options: dict[str, str]) -> None:
    """A seek goes by decoding times there, past the key frame; and no frame refers to what was passed over."""
    path = source(tmp_path / "clip.ts", codec="libx264", options={"g": "12", "bf": "3", "qp": "20", **options}, count=96)
    found = Source(path)
    times = found.scan().times
    every = [luma(frame, 8).copy() for frame in found.frames(0, None)]
    assert len(every) == 96
    for first in range(1, 90, 5):
        np.testing.assert_array_equal(
            [luma(frame, 8).copy() for frame in found.frames(first, 6, times)], every[first : first + 6]
        )


def test_a_sequence_of_pictures(tmp_path: Path) -> None:
    chroma = np.full((24, 32), 128, np.uint8)
    for number, picture in enumerate(pictures(4)):
        frame = video_frame(64, 48, "yuvj420p", [picture.astype(np.uint8), chroma, chroma])
        encode_frames(tmp_path / f"{number:03d}.jpg", [frame], "mjpeg")
    found = Source(str(tmp_path / "%03d.jpg"))
    assert found.scan().count == 4
    with pytest.raises(InputError, match="no such files"):
        Source(str(tmp_path / "*.png"))


def test_the_stream_is_the_one_that_is_scored(tmp_path: Path) -> None:
    """The first with the default mark, which is not the first in the file here."""
    clip, path = source(tmp_path / "video.mkv"), str(tmp_path / "clip.mkv")
    small = encode_frames(tmp_path / "small.mkv", [video_frame(32, 32, "gray", [np.full((32, 32), 9, np.uint8)])], "ffv1")
    with av.open(small) as first, av.open(clip) as second, av.open(path, "w") as both:
        streams: list[Any] = [both.add_stream_from_template(read.streams.video[0]) for read in (first, second)]
        streams[0].disposition, streams[1].disposition = Disposition.comment, Disposition.default
        for read, stream in zip((first, second), streams, strict=True):
            for packet in read.demux(video=0):
                if packet.dts is not None:
                    packet.stream = stream
                    both.mux(packet)
    facts = Source(path).facts
    assert (facts.width, facts.height, facts.video) == (64, 48, 1)
    assert facts.notes == ("stream 1 was taken of 0 (ffv1 32x32), 1 (ffv1 64x48, default)",)
    assert len(Source(path).scan().times) == FRAMES
    recipe = make_recipe(encoder_of("libx264"), encoder_of("libx264").parameter(None), facts, {})
    assert " -map 0:v:1 " in command_line(path, facts, recipe, 0)


@pytest.mark.usefixtures("shared_device")
def test_bit_rates_are_those_of_the_time_in_which_frames_are_shown(tmp_path: Path) -> None:
    """Ten frames a second after 25: what a recording of a screen is like."""
    frames = [video_frame(64, 48, "gray", [picture.astype(np.uint8)]) for picture in pictures()]
    times = [n / 25 for n in range(16)] + [16 / 25 + n / 10 for n in range(16)]
    path = encode_frames(tmp_path / "screen.mkv", frames, "ffv1", times=times)
    asked = {"encoder": "libx264", "enc": QUICK["libx264"], **SCALED}
    trial = vkssim.search(path, targets="float_ssim=0.9", least=30, most=30, **asked).choice.trial
    seconds = times[-1] * FRAMES / (FRAMES - 1)
    assert trial.kbps == pytest.approx(trial.bytes * 8 / seconds / 1000, abs=1e-3)


FACTS: Any = SimpleNamespace(rate=Fraction(25), time_base=Fraction(1, 100))


@pytest.mark.parametrize(
    ("times", "first", "count", "seconds"),
    [
        ([0, 4, 8, 12], 0, 4, 0.16),
        ([0, 4, 8, 48], 1, 2, 0.44),  # the frame behind them says when they end
        ([0, 4, 8, 48], 2, 2, 0.8),
        ([0, 4, None, 12], 0, 4, 0.16),
        ([100, 104, 0, 4], 0, 4, 0.16),
        ([7], 0, 1, 0.04),
    ],
)
def test_how_long_frames_are_shown(times: list[int | None], first: int, count: int, seconds: float) -> None:
    assert Scan(times).seconds(first, count, FACTS) == pytest.approx(seconds)


def test_ticks_are_no_frame_rate(tmp_path: Path) -> None:
    """A file of times in milliseconds may state 1,000 as its frame rate, which SVT-AV1 refuses."""
    frames = [video_frame(64, 64, "gray", [np.full((64, 64), 9 * n, np.uint8)]) for n in range(12)]
    path = encode_frames(tmp_path / "ticks.mkv", frames, "ffv1", times=[n / 25 + n % 3 * 0.007 for n in range(12)], rate=1000)
    assert Source(path).facts.rate == 25
