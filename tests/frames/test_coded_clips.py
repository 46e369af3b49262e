"""The clips for comparing decoders: each decodes, and has its frames and its special property."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from vkssim.frames.open import open_source

from ..support.coded_clip import CodedClip, Damaged, Encoded, EncoderError, Joined, write_reference
from ..support.coded_clips import CLIPS, DAMAGED, H264, SOUND
from ..support.coded_content import picture, woven
from ..support.damage import video_packets
from ..support.stream_headers import stream_headers
from .reading import NOTHING_SAID, read_planes

Write = Callable[[CodedClip], Path]

_DECODED_AS = {"gray": "yuv420p"}
"""The format of FFmpeg's decoder, if it differs from the encoded one."""


@pytest.fixture(scope="module")
def write(tmp_path_factory: pytest.TempPathFactory) -> Write:
    folder = tmp_path_factory.mktemp("clips")

    def write(clip: CodedClip) -> Path:
        path = folder / clip.name
        if not path.exists():
            clip.write(folder)
        return path

    return write


def _named(name: str) -> CodedClip:
    return next(clip for clip in CLIPS if clip.name == name)


def _decoded(path: Path) -> tuple[list[Any], str]:
    """Return the frames, in one thread, up to the error, and the error."""
    frames: list[Any] = []
    with av.open(str(path)) as container:
        container.streams.video[0].thread_type = "NONE"
        try:
            frames.extend(container.decode(video=0))
        except av.error.FFmpegError as error:
            return frames, str(error)
    return frames, ""


def _checksums(path: Path) -> tuple[list[int], str]:
    frames, error = _decoded(path)
    return [zlib.crc32(b"".join(plane.tobytes() for plane in frame.to_ndarray()[None])) for frame in frames], error


def test_the_table() -> None:
    assert len(SOUND) >= 36
    assert len({clip.name for clip in CLIPS}) == len(CLIPS)
    for clip in CLIPS:
        assert 40 <= clip.frames <= 90
        assert clip.width >= 144 or clip.codec == "h264", "NVDEC has a smallest size"
        assert clip.height >= 144 or clip.codec == "h264"
    assert {clip.codec for clip in SOUND} == {"h264", "hevc", "vp8", "vp9", "av1", "mpeg2video", "mpeg4", "mjpeg"}


@pytest.mark.parametrize("clip", SOUND, ids=lambda clip: clip.name)
def test_a_clip_has_what_it_is_for(write: Write, clip: CodedClip) -> None:
    path = write(clip)
    frames, error = _decoded(path)
    assert not error
    assert len(frames) == clip.frames
    parts = clip.parts if isinstance(clip, Joined) else (clip,)
    expected = {(_DECODED_AS.get(part.pixel_format, part.pixel_format), part.width, part.height) for part in parts}
    assert {(frame.format.name, frame.width, frame.height) for frame in frames} == expected
    assert len(expected) == len(parts)
    assert {frame.interlaced_frame for frame in frames} == {clip.field_order is not None}
    assert {abs(frame.rotation) for frame in frames} == {getattr(clip, "rotation", None) or 0}

    with av.open(str(path)) as container:
        packets = [packet for packet in container.demux(video=0) if packet.size]
    assert len(packets) == (clip.packets or clip.frames + clip.hidden)
    if path.suffix not in (".h264", ".hevc", ".avi"):  # those have no presentation times
        stamps = [packet.pts for packet in packets]
        assert (stamps != sorted(stamps, key=lambda stamp: stamp or 0)) == clip.reordered

    found = stream_headers(path) if clip.headers else {}
    assert {name: value for name, value in clip.headers.items() if value not in found.get(name, ())} == {}


@pytest.mark.parametrize(
    "name", ["h264_main.mp4", "h264_high10.mp4", "h264_mbaff_top.mp4", "hevc_main10.mp4", "vp9_odd.webm", "av1.mp4"]
)
def test_the_reference_is_what_was_encoded(tmp_path: Path, write: Write, name: str) -> None:
    """Each frame differs from all other frames."""
    clip = _named(name)
    with open_source(str(write_reference(clip, tmp_path)), NOTHING_SAID, chroma=True) as source:
        reference = read_planes(source, range(clip.frames + 1), 3)
    with open_source(str(write(clip)), NOTHING_SAID, chroma=True) as source:
        coded = read_planes(source, range(clip.frames + 1), 3)
    assert len(reference) == len(coded) == clip.frames
    assert source.info.bits == clip.bits
    for number in (0, 5, 30, clip.frames - 1):
        errors = [
            sum(np.abs(plane.astype(int) - other).mean() for plane, other in zip(coded[number], planes, strict=True))
            for planes in reference
        ]
        assert np.argmin(errors) == number


def test_hidden_frames_are_not_in_the_reference(tmp_path: Path) -> None:
    clip = _named("h264_edit_list.mp4")
    with open_source(str(write_reference(clip, tmp_path)), NOTHING_SAID) as source:
        planes = read_planes(source, range(100), 1)
    assert len(planes) == clip.frames
    np.testing.assert_array_equal(planes[0][0], picture(clip.hidden, clip.width, clip.height)[0])


def test_frames_come_at_uneven_times(write: Write) -> None:
    for name in ("h264_vfr.mkv", "hevc_vfr.mkv"):
        clip = _named(name)
        assert isinstance(clip, Encoded)
        assert clip.times is not None
        times = [frame.time for frame in _decoded(write(clip))[0]]
        np.testing.assert_allclose(times, clip.times, atol=1e-6)
        assert len({round(step, 3) for step in np.diff(times)}) > 3


def test_key_frames(write: Write) -> None:
    def keys(name: str) -> list[int]:
        with av.open(str(write(_named(name)))) as container:
            packets = (packet for packet in container.demux(video=0) if packet.size)
            return [number for number, packet in enumerate(packets) if packet.is_keyframe]

    assert keys("h264_long.mp4") == [0]
    assert keys("h264_intra.mov") == list(range(48))
    assert len(keys("h264_open_gop.ts")) > 3


def test_open_groups_of_pictures(write: Write) -> None:
    """Some key frames are followed by frames that are shown before them, and refer to frames before the key frame."""
    for name in ("h264_open_gop.ts", "hevc_open_gop.ts"):
        with av.open(str(write(_named(name)))) as container:
            packets = [packet for packet in container.demux(video=0) if packet.size]
        pairs = list(pairwise(packets))
        assert any(one.is_keyframe and (two.pts or 0) < (one.pts or 0) for one, two in pairs[1:])


def test_the_stream_is_cropped(write: Write) -> None:
    with av.open(str(write(_named("h264_cropped.mp4")))) as container:
        next(container.decode(video=0))
        codec = container.streams.video[0].codec_context
        assert (codec.coded_width, codec.coded_height) == (208, 160)


def test_fields_are_of_different_moments() -> None:
    first, second = picture(6, 192, 160), picture(7, 192, 160)
    for plane, top, bottom in zip(woven(3, 192, 160), first, second, strict=True):
        np.testing.assert_array_equal(plane[::2], top[::2])
        np.testing.assert_array_equal(plane[1::2], bottom[1::2])
        assert not np.array_equal(top, bottom)
    for plane, top, bottom in zip(woven(3, 192, 160, bottom_first=True), second, first, strict=True):
        np.testing.assert_array_equal(plane[::2], top[::2])
        np.testing.assert_array_equal(plane[1::2], bottom[1::2])


def test_the_field_order_is_the_stated_one(tmp_path: Path, write: Write) -> None:
    clips = [clip for clip in SOUND if clip.field_order]
    assert {clip.codec for clip in clips} == {"h264", "mpeg2video", "mpeg4"}
    for clip in clips:
        for path in (write(clip), write_reference(clip, tmp_path)):
            with open_source(str(path), NOTHING_SAID) as source:
                assert source.info.field_order == f"{clip.field_order} field first"


def test_pictures_are_always_the_same() -> None:
    def checksum(*planes: np.ndarray) -> int:
        return zlib.crc32(b"".join(plane.tobytes() for plane in planes))

    assert checksum(*picture(3, 197, 155)) == 740854514
    assert checksum(*picture(40, 192, 160, "422", 10)) == 1528594692


@pytest.mark.parametrize("clip", DAMAGED, ids=lambda clip: clip.name)
def test_damage_does_harm(write: Write, clip: Damaged) -> None:
    """The frames, or their number, differ from the sound clip."""
    assert clip.damaged
    assert write(clip).read_bytes() != write(clip.of).read_bytes()
    found, expected = _checksums(write(clip)), _checksums(write(clip.of))
    assert found != expected
    if clip.kind == "dropped":
        assert len(video_packets(write(clip))) == len(video_packets(write(clip.of))) - 1
    if clip.kind == "truncated":
        assert found[0] == expected[0][: len(found[0])]


@pytest.mark.parametrize("name", ["h264_pyramid.mkv", "hevc_pyramid.mkv", "vp9.webm", "vp8.webm", "av1.mp4", "mpeg2.ts"])
def test_an_encoder_writes_the_same_bytes_every_time(tmp_path: Path, write: Write, name: str) -> None:
    clip = _named(name)
    clip.write(tmp_path)
    assert video_packets(tmp_path / name) == video_packets(write(clip))


def test_an_encoder_that_refuses_is_an_error(tmp_path: Path) -> None:
    """It names the clip and what was refused; nothing is left out in silence."""
    clip = replace(_named("h264_main.mp4"), frames=2)
    assert isinstance(clip, Encoded)
    refused: list[tuple[dict[str, Any], str]] = [
        ({"encoder": "libx264", "options": {"x264-params": "bogus=1"}}, "bogus"),
        ({"encoder": "libx264", "options": {"bogus": "1"}}, "bogus"),
        ({"encoder": "libx264", "options": {"profile": "bogus"}}, "profile=bogus"),
        ({"encoder": "libx265", "options": {"x265-params": "bogus=1"}}, "bogus"),
        ({"encoder": "libsvtav1", "options": {"svtav1-params": "bogus=1"}}, "bogus"),
        ({"encoder": "libvpx-vp9", "pixel_format": "yuv420p10le", "options": {"profile": "1"}}, "yuv420p10le"),
        ({"encoder": "libnone", "options": {}}, "libnone"),
    ]
    for changes, named in refused:
        with pytest.raises(EncoderError, match=rf"^h264_main\.mp4: {changes['encoder']} of PyAV .* refuses .*{named}"):
            replace(clip, **changes).write(tmp_path)


def test_levels_of_messages_are_as_before(write: Write) -> None:
    write(H264[0])
    assert av.logging.get_level() is None
