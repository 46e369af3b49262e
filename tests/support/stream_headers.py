"""Read what the headers of a video stream say, by FFmpeg's filter trace_headers."""

from __future__ import annotations

import re
from pathlib import Path

import av
from av.bitstream import BitStreamFilterContext

_ELEMENT = re.compile(r"\d+\s+(\S+)\s+[01]+ = (-?\d+)\s*$")


def stream_headers(path: Path) -> dict[str, set[int]]:
    """Return the values that each element of the headers has somewhere in the stream; H.264, HEVC, VP9, AV1 and MPEG-2."""
    before = av.logging.get_level(), av.logging.get_skip_repeated()
    av.logging.set_level(av.logging.INFO)
    av.logging.set_skip_repeated(False)
    try:
        with av.logging.Capture(local=False) as messages, av.open(str(path)) as container:
            stream = container.streams.video[0]
            headers = BitStreamFilterContext("trace_headers", stream)
            for packet in container.demux(stream):
                if packet.size:
                    headers.filter(packet)
    finally:
        av.logging.set_level(before[0])
        av.logging.set_skip_repeated(before[1])
    found: dict[str, set[int]] = {}
    for _, _, text in messages:
        if element := _ELEMENT.search(text):
            found.setdefault(element[1], set()).add(int(element[2]))
    return found
