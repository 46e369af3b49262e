"""H.264 whose fields are coded one by one (PAFF), which no encoder at hand makes: written bit by bit, ITU-T H.264, 7.3."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

import av
import numpy as np

from ..support.pictures import Picture

_MAIN_PROFILE, _LEVEL = 77, 30
_SLICE, _IDR_SLICE, _SPS, _PPS = 1, 5, 7, 8
_ALL_SLICES_INTRA, _PCM_BLOCK = 7, 25
_DELIMITER = b"\0\0\0\1\x09\xf0"


class _Bits:
    def __init__(self) -> None:
        self._bits = bytearray()  # a byte each

    def u(self, count: int, *values: int) -> Self:
        """Unsigned numbers of so many bits."""
        for value in values:
            self._bits += bytes(value >> place & 1 for place in range(count - 1, -1, -1))
        return self

    def ue(self, *values: int) -> Self:
        """Unsigned numbers in Exp-Golomb codes."""
        for value in values:
            count = (value + 1).bit_length()
            self.u(count - 1, 0).u(count, value + 1)
        return self

    def octets(self, data: bytes) -> Self:
        """Whole bytes, much sooner than `u` does it."""
        self._bits += np.unpackbits(np.frombuffer(data, np.uint8)).tobytes()
        return self

    def align(self) -> Self:
        return self.u(-len(self._bits) % 8, 0)

    def payload(self) -> bytes:
        self.u(1, 1).align()
        return np.packbits(np.frombuffer(self._bits, np.uint8)).tobytes()


def _unit(kind: int, payload: bytes) -> bytes:
    """A NAL unit of reference, with its payload escaped so that it contains no start code."""
    return b"\0\0\0\1" + bytes([3 << 5 | kind]) + re.sub(rb"\0\0(?=[\0-\3])", b"\0\0\3", payload)


def _field(rows: Picture, frame: int, bottom: int) -> bytes:
    slice_ = _Bits().ue(0, _ALL_SLICES_INTRA, 0).u(4, 0).u(1, 1, bottom)
    if not bottom:
        slice_.ue(frame % 2)
    slice_.u(8, bottom).u(1, *((0,) if bottom else (0, 0))).ue(0, 1)
    for top in range(0, rows.shape[0], 16):
        for left in range(0, rows.shape[1], 16):
            block = rows[top : top + 16, left : left + 16].tobytes() + bytes([128]) * 128
            slice_.ue(_PCM_BLOCK).align().octets(block)
    return _DELIMITER + _unit(_SLICE if bottom else _IDR_SLICE, slice_.payload())


def write_fields(path: Path, luma: Picture) -> str:
    """Put (frames, H, W) uint8 into a container, a packet a field and exact; H is a multiple of 32, W of 16."""
    height, width = luma.shape[1:]
    sps = (
        _Bits()
        .u(8, _MAIN_PROFILE, 0, _LEVEL)
        .ue(0, 0, 0, 4, 1)
        .u(1, 0)
        .ue(width // 16 - 1, height // 32 - 1)
        .u(1, 0, 0, 1, 0, 0)
    )
    pps = _Bits().ue(0, 0).u(1, 0, 0).ue(0, 0, 0).u(1, 0).u(2, 0).ue(0, 0, 0).u(1, 1, 0, 0)
    parameters = _unit(_SPS, sps.payload()) + _unit(_PPS, pps.payload())
    raw = path.with_suffix(".h264")
    fields = [(number, picture[bottom::2], bottom) for number, picture in enumerate(luma) for bottom in (0, 1)]
    raw.write_bytes(b"".join((b"" if bottom else parameters) + _field(rows, number, bottom) for number, rows, bottom in fields))
    with av.open(str(raw)) as source, av.open(str(path), "w") as target:
        stream: Any = target.add_stream_from_template(source.streams.video[0])
        stream.time_base = Fraction(1, 50)
        packets = [packet for packet in source.demux(video=0) if packet.size]
        for number, packet in enumerate(packets):
            packet.stream, packet.time_base, packet.duration = stream, Fraction(1, 50), 1
            packet.pts = packet.dts = number
            target.mux(packet)
    return str(path)
