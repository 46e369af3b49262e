"""Count the packets of a video stream."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ..info import VideoPackets


class PacketCount:
    """Add up packets as they are read. `complete` is True once all packets of the stream were added, each once.

    `hidden` counts packets that are decoded since others refer to them, and that are never presented.
    """

    def __init__(self) -> None:
        self.complete = False
        self.hidden = 0
        self._bytes = self._presented = 0
        self._timed = True
        self._first: int | None = None
        self._last: int | None = None
        self._last_duration = 0

    def add(self, packet: Any) -> None:
        """Add a packet; one without content, with which PyAV ends a stream, counts for nothing."""
        if not packet.size:
            return
        self._bytes += packet.size
        if packet.is_discard:
            self.hidden += 1
            return
        self._presented += 1
        if packet.pts is None:
            self._timed = False
            return
        self._first = packet.pts if self._first is None else min(self._first, packet.pts)
        if self._last is None or packet.pts > self._last:
            self._last, self._last_duration = packet.pts, packet.duration or 0

    def total(self, time_base: Fraction | None, fps: Fraction | None) -> VideoPackets:
        """Return all that was added.

        It lasts from the first presentation time to the last, and as long as the last is shown: by its own duration, else by
        the frame rate. Where packets have no presentation times, as in AVI, it lasts as long as so many frames at that rate.
        """
        seconds = None
        if self._timed and time_base and self._first is not None and self._last is not None:
            shown_last = self._last_duration * time_base or (1 / fps if fps else 0)
            seconds = (self._last - self._first) * time_base + shown_last
        elif self._presented and fps:
            seconds = self._presented / fps
        return VideoPackets(self._bytes, float(seconds) if seconds else None)


_ONE_FRAME_A_PACKET = frozenset(("h264", "hevc", "vvc", "av1", "libdav1d", "vp9", "mpeg1video", "mpeg2video", "ffv1"))
"""Decoders for which each packet is one frame with the packet's presentation time, unless the stream is interlaced."""

_WITHOUT_PRESENTATION_TIMES = frozenset(("asf", "avi", "mxf"))
"""Containers whose packets are frames, also of interlaced video; in other containers a packet may be a field."""

_PICTURE_OF_MPEG4 = b"\0\0\1\xb6"
"""The start code of a picture: ISO/IEC 14496-2, 6.2.5."""

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


class PacketOrder:
    """The times of packets in the order of the file, for containers that state no presentation times.

    AVI and ASF, MXF without an index, and packets of Xvid that have two pictures each state one time for each packet, in the
    order in which packets are decoded. A decoder that reorders the frames gives each frame the time of another one. Such times
    rise from packet to packet; presentation times go back as soon as frames are reordered.
    """

    def __init__(self, codec: str, container: str) -> None:
        self._codec = codec
        self._has_fields = container not in _WITHOUT_PRESENTATION_TIMES
        self.renumbered = False
        """Whether a frame got another time than its own."""
        self._packed = False
        self._rises = True
        self._first = 0  # the place of the packet of the first frame
        self._ticks: list[int] = []

    def add(self, packet: Any) -> None:
        """Add the next packet of the file that goes to the decoder."""
        if not self._rises:
            return
        if packet.pts is None or (self._ticks and packet.pts <= self._ticks[-1]):
            self.ignore()
            return
        self._ticks.append(packet.pts)
        if self._codec == "mpeg4" and not self._packed:
            self._packed = bytes(packet).count(_PICTURE_OF_MPEG4) > 1

    def begin(self, frame: Any) -> None:
        """Note the first frame; packets before its own gave none."""
        if frame.pts is None:
            self.ignore()
        self._first = bisect_left(self._ticks, frame.pts) if self._ticks else 0

    def ignore(self) -> None:
        """Give each frame its own time from now on."""
        self._rises = False
        self._ticks.clear()

    def tick(self, number: int, frame: Any, *, reorders: bool) -> int | None:
        """Return when the frame of that number is presented, in ticks; `reorders` says whether its decoder reorders frames."""
        own: int | None = frame.pts
        if not self._rises or own is None or not reorders:
            return own
        if not (self._packed or self._codec in _ONE_FRAME_A_PACKET) or (frame.interlaced_frame and self._has_fields):
            return own
        place = self._first + number
        tick = self._ticks[place] if place < len(self._ticks) else own
        self.renumbered |= tick != own
        return tick


def are_in_file_order(packets: Sequence[Packet], container: str) -> bool:
    """Return whether packets of a decoder that may reorder frames state the order of the file alone, see `PacketOrder`."""
    times = [packet.pts for packet in packets if packet.pts is not None]
    return container in _WITHOUT_PRESENTATION_TIMES and all(one < other for one, other in pairwise(times))


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
    numbers of these frames. A frame without a time, as in MPEG program streams, is shown `step` after the one before it, which
    is the duration of the frame before that, or the one that is given.
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
            if self._last is not None:
                self._last += self._step
            self.ticks.append(self._last)
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
