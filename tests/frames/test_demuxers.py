"""Files that point to other files, or to a network, are refused; names that look like a protocol are names."""

from __future__ import annotations

from pathlib import Path

import pytest

from vkssim.errors import InputError
from vkssim.frames.demuxers import demuxer_options
from vkssim.frames.open import RawDescription, open_source
from vkssim.ladder.bitrate import measured_kbps

from ..clips import write
from ..pictures import texture
from .test_container import encode

PLAYLIST = "#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\n{}\n"  # no end: FFmpeg would wait for more of it
SESSION = "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video 5004 RTP/AVP 96\na=rtpmap:96 H264/90000\n"
DASH = '<?xml version="1.0"?>\n<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="dynamic"><Period/></MPD>\n'


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    luma = (texture(24, 32, 1)[None] * 255).astype("uint8")
    return Path(encode(tmp_path / "clip.mkv", luma, "ffv1", "gray"))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("live.m3u8", PLAYLIST.format("clip.mkv")),
        ("live.mp4", PLAYLIST.format("clip.mkv")),
        ("session.sdp", SESSION),
        ("list.ffconcat", "ffconcat version 1.0\nfile clip.mkv\n"),
        ("manifest.mpd", DASH),
    ],
)
def test_files_that_point_to_others_are_refused(tmp_path: Path, clip: Path, name: str, content: str) -> None:
    path = write(tmp_path / name, content.encode())
    with pytest.raises(InputError, match="FFmpeg cannot open it"):
        open_source(path, RawDescription())
    assert measured_kbps(path) is None


def test_name_that_looks_like_a_protocol(tmp_path: Path, clip: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("data:clip.mkv", "concat:clip.mkv|clip.mkv"):
        Path(name).hardlink_to(clip)
        with open_source(name, RawDescription()) as source:
            assert (source.info.width, source.info.height) == (32, 24)


def test_the_containers_of_the_documentation_are_not_refused() -> None:
    allowed = demuxer_options()["format_whitelist"].split(",")
    assert {"mov", "matroska", "avi", "mpegts", "mxf", "image2", "png_pipe", "gif", "ivf", "h264", "hevc", "ogg"} <= set(
        allowed
    )
    assert not {"hls", "sdp", "dash", "concat", "rtsp"} & set(allowed)
