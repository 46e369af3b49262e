"""FFmpeg's demuxers, held to the file that they are given: no network, and no file that another one names."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from typing import Any

_ELSEWHERE = frozenset(
    ("avisynth", "concat", "dash", "hls", "imf", "lavfi", "rtp", "rtsp", "sap", "sdp", "vapoursynth", "webm_dash_manifest")
)
"""Formats that name what is to be read, or are programs that say it."""

_CONFINED = {
    "protocol_whitelist": "file",
    "enable_drefs": "0",  # data of MOV in other files
    "pattern_type": "none",  # of image2, for which a picture named frame_%d.png would else stand for others as well
}


def open_container(path: str, format: str | None = None, options: Mapping[str, str] | None = None) -> Any:
    """Open a file, or by `format` image2 the files of a sequence. Raises av.FFmpegError or OSError."""
    import av  # here, since it is not quick and only containers need it

    return av.open(_local(path), format=format, options={**_CONFINED, "format_whitelist": _formats(), **(options or {})})


def _local(path: str) -> str:
    """A path that nobody takes for a URL: a file may have a name such as `http:` or `concat:a|b`."""
    return path if os.path.isabs(path) else os.path.join(os.curdir, path)


@cache
def _formats() -> str:
    from av import formats_available

    return ",".join(sorted({name for names in formats_available for name in names.split(",")} - _ELSEWHERE))
