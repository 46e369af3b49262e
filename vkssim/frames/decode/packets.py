"""Count the packets of a video stream."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ..clip_facts import VideoPackets


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
