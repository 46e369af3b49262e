"""Open containers with PyAV, without any access to the network or to other files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from ..utils.ffmpeg_log import parked
from ..utils.limits import MAX_PIXELS
from .inputs import PictureSequence, sequence
from .location import is_url
from .urls import open_url

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
    return av.open(open_url(path) if remote else local_name(name), format=format, options=confined, hwaccel=hwaccel, **tags)


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
