"""Find the presentation times of a stream's frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

_ONE_FRAME_A_PACKET = frozenset(("h264", "hevc", "vvc", "av1", "libdav1d", "vp9", "mpeg1video", "mpeg2video", "ffv1"))
"""Decoders for which each packet is one frame with the packet's presentation time, unless the stream is interlaced."""

SEEK_SECONDS = 0, 1, 4, 16
"""How long before a frame to seek: without an index, FFmpeg goes by decoding times, and past key frames."""

_JUMP_SECONDS = 1.0
"""Times that go back further than this begin anew: the stream was joined from several."""


@dataclass(frozen=True)
class Packet:
    """Hold what a container says of a packet: its times in ticks, and whether a decoder can begin with it."""

    pts: int | None
    dts: int | None
    is_key: bool
    is_corrupt: bool


def are_in_file_order(container: Any, stream: Any) -> bool:
    """Return whether a container says when frames are decoded, and of frames that are shown in another order nothing else.

    AVI has a place for each frame in the order of the file. FFmpeg works out when they are shown for the codecs of its time.
    """
    codec = stream.codec_context.codec
    return container.format.name == "avi" and codec.name in ("h264", "hevc")


def packets_are_frames(packets: Sequence[Packet], codec: Any, *, interlaced: bool) -> bool:
    """Return whether each packet is sure to be a frame that is shown at the packet's time; else only decoding tells."""
    if interlaced or not (codec.intra_only or codec.name in _ONE_FRAME_A_PACKET):
        return False
    times = [packet.pts for packet in packets]
    if None in times or len(set(times)) < len(times) or any(packet.is_corrupt for packet in packets):
        return False
    return are_rising(packets)


def are_rising(packets: Sequence[Packet]) -> bool:
    """Return True where packets are decoded in the order in which they lie in the file: not where two streams were joined."""
    decoded = [packet.dts for packet in packets if packet.dts is not None]
    return all(first <= second for first, second in pairwise(decoded))


class FrameTimes:
    """Record the times of frames in ticks, one after the other as they are decoded.

    Times that go back by more than a second continue after the frames before, since streams were joined there; `jumps` has the
    numbers of these frames. `step` is the duration of a frame, where the frame before it does not give one.
    """

    def __init__(self, step: int, second: int) -> None:
        self._step = step
        self._second = second
        self._offset = 0
        self._last: int | None = None
        self.ticks: list[int | None] = []
        self.jumps: list[int] = []

    def add(self, pts: int | None) -> None:
        """Note when the next frame is shown."""
        if pts is None:
            self.ticks.append(None)
            return
        time = pts + self._offset
        if self._last is not None:
            if time < self._last - _JUMP_SECONDS * self._second:
                self._offset += self._last + self._step - time
                self.jumps.append(len(self.ticks))
                time = self._last + self._step
            elif 0 < time - self._last < self._second:
                self._step = time - self._last
        self._last = time
        self.ticks.append(time)

    def restart(self) -> None:
        """Forget all, to begin at another frame."""
        self._offset, self._last = 0, None
        self.ticks.clear()
        self.jumps.clear()


def rising_seconds(ticks: Sequence[int], first: int, time_base: float) -> npt.NDArray[np.float64]:
    """Return times in seconds from a first one; what is a little out of order is shown with the frame before."""
    seconds: npt.NDArray[np.float64] = (np.maximum.accumulate(np.array(ticks, np.int64)) - first) * time_base
    return seconds
