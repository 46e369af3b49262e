"""Restrict FFmpeg's demuxers to the file that they are given: no network, and no file that another one names."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

from ...storage.remote import is_url, open_url
from ...utils.limits import MOST_PIXELS
from ..sequence import sequence
from .ffmpeg_log import parked

_ELSEWHERE = frozenset(
    (
        "avisynth",
        "concat",
        "dash",
        "dvdvideo",
        "hls",
        "imf",
        "lavfi",
        "rtp",
        "rtsp",
        "sap",
        "sdp",
        "vapoursynth",
        "webm_dash_manifest",
    )
)
"""Formats that are refused: they name other files, wait for data yet to come, or are programs."""

_OPENS_BY_NAME = frozenset(("image2",))
"""Formats that open files of a name themselves, where they are to read what they are given; pictures have others as well."""

MOST_PIXELS_OPTION = {"max_pixels": str(MOST_PIXELS)}
"""Options of decoders, which check them before they take memory for a frame; FFmpeg also probes files with decoders."""

_CONFINED = {
    "protocol_whitelist": "file",
    "enable_drefs": "0",  # no data of MOV from other files
    "pattern_type": "none",  # a picture named frame_%d.png is itself, and stands for no others
    **MOST_PIXELS_OPTION,
}


_LEAVES_TAGS = 19


def open_container(path: str, format: str | None = None, options: Mapping[str, str] | None = None, hwaccel: Any = None) -> Any:
    """Open a file, also by URL, or by `format` image2 the files of a sequence.

    `hwaccel` asks for a hardware decoder, see `HardwareDecoder.request`. Raises av.FFmpegError, OSError or ValueError;
    RuntimeError where no stream has such a decoder.
    """
    import av  # here, since its import takes time and only containers need it

    remote = is_url(path)
    confined = {**_CONFINED, "format_whitelist": _formats(remote), **(options or {})}
    # Tags may be in any encoding; from 19 on PyAV takes them as they are.
    tags: dict[str, Any] = {"metadata_errors": "replace"} if int(av.__version__.partition(".")[0]) < _LEAVES_TAGS else {}
    return av.open(open_url(path) if remote else local_name(path), format=format, options=confined, hwaccel=hwaccel, **tags)


@contextmanager
def open_clip(path: str) -> Iterator[Any]:
    """Open a file, or the pictures of a sequence that a path names; errors as those of `open_container`, and InputError.

    Its streams may be decoded with threads: those have stopped when the container is closed.
    """
    pictures = sequence(path)
    with open_container(path) if pictures is None else open_container(pictures.name, "image2", pictures.options) as container:
        codecs = [stream.codec_context for stream in container.streams if stream.codec_context is not None]
        with parked(*codecs):
            yield container


def local_name(path: str) -> str:
    """Return a path that nobody takes for a URL: a file may have a name such as `http:` or `concat:a|b`."""
    return path if os.path.isabs(path) else os.path.join(os.curdir, path)


@cache
def _formats(remote: bool) -> str:
    from av import formats_available

    refused = _ELSEWHERE | _OPENS_BY_NAME if remote else _ELSEWHERE
    return ",".join(sorted(names for names in formats_available if not refused & set(names.split(","))))
