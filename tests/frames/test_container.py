"""Containers, decoded by PyAV, and sequences of pictures."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import av
import numpy as np
import pytest

from vkssim.errors import InputError
from vkssim.frames.options import RawDescription

from ..support.clips import write
from ..support.golden import clip_paths
from ..support.pictures import clip
from .encoding import encode_frames, flat_chroma, noise_planes, video_frame
from .reading import open_source, read, read_file


@pytest.mark.parametrize("ending", ["mkv", "avi", "ts", "mp4", "mpg"])
def test_recognised_though_described_as_raw(tmp_path: Path, ending: str) -> None:
    """By its first bytes: read as samples it would score garbage. What was said has to fit it."""
    codec = {"mp4": "mpeg4", "ts": "mpeg2video", "mpg": "mpeg2video"}.get(ending, "ffv1")
    luma = clip(2, 48, 64)
    path = encode_frames(tmp_path / f"clip.{ending}", flat_chroma(luma), codec)
    assert read_file(path, RawDescription(64, 48, "420", 8)).shape == luma.shape
    with pytest.raises(InputError, match="states a `width` of 64; `width=66` contradicts it"):
        open_source(path, RawDescription(66, 48, "420", 8))


def test_recording_that_begins_between_key_frames(tmp_path: Path) -> None:
    """libavcodec skips packets that it cannot decode; times count from the first frame that it returns."""
    luma = clip(12, 48, 64)
    options = {"qp": "0", "bf": "0", "g": "6", "sc_threshold": "0"}
    data = Path(encode_frames(tmp_path / "whole.ts", flat_chroma(luma), "libx264", options=options)).read_bytes()
    packets = [data[start : start + 188] for start in range(0, len(data), 188)]
    starts = [number for number, packet in enumerate(packets) if packet[1] & 0x5F == 0x41 and packet[2] == 0]  # of frames
    path = write(tmp_path / "torn.ts", b"".join(packets[: starts[0]] + packets[starts[2] :]))
    with open_source(path) as source:
        np.testing.assert_array_equal(read(source), luma[6:])
        times = source.times()
        assert times is not None
        np.testing.assert_allclose(times, np.arange(6) / 25, atol=1e-9)


def test_torn_packets_at_the_start(tmp_path: Path) -> None:
    """They are passed over, and noted."""
    frames = [video_frame(64, 48, "yuvj422p", noise_planes(64, 48, "422", 8, seed)) for seed in range(4)]
    whole = Path(encode_frames(tmp_path / "whole.avi", frames, "mjpeg"))
    expected = read_file(str(whole))
    data = bytearray(whole.read_bytes())
    first, second = data.index(b"\xff\xd8\xff"), data.index(b"\xff\xd8\xff", data.index(b"\xff\xd9"))
    data[first : second - 8] = bytes(second - 8 - first)  # 8 bytes of AVI before each
    with open_source(write(tmp_path / "torn.avi", bytes(data))) as source:
        assert source.info.notes == ("packets skipped at the start, because they cannot be decoded: 1",)
        np.testing.assert_array_equal(read(source), expected[1:])


def test_a_closed_clip_is_let_go_of_at_once() -> None:
    """Its decoder has threads and memory that must not wait for Python's search for cycles: a plan opens thousands of clips."""
    gc.disable()
    try:
        source = open_source(str(clip_paths("bbb_576x324_10bit")[0]))
        source.close()
        left = weakref.ref(source)
        del source
        assert left() is None
    finally:
        gc.enable()


LUMA = clip(5, 48, 64)


def _write(folder: Path, numbers: range | list[int], name: str = "frame_%04d.png") -> None:
    for number, picture in zip(numbers, LUMA, strict=False):
        encode_frames(folder / (name % number), [av.VideoFrame.from_ndarray(picture, "gray")], "png")


@pytest.mark.parametrize(("first", "name"), [(0, "frame_%04d.png"), (1, "f%d.png"), (8, "f%d.png"), (250, "frame_%04d.png")])
def test_counted_from_the_lowest_number(tmp_path: Path, first: int, name: str) -> None:
    _write(tmp_path, range(first, first + 5), name)
    with open_source(str(tmp_path / name)) as source:
        assert (source.info.frames, source.info.fps, source.expected) == (5, None, 5)
        assert source.time(0) is None
        np.testing.assert_array_equal(read(source), LUMA)


@pytest.mark.parametrize("name", ["100%_{}.png", "50%%_{}.png", "{}%.png", "{}"])
def test_per_cent_signs_of_the_name_itself(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "20% off"
    folder.mkdir()
    for number, picture in enumerate(LUMA, 1):
        written = folder / "picture.png"
        encode_frames(written, [av.VideoFrame.from_ndarray(picture, "gray")], "png")
        written.rename(folder / name.format(f"{number:03d}"))
    with open_source(str(folder / name.format("%03d"))) as source:
        np.testing.assert_array_equal(read(source), LUMA)


def test_wildcard(tmp_path: Path) -> None:
    """In the order of their names, gaps or not."""
    _write(tmp_path, [3, 7, 8, 20, 21])
    with open_source(str(tmp_path / "frame_*.png")) as source:
        assert source.info.frames == 5
        np.testing.assert_array_equal(read(source), LUMA)


def test_missing_picture_is_named(tmp_path: Path) -> None:
    _write(tmp_path, [1, 2, 4, 5])
    with pytest.raises(InputError, match=r"frame_0003.png is missing between frame_0001.png and frame_0005.png.*frame_\*.png"):
        open_source(str(tmp_path / "frame_%04d.png"))


@pytest.mark.parametrize("name", ["frame_%04d.png", "nowhere/frame_%d.png", "frame_*.png"])
def test_no_picture_at_all(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="no such files"):
        open_source(str(tmp_path / name))


def test_pictures_of_different_size(tmp_path: Path) -> None:
    _write(tmp_path, range(2))
    encode_frames(tmp_path / "frame_0002.png", [av.VideoFrame.from_ndarray(LUMA[0][:40], "gray")], "png")
    with open_source(str(tmp_path / "frame_%04d.png")) as source:
        assert len(read(source)) == 2
        assert "frame 2 is 64x40 gray, the first one is 64x48 gray" in str(source.problem)


@pytest.mark.parametrize("name", ["folder_%d/frame.png", "a" * 300 + ".mp4", "."])
def test_what_is_no_name_of_pictures(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        open_source(str(tmp_path / name))
