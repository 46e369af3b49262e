"""The clips for comparing decoders: each decodes, and has its frames and its special property."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from ..support.coded_clip import CodedClip, Joined, write_reference
from ..support.coded_clips import CLIPS, SOUND
from ..support.stream_headers import stream_headers
from .reading import open_source, read_planes

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


@pytest.mark.parametrize("clip", SOUND, ids=lambda clip: clip.name)
def test_a_clip_has_what_it_is_for(write: Write, clip: CodedClip) -> None:
    path = write(clip)
    with av.open(str(path)) as container:
        frames: list[Any] = list(container.decode(video=0))
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
    with open_source(str(write_reference(clip, tmp_path)), chroma=True) as source:
        reference = read_planes(source, range(clip.frames + 1), 3)
    with open_source(str(write(clip)), chroma=True) as source:
        coded = read_planes(source, range(clip.frames + 1), 3)
    assert len(reference) == len(coded) == clip.frames
    assert source.info.bits == clip.bits
    for number in (0, 5, 30, clip.frames - 1):
        errors = [
            sum(np.abs(plane.astype(int) - other).mean() for plane, other in zip(coded[number], planes, strict=True))
            for planes in reference
        ]
        assert np.argmin(errors) == number
