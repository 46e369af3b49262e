"""The sizes and presentation times of the packets and frames that a decoder reads."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from heapq import heappop, heappush
from typing import Any

from ..info import VideoPackets


@dataclass
class PacketCount:
    """The totals of the packets that were read."""

    bytes: int = 0
    presented: int = 0
    hidden: int = 0
    """The packets that are decoded only because others refer to them."""
    first: int | None = None
    """The first presentation time, in ticks."""
    last: int | None = None
    last_duration: int = 0
    """The duration of the last frame; 0 if it is not known."""
    timed: bool = True
    """Whether all packets that are presented have a time."""
    complete: bool = False
    """Whether all packets of the stream were added, each once."""

    def add(self, packet: Any) -> None:
        """Add a packet. The empty packet with which PyAV ends a stream does not count."""
        size = packet.size
        if not size:
            return
        self.bytes += size
        if packet.is_discard:
            self.hidden += 1
            return
        self.presented += 1
        pts = packet.pts
        if pts is None:
            self.timed = False
            return
        self.first = pts if self.first is None else min(self.first, pts)
        if self.last is None or pts > self.last:
            self.last, self.last_duration = pts, packet.duration or 0

    def total(self, time_base: Fraction, fps: Fraction | None) -> VideoPackets:
        """Return the totals. The last frame lasts for its own duration, otherwise as long as a frame at the frame rate.

        If packets have no presentation times, as in AVI, the duration is the number of frames divided by the frame rate.
        """
        seconds = Fraction(0)
        if self.timed and self.first is not None and self.last is not None:
            seconds = (self.last - self.first) * time_base + (self.last_duration * time_base or (1 / fps if fps else 0))
        elif fps:
            seconds = self.presented / fps
        return VideoPackets(self.bytes, float(seconds) or None)


ONE_FRAME_A_PACKET = frozenset(("h264", "hevc", "vvc", "av1", "libdav1d", "vp9", "mpeg1video", "mpeg2video", "ffv1"))
"""Decoders that make one frame of each packet, with the packet's presentation time, unless the stream is interlaced."""

WITHOUT_PRESENTATION_TIMES = frozenset(("asf", "avi", "mxf"))
"""Containers whose packets are frames, even of interlaced video. In other containers, a packet may be a field."""


class FramesDue:
    """The packets whose frames have not been returned yet, by their presentation times."""

    def __init__(self) -> None:
        self.newest: int | None = None
        """The latest presentation time of all packets."""
        self._times: list[int] = []  # a heap
        self._left = 0
        self._first: int | None = None
        self.is_timed = True
        """Whether all packets and frames have presentation times."""

    def add(self, pts: int | None) -> None:
        """Add a packet that goes to the decoder."""
        self._left += 1
        if pts is None:
            self.is_timed = False
            return
        heappush(self._times, pts)
        self.newest = pts if self.newest is None else max(self.newest, pts)

    def returned(self, pts: int | None) -> bool:
        """Take the packet of a frame out. Return whether an earlier one gave no frame, also if that is not known."""
        self._left -= 1
        if pts is None or not self.is_timed:
            self.is_timed = False
            return True
        self._first = pts if self._first is None else self._first
        has_gap = False
        while self._times and self._times[0] <= pts:
            time = heappop(self._times)
            has_gap |= self._first <= time < pts
            self._left -= time < self._first  # it refers to frames that are not in the stream
        return has_gap

    def fall_short(self, *, may_skip: bool = False) -> bool:
        """Return whether there are fewer frames than packets; `may_skip` is whether sound streams have packets without one."""
        return self._left > 0 and not (may_skip and self.is_timed and not self._times)


_PICTURE_OF_MPEG4 = b"\0\0\1\xb6"
"""The start code of a picture: ISO/IEC 14496-2, 6.2.5."""

_JUMP_SECONDS = 1.0
"""A time that goes back by more than this shows that streams were joined."""


class PacketOrder:
    """The times of packets in the order of the file, for containers that state no presentation times.

    AVI, ASF, MXF without an index, and packets of Xvid with two pictures state one time per packet, in the order of decoding. A
    decoder that reorders frames then gives each frame the time of a different frame. Such times rise from packet to packet,
    whereas presentation times go back as soon as frames are reordered.
    """

    def __init__(self, codec: str, container: str) -> None:
        self._codec = codec
        self._has_fields = container not in WITHOUT_PRESENTATION_TIMES
        self.renumbered = False
        """Whether a frame got a different time than its decoder gave it."""
        self._packed = False
        self._rises = True
        self._first = 0  # the index of the packet of the first frame
        self._ticks: list[int] = []

    def add(self, packet: Any) -> None:
        """Add the next packet that goes to the decoder."""
        if not self._rises:
            return
        if packet.pts is None or (self._ticks and packet.pts <= self._ticks[-1]):
            self.ignore()
            return
        self._ticks.append(packet.pts)
        if self._codec == "mpeg4" and not self._packed:
            self._packed = bytes(packet).count(_PICTURE_OF_MPEG4) > 1

    def begin(self, frame: Any) -> None:
        """Note the first frame. Packets before its own packet gave no frame."""
        if frame.pts is None:
            self.ignore()
        self._first = bisect_left(self._ticks, frame.pts) if self._ticks else 0

    def ignore(self) -> None:
        """Leave each frame its own time from now on."""
        self._rises = False
        self._ticks.clear()

    def tick(self, number: int, frame: Any, *, reorders: bool) -> int | None:
        """Return the presentation time of a frame in ticks; `reorders` says whether its decoder reorders frames."""
        own: int | None = frame.pts
        if not self._rises or own is None or not reorders:
            return own
        if not (self._packed or self._codec in ONE_FRAME_A_PACKET) or (frame.interlaced_frame and self._has_fields):
            return own
        index = self._first + number
        tick = self._ticks[index] if index < len(self._ticks) else own
        self.renumbered |= tick != own
        return tick


class FrameTimes:
    """The presentation times of frames in ticks, in the order of decoding.

    If a time goes back by more than a second, streams were joined there, and it is replaced by the end of the frame before.
    `jumps` has the numbers of these frames. A frame without a time, as in MPEG program streams, follows when the frame before
    ends. If that frame does not state its duration, it is the last known time from frame to frame, which is `step` at first. A
    second has `second` ticks.
    """

    def __init__(self, step: int, second: int) -> None:
        self._step = step
        self._second = second
        self._offset = 0
        self._last: int | None = None
        self._duration = 0  # of the last frame
        self.ticks: list[int | None] = []
        self.jumps: list[int] = []

    def add(self, pts: int | None, duration: int = 0) -> None:
        """Add the presentation time of the next frame, and how long it is shown, with repeated fields; 0 if that is unknown."""
        shown, self._duration = self._duration or self._step, duration
        if pts is None:
            if self._last is not None:
                self._last += shown
            self.ticks.append(self._last)
            return
        time = pts + self._offset
        if self._last is not None:
            if time < self._last - _JUMP_SECONDS * self._second:
                self._offset += self._last + shown - time
                self.jumps.append(len(self.ticks))
                time = self._last + shown
            elif 0 < time - self._last < self._second:
                self._step = time - self._last
        self._last = time
        self.ticks.append(time)

    def drop_last(self) -> None:
        """Forget the last frame, which will be added again."""
        self.ticks.pop()
        self._last, self._duration = self.ticks[-1] if self.ticks else None, 0

    def restart(self) -> None:
        """Forget all times, to begin at another frame."""
        self._offset, self._last, self._duration = 0, None, 0
        self.ticks.clear()
        self.jumps.clear()
