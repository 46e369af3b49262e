"""Open containers with PyAV, without any access to the network or to other files, and choose their video stream."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

from ..errors import InputError
from ..utils.ffmpeg_log import parked
from ..utils.limits import MAX_PIXELS
from . import urls
from .inputs import PictureSequence, sequence
from .location import is_url

_LISTS = "concat", "dash", "hls", "imf", "sdp", "webm_dash_manifest"  # they name other files
_OTHERS = "avisynth", "dvdvideo", "lavfi", "rtp", "rtsp", "sap", "vapoursynth"  # they wait for future data, or are programs
_OPENS_BY_NAME = "image2"  # even if it is given data; for pictures, there are other formats

MAX_PIXELS_OPTION = {"max_pixels": str(MAX_PIXELS)}
"""Options of decoders, which check the size before they allocate a frame. FFmpeg also probes files with decoders."""

_CONFINED = {
    "protocol_whitelist": "file",
    "enable_drefs": "0",  # MOV: no data from other files
    "pattern_type": "none",  # a picture named frame_%d.png is one file, not a pattern
    **MAX_PIXELS_OPTION,
}

_DECODE_NOTHING = {"skip_frame": "all"}
_LEAVES_TAGS = 19  # the version of PyAV

BOXES = (b"ftyp", b"moov", b"mdat", b"styp", b"free", b"skip", b"wide", b"moof")
"""The possible names of the first box of an MP4 or MOV file (ISO/IEC 14496-12)."""


def open_container(
    path: str, pictures: PictureSequence | None = None, hwaccel: Any = None, *, packets_only: bool = False
) -> Any:
    """Open a file, also by URL, or the `pictures` that the path names.

    `hwaccel` requests a hardware decoder, see `HardwareDecoder.request`. With `packets_only`, FFmpeg decodes no frames to learn
    more about the streams, which saves 0.06 s for H.264 of 1080p; packets of other containers than MP4 may then have other
    times. Raises av.FFmpegError, OSError or ValueError; RuntimeError if no stream has such a decoder.
    """
    import av  # here, because its import takes time and only containers need it

    remote = is_url(path)
    name, options, format = (path, {}, None) if pictures is None else (pictures.name, pictures.options, "image2")
    confined = {**_CONFINED, "format_whitelist": _formats(remote), **options, **(_DECODE_NOTHING if packets_only else {})}
    # Tags may be in any encoding; PyAV 19 and later takes them as they are.
    tags: dict[str, Any] = {"metadata_errors": "replace"} if int(av.__version__.partition(".")[0]) < _LEAVES_TAGS else {}
    return av.open(
        urls.open_url(path) if remote else local_name(name), format=format, options=confined, hwaccel=hwaccel, **tags
    )


@contextmanager
def open_clip(path: str) -> Iterator[Any]:
    """Open a file or a sequence; threads of its decoders are stopped at the end. Raises as `open_container`, and InputError."""
    with open_container(path, sequence(path)) as container:
        codecs = [stream.codec_context for stream in container.streams if stream.codec_context is not None]
        with parked(*codecs):
            yield container


def local_name(path: str) -> str:
    """Return a path that FFmpeg does not take for a URL: a file may have a name such as `http:` or `concat:a|b`."""
    return path if os.path.isabs(path) else os.path.join(os.curdir, path)


@cache
def _formats(remote: bool) -> str:
    from av import formats_available

    refused = {*_LISTS, *_OTHERS, *([_OPENS_BY_NAME] if remote else [])}
    return ",".join(sorted(names for names in formats_available if not refused & set(names.split(","))))


def lacks_index(path: str) -> bool:
    """Return whether a file that FFmpeg cannot open is MP4 or MOV. Then its index is missing or damaged."""
    with suppress(OSError):
        if is_url(path):
            return urls.read(path, 0, 8)[4:] in BOXES
        with open(path, "rb") as file:
            return file.read(8)[4:] in BOXES
    return False


def choose_stream(path: str, container: Any, number: int | None) -> Any:
    """Return the video stream to score.

    `number` is the index of the stream in the file, as ffprobe shows it. If it is None, the choice is the first stream with the
    default mark, otherwise the first one, but never a cover picture, nor a still of AVIF or HEIF beside tracks. Raises
    InputError if there is no such stream, or if a picture consists of tiles.
    """
    streams = list(container.streams.video)
    if not streams:
        raise InputError(f"{path} has no video stream")
    if number is not None:
        named = next((stream for stream in streams if stream.index == number), None)
        if named is None:
            raise InputError(f"{path} has no video stream {number}; it has {listed_streams(streams)}")
        return named
    pictures = [stream for stream in streams if not _has(stream, "attached_pic")]
    if not pictures:
        raise InputError(f"{path} has no video stream, only cover pictures; it has {listed_streams(streams)}")
    pictures = [stream for stream in pictures if not _is_still(container, stream)] or pictures
    whole = [stream for stream in pictures if not _has(stream, "dependent")]
    default = next((stream for stream in whole if _has(stream, "default")), None)
    if default is None and len(whole) < len(pictures) and (not whole or "mov" in container.format.name):
        raise InputError(
            f"{path} is a picture of {len(pictures) - len(whole)} tiles, which vkssim does not assemble; it has"
            f" {listed_streams(streams)}. Convert it, for instance with `heif-dec IN OUT.png` or `avifdec IN OUT.png`"
        )
    return default or whole[0]


def _is_still(container: Any, stream: Any) -> bool:
    """Return whether a stream is an item of AVIF or HEIF (ISO/IEC 23008-12), which has no duration, unlike a track."""
    return "mov" in container.format.name and stream.frames == 1 and not stream.duration and stream.time_base == 1


def listed_streams(streams: Iterable[Any]) -> str:
    """Return the indices of streams with their descriptions, for a message."""
    return ", ".join(f"{stream.index} ({_described(stream)})" for stream in streams)


def _described(stream: Any) -> str:
    codec = stream.codec_context
    marks = [mark.replace("_", " ") for mark in ("default", "attached_pic", "dependent") if _has(stream, mark)]
    size = [] if codec is None else [f"{codec.name} {codec.width}x{codec.height}"]
    return ", ".join(size + marks) or "unknown"


def _has(stream: Any, mark: str) -> bool:
    from av.stream import Disposition

    return bool(stream.disposition & Disposition[mark])
