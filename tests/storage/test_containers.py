"""FFmpeg reads only the given file: it uses no network, and opens no file that another file names."""

from __future__ import annotations

import shutil
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import av
import numpy as np
import pytest

from vkssim.errors import InputError

from ..frames.encoding import encode_frames, noise_planes, video_frame
from ..frames.reading import open_source, read
from ..support.golden import FIXTURES

CLIP = FIXTURES / "bbb_576x324_dis.mp4"
HLS = "#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXT-X-MEDIA-SEQUENCE:0\n#EXTINF:9,\n{}\n#EXT-X-ENDLIST\n"
LIVE = HLS.removesuffix("#EXT-X-ENDLIST\n")  # FFmpeg would wait for more of it
CONCAT = "ffconcat version 1.0\nfile '{}'\n"
DASH = (
    '<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT2S"><Period>'
    '<AdaptationSet mimeType="video/mp4"><Representation id="1" bandwidth="1"><BaseURL>{}</BaseURL></Representation>'
    "</AdaptationSet></Period></MPD>"
)
SDP = "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video {} RTP/AVP 96\na=rtpmap:96 H264/90000\n"


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A socket of this machine that fails the test if anything has connected to it."""
    with socket.create_server(("127.0.0.1", 0)) as opened:
        opened.setblocking(False)
        yield opened
        with pytest.raises(BlockingIOError):
            opened.accept()


def _address(listener: socket.socket) -> str:
    return f"127.0.0.1:{listener.getsockname()[1]}"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a clip in it."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(CLIP, tmp_path / "clip.mp4")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "text"), [("a.m3u8", HLS), ("live.mp4", LIVE), ("a.ffconcat", CONCAT), ("a.mpd", DASH), ("a.sdp", SDP)]
)
def test_lists_of_what_is_elsewhere_are_refused(folder: Path, listener: socket.socket, name: str, text: str) -> None:
    named = listener.getsockname()[1] if name == "a.sdp" else f"http://{_address(listener)}/clip.mp4"
    (folder / name).write_text(text.format(named))
    with pytest.raises(InputError, match=name):
        open_source(name)


@pytest.mark.parametrize(("name", "text"), [("a.m3u8", HLS), ("a.ffconcat", CONCAT)])
def test_lists_of_files_are_refused(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text.format("clip.mp4"))
    with av.open(name) as followed:
        assert followed.streams.video[0].width == 576, "FFmpeg itself follows it"
    with pytest.raises(InputError, match=r"lists .* such as HLS, DASH, SDP and concat, are not read\. Give the file itself"):
        open_source(name)


@pytest.mark.parametrize(
    "name",
    [
        *(f"{scheme}{{}}/clip.mp4" for scheme in ("http://", "http:/", "tcp://", "rtsp://", "ftp://")),
        *("concat:other.mp4|other.mp4", "file:other.mp4", "pipe:0", "subfile,,start,0,end,0,,:other.mp4", "data:,x"),
    ],
)
def test_a_path_is_never_an_address_or_a_protocol(folder: Path, listener: socket.socket, name: str) -> None:
    """Not even if there is a file of that name, in a folder called `http:`."""
    path = name.format(_address(listener))
    with pytest.raises(InputError, match=r"No such file|not supported: vkssim reads files, and URLs by"):
        open_source(path)
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / "clip.mp4").rename(folder / path)
    with open_source(path) as source:
        assert source.info.frames == 48


@pytest.mark.parametrize("name", ["frame_%d.png", "frame_*.png"])
def test_a_file_with_the_name_of_a_sequence_is_that_file(folder: Path, name: str) -> None:
    pictures = [noise_planes(32, 24, "400", 8, seed) for seed in range(2)]
    for file, planes in zip((name, "frame_1.png"), pictures, strict=True):
        encode_frames(folder / "made.png", [video_frame(32, 24, "gray", planes)], "png")
        (folder / "made.png").rename(folder / file)
    with open_source(name) as source:
        np.testing.assert_array_equal(read(source), pictures[0][0][None])


def test_sequences_in_a_folder_that_looks_like_a_protocol(folder: Path) -> None:
    (folder / "concat:").mkdir()
    planes = noise_planes(32, 24, "400", 8)
    encode_frames(folder / "made.png", [video_frame(32, 24, "gray", planes)], "png")
    (folder / "made.png").rename(folder / "concat:" / "frame_7.png")
    for path in ("concat:/frame_%d.png", "concat:/*.png"):
        with open_source(path) as source:
            np.testing.assert_array_equal(read(source), planes[0][None])


def test_data_of_mov_in_another_file_is_not_read(folder: Path) -> None:
    encode_frames(folder / "whole.mov", [video_frame(64, 48, "yuv420p", noise_planes(64, 48, "420", 8))], "mpeg4")
    (folder / "split.mov").write_bytes(_referring(folder / "whole.mov", b"whole.mov"))
    with av.open("split.mov", options={"enable_drefs": "1"}) as followed:
        assert len(list(followed.decode(video=0))) == 1, "FFmpeg itself can follow it"
    with pytest.raises(InputError, match="no frame can be decoded"):
        open_source("split.mov")


def _referring(path: Path, target: bytes) -> bytes:
    """The MOV of that path without its samples, which it has in a file `target` beside it, as QuickTime's aliases say."""
    data = bytearray(path.read_bytes())
    name = b"/" + target
    alias = bytes(10) + bytes(28) + bytes(12) + bytes(64) + bytes(16) + struct.pack(">HH", 1, 1) + bytes(16)
    alias += struct.pack(">HH", 2, len(name)) + name + bytes(len(name) % 2) + b"\xff\xff\x00\x00"
    entry = struct.pack(">I4sI", 12 + len(alias), b"alis", 0) + alias
    old = data.index(b"dref") + 12  # after name, version and count
    size = int.from_bytes(data[old : old + 4])
    for box in (b"moov", b"trak", b"mdia", b"minf", b"dinf", b"dref"):
        start = data.rindex(box, 0, old) - 4
        data[start : start + 4] = struct.pack(">I", int.from_bytes(data[start : start + 4]) + len(entry) - size)
    data[old : old + size] = entry
    samples = data.index(b"mdat") + 4
    length = int.from_bytes(data[samples - 8 : samples - 4]) - 8
    data[samples : samples + length] = bytes(length)
    return bytes(data)
