"""What FFmpeg may open for a file of somebody else's: that file, and nothing that it points to."""

from __future__ import annotations

import functools

from ..limits import MOST_PIXELS

_REFUSED = {"concat", "dash", "dvdvideo", "hls", "imf", "rtp", "rtsp", "sap", "sdp", "webm_dash_manifest"}
"""Demuxers that open other files, or wait for what comes over a network or what is yet to be written."""

MOST_PIXELS_OPTION = {"max_pixels": str(MOST_PIXELS)}
"""For decoders, which ask it before they take memory for a frame."""


@functools.cache
def demuxer_options() -> dict[str, str]:
    """The options to open a file with; those of decoders too, which FFmpeg uses to find out what is in it."""
    from av import formats_available

    demuxers = sorted(name for name in formats_available if not _REFUSED & set(name.split(",")))
    return {"protocol_whitelist": "file", "format_whitelist": ",".join(demuxers), **MOST_PIXELS_OPTION}
