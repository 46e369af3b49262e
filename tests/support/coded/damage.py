"""Damage to the packets of a video stream."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import av

_STRAY_BYTES = 24


def video_packets(path: Path) -> list[bytes]:
    """Return the packets of the first video stream, in the order of the file."""
    with av.open(str(path)) as container:
        return [bytes(packet) for packet in container.demux(video=0) if packet.size]


def with_stray_bytes(path: Path, numbers: Sequence[int], seed: int) -> bytes:
    """Return a file with random bytes within these packets, after their first quarter, where slices have their samples."""
    chance, data, packets = random.Random(seed), bytearray(path.read_bytes()), video_packets(path)
    for number in numbers:
        packet = packets[number]
        at = data.index(packet) + chance.randrange(len(packet) // 4, len(packet) // 2)
        data[at : at + _STRAY_BYTES] = chance.randbytes(_STRAY_BYTES)
    return bytes(data)


def remux(path: Path, target: Path, change: Callable[[int, bytes], bytes | None]) -> None:
    """Copy a video stream with the bytes that `change` returns for the number and bytes of each packet; None leaves it out."""
    with av.open(str(path)) as source, av.open(str(target), "w") as output:
        stream: Any = output.add_stream_from_template(source.streams.video[0])
        packets = (packet for packet in source.demux(video=0) if packet.size)
        for number, packet in enumerate(packets):
            data = change(number, bytes(packet))
            if data is None:
                continue
            copy = av.Packet(data)
            copy.pts, copy.dts, copy.duration, copy.time_base = packet.pts, packet.dts, packet.duration, packet.time_base
            copy.is_keyframe, copy.stream = packet.is_keyframe, stream
            output.mux(copy)
