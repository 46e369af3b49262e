"""Read YUV4MPEG2 (Y4M), as mjpegtools and FFmpeg write it.

Source: https://wiki.multimedia.cx/index.php/YUV4MPEG2
"""

from __future__ import annotations

import io
import os
import re
from fractions import Fraction
from typing import Any

from ..errors import InputError
from ..utils.limits import LONGEST_LINE, LONGEST_SHOWN, abbreviated
from .raw import PlanarLayout, PlanarStream, truncated
from .source import KeyframeIndex

MAGIC = b"YUV4MPEG2"
_FRAME = b"FRAME\n"
_COLOUR_SPACE = re.compile(r"(420jpeg|420mpeg2|420paldv|420|422|411|444alpha|444|mono)(?:p?(9|10|12|14|16))?$")
_FIELD_ORDERS = {"p": "progressive", "t": "top field first", "b": "bottom field first", "m": "interlaced"}
_RANGES = {"XCOLORRANGE=FULL": "full", "XCOLORRANGE=LIMITED": "limited"}  # FFmpeg's own extension


class Y4mStream(PlanarStream):
    """The frames of a Y4M stream, which its header describes."""

    def __init__(self, path: str, stream: io.BufferedReader) -> None:
        line = stream.readline(LONGEST_LINE)
        layout, stated = parse_header(path, line)
        super().__init__(stream, layout.info(path, "Y4M", **stated), layout, position=len(line))
        self._start = len(line)
        if stream.seekable():
            position = stream.tell()
            self.file_bytes = stream.seek(0, os.SEEK_END)
            stream.seek(position)
            size = self.file_bytes - self._start
            if 0 < size < layout.frame_bytes:  # raised before memory for such a frame is allocated
                raise truncated(path, 0, self._start, self.file_bytes, layout.frame_bytes)
            self.expected = size // (len(_FRAME) + self._frame_bytes)  # exact if no FRAME line has parameters

    def seek_index(self) -> KeyframeIndex | None:
        """Return the positions of frames; None unless the size is a whole number of frames without parameters."""
        frame_bytes = len(_FRAME) + self._frame_bytes
        if self.file_bytes is None or (self.file_bytes - self._start) % frame_bytes:
            return None
        starts = range(self._start, self.file_bytes, frame_bytes)
        return KeyframeIndex(starts, range(len(starts)))

    def seek(self, number: int, position: int) -> None:
        """Continue with the frame at that position."""
        self._stream.seek(position)
        self._offset, self._position = position, number

    def _was_last(self, position: int) -> bool:
        return super()._was_last(position + len(_FRAME))

    def _frame_header(self) -> bool:
        line = self._stream.readline(LONGEST_LINE)
        start = self._offset
        self._offset += len(line)
        if not line:
            return False
        if not (line.startswith((_FRAME, b"FRAME ")) and line.endswith(b"\n")):
            self.problem = InputError(
                f"{self.info.path}: no FRAME header at byte {start}, where frame {self._position} should begin"
            )
            return False
        return True


def parse_header(path: str, line: bytes) -> tuple[PlanarLayout, dict[str, Any]]:
    """Return the layout and fields of `VideoInfo` by the header line, None for those it does not state. Raises InputError."""
    words = line.decode("ascii", errors="replace").split()
    if not words or words[0] != MAGIC.decode() or not line.endswith(b"\n"):
        raise InputError(f"{path}: no complete YUV4MPEG2 header line at its start")
    fields = {word[0]: word[1:] for word in words[1:] if word[0] != "X"}
    width, height = (_number(path, fields, key) for key in "WH")
    match = _COLOUR_SPACE.match(fields.get("C", "420"))
    if not match:
        raise InputError(
            f"{path}: Y4M colour space C{fields['C'][:LONGEST_SHOWN]} is unknown; 420 420jpeg 420mpeg2 420paldv 422 411 444"
            " 444alpha mono and their p9 p10 p12 p14 p16 forms can be read"
        )
    family, bits = match.groups()
    pixel_format = "400" if family == "mono" else "420" if family.startswith("420") else family
    stated = {
        "fps": _ratio(fields.get("F", "")),
        "field_order": _FIELD_ORDERS.get(fields.get("I", "")),
        "range": next((_RANGES[word] for word in words if word in _RANGES), None),
        "sample_aspect": _ratio(fields.get("A", "")),
    }
    try:
        return PlanarLayout(width, height, pixel_format, int(bits or 8)), stated
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _ratio(text: str) -> Fraction | None:
    """Return a ratio such as 25:1; None for 0:0, which means that it is not known."""
    match = re.fullmatch(r"(\d{1,9}):(\d{1,9})", text)
    return Fraction(int(match[1]), int(match[2])) if match and int(match[1]) and int(match[2]) else None


def _number(path: str, fields: dict[str, str], key: str) -> int:
    text = fields.get(key, "")
    if not (text.isascii() and text.isdecimal() and len(text) < 9):
        raise InputError(f"{path}: the Y4M header gives {key} as {abbreviated(text)}; a number of samples is needed")
    return int(text)
