"""Key frames and totals from the list of packets in a container: the same as from the packets themselves."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from vkssim.engine import ranges
from vkssim.engine.ranges import FrameRange, divide_pairs
from vkssim.errors import RangeError
from vkssim.frames.decode import sample_index
from vkssim.frames.decode.container import ContainerFile
from vkssim.frames.decode.sample_index import SampleIndex, UnlistedPacketsError
from vkssim.frames.options import Selection
from vkssim.frames.pairing.schedule import schedule_pairs
from vkssim.frames.source import KeyframeIndex, SeekIndex

from .encoding import encode_frames, video_frame

FRAMES = 150
WIDTH, HEIGHT = 64, 48
X264 = "keyint=23:min-keyint=5:scenecut=0"
X265 = "log-level=none:keyint=23:min-keyint=5:scenecut=0"

LISTED: dict[str, tuple[str, str, dict[str, str]]] = {
    "x264": ("mp4", "libx264", {"x264-params": X264}),
    "x264 with many B-frames": ("mp4", "libx264", {"x264-params": f"{X264}:bframes=16:b-adapt=0:b-pyramid=normal"}),
    "x264 with open GOPs": ("mov", "libx264", {"x264-params": f"{X264}:open-gop=1:bframes=4"}),
    "x264 without B-frames": ("mp4", "libx264", {"x264-params": f"{X264}:bframes=0"}),
    "x264 with one key frame": ("mp4", "libx264", {"x264-params": "keyint=1000:scenecut=0"}),
    "x265 with open GOPs": ("mp4", "libx265", {"x265-params": f"{X265}:open-gop=1:bframes=4"}),
    "x265 with leading frames that decode": ("mp4", "libx265", {"x265-params": f"{X265}:open-gop=0:radl=2:bframes=4"}),
}
UNLISTED: dict[str, tuple[str, str, dict[str, str], dict[str, str]]] = {
    "fragments": ("mp4", "libx264", {"x264-params": X264}, {"movflags": "frag_keyframe+empty_moov"}),
    "fragments after a first part": ("mp4", "libx264", {"x264-params": X264}, {"movflags": "frag_keyframe"}),
    "matroska": ("mkv", "libx264", {"x264-params": X264}, {}),
    "transport stream": ("ts", "libx264", {"x264-params": X264}, {}),
}


def _clip(path: Path, codec: str, options: dict[str, str], muxer: dict[str, str] | None = None) -> Path:
    rng = np.random.default_rng(0)
    planes = [rng.integers(0, 255, (FRAMES, HEIGHT >> half, WIDTH >> half), np.uint8) for half in (0, 1, 1)]
    frames = [video_frame(WIDTH, HEIGHT, "yuv420p", [plane[number] for plane in planes]) for number in range(FRAMES)]
    encode_frames(path, frames, codec, options={"preset": "ultrafast", **options}, muxer=muxer)
    return path


def _facts(path: Path, monkeypatch: pytest.MonkeyPatch, few: int) -> tuple[SeekIndex, Any, int]:
    monkeypatch.setattr(sample_index, "_FEW_PACKETS", few)
    with ContainerFile(str(path), None, None) as clip:
        totals = clip.packets(), clip.hidden_frames()
        index = clip.seek_index()
        assert index is not None
        return index, *totals


def _same_as_from_packets(path: Path, monkeypatch: pytest.MonkeyPatch, kind: type | tuple[type, ...] = SampleIndex) -> None:
    expected, *expected_totals = _facts(path, monkeypatch, 10_000)
    found, *totals = _facts(path, monkeypatch, 1)
    assert isinstance(expected, KeyframeIndex)
    assert isinstance(found, kind)
    assert totals == expected_totals
    assert found.frames == expected.frames
    numbers = [*range(found.frames), *range(0, found.frames, 37)]
    assert [found.before(number) for number in numbers] == [expected.before(number) for number in numbers]
    assert [found.position(number) for number in numbers] == [expected.position(number) for number in numbers]


@pytest.mark.parametrize("kind", LISTED)
def test_of_every_kind(folder: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    ending, codec, options = LISTED[kind]
    _same_as_from_packets(_clip(folder / f"{kind}.{ending}", codec, options), monkeypatch)


def test_an_edit_list_that_hides_frames(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clip begins in the middle of a group of pictures, whose first packets are decoded and not presented."""
    plain = _clip(folder / "plain.mp4", "libx264", {"x264-params": f"{X264}:bframes=3"})
    cut = folder / "cut.mp4"
    with av.open(str(plain)) as source, av.open(str(cut), "w") as target:
        stream = source.streams.video[0]
        copied = target.add_stream_from_template(stream)
        assert stream.time_base is not None
        shift = round(Fraction(7, 25) / stream.time_base)
        for packet in source.demux(stream):
            if packet.pts is not None and packet.dts is not None:
                packet.pts, packet.dts, packet.stream = packet.pts - shift, packet.dts - shift, copied
                target.mux(packet)
    with av.open(str(cut)) as clip:
        assert any(packet.is_discard for packet in clip.demux(video=0))
    _same_as_from_packets(cut, monkeypatch)


@pytest.mark.parametrize("kind", UNLISTED)
def test_a_container_that_may_list_fewer_packets(folder: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """FFmpeg may know all fragments of a file that it can seek in."""
    ending, codec, options, muxer = UNLISTED[kind]
    path = _clip(folder / f"{kind}.{ending}", codec, options, muxer)
    _same_as_from_packets(path, monkeypatch, (SampleIndex, KeyframeIndex) if muxer else KeyframeIndex)


def test_only_the_packets_around_a_frame_are_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _clip(folder / "read.mp4", "libx264", {"x264-params": X264})
    read: list[int] = []
    original = SampleIndex._read

    def counted(self: SampleIndex, first: int, stop: int) -> Any:
        read.append(stop - first)
        return original(self, first, stop)

    monkeypatch.setattr(SampleIndex, "_read", counted)
    index, *_ = _facts(path, monkeypatch, 1)
    read.clear()
    assert [index.position(number) for number in (70, 71, 72)] == sorted(index.position(number) for number in (70, 71, 72))
    assert sum(read) < FRAMES // 3


def test_a_file_that_is_cut_off_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its list comes first and names packets that are missing."""
    whole = _clip(folder / "whole.mp4", "libx264", {"x264-params": X264}, {"movflags": "+faststart"})
    cut = folder / "cut_off.mp4"
    cut.write_bytes(whole.read_bytes()[: whole.stat().st_size * 2 // 3])
    kinds = []
    for few in (10_000, 1):
        monkeypatch.setattr(sample_index, "_FEW_PACKETS", few)
        with ContainerFile(str(cut), None, None) as clip:
            kinds.append((type(clip.seek_index()), clip.packets()))
    assert kinds[0] == kinds[1]


def test_packets_that_are_not_as_they_are_listed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is replaced while it is divided is scored in one range."""
    path = _clip(folder / "replaced.mp4", "libx264", {"x264-params": X264})
    index, *_ = _facts(path, monkeypatch, 1)

    def refuse(*_: object) -> Any:
        raise UnlistedPacketsError

    monkeypatch.setattr(SampleIndex, "_read_around", refuse)
    for ask in (index.before, index.position):
        with pytest.raises(RangeError, match="not as the container lists them"):
            ask(70)
    monkeypatch.setattr(ranges, "MIN_PAIRS", 10)
    with ContainerFile(str(path), None, None) as first, ContainerFile(str(path), None, None) as second:
        monkeypatch.setattr(first, "seek_index", lambda: index)
        monkeypatch.setattr(second, "seek_index", lambda: index)
        assert divide_pairs((first, second), schedule_pairs(Selection(), first, second, "index"), 20, 1) == [FrameRange()]
