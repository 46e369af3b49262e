#!/usr/bin/env python3
"""Do what the pages ask of FFmpeg's command line, with the same libraries: decode one clip, and write it in another form."""

from __future__ import annotations

import argparse
import sys
from fractions import Fraction
from typing import Any

import av

_CODECS = {"yuv4mpegpipe": "wrapped_avframe"}
"""The codec that FFmpeg takes for a format if the command line names none."""


def main() -> None:
    """Read the arguments, and write the clip."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("-v", choices=["error"])
    parser.add_argument("-y", action="store_true")
    parser.add_argument("-i", required=True)
    parser.add_argument("-c:v", dest="codec")
    parser.add_argument("-crf")
    parser.add_argument("-f", dest="format", choices=list(_CODECS))
    parser.add_argument("-strict", choices=["-1"])
    parser.add_argument("output")
    given = parser.parse_args()
    codec: Any = given.codec or _CODECS[given.format]
    output = sys.stdout.buffer if given.output == "-" else given.output
    options = {"strict": given.strict} if given.strict else {}
    with av.open(given.i) as source, av.open(output, "w", format=given.format, options=options) as target:
        read = source.streams.video[0]
        rate = Fraction(read.average_rate or 25)
        stream = target.add_stream(codec, rate=rate)
        assert isinstance(stream, av.VideoStream)
        stream.width, stream.height, stream.pix_fmt = read.width, read.height, read.format.name
        if given.crf:
            stream.options = {"crf": given.crf}
        for number, frame in enumerate(source.decode(read)):
            frame.pts, frame.time_base = number, 1 / rate
            frame.pict_type = av.video.frame.PictureType.NONE
            target.mux(stream.encode(frame))
        target.mux(stream.encode())


if __name__ == "__main__":
    main()
