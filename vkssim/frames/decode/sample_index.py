"""Find the frames of MP4 and MOV files without reading the packets, which are most of a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import RangeError
from ..info import VideoPackets

_REORDERED = 16  # the most frames that H.264, HEVC and VVC reorder
_NEIGHBOURS = _REORDERED + 4


class UnlistedPacketsError(Exception):
    """A file whose list of packets is missing, incomplete or not that of its packets."""


@dataclass(frozen=True)
class _Neighbours:
    """Consecutive packets: the places of the first one and after the last one in the list, and their presentation times.

    `ticks` are the rising times of the packets that are presented, `before` is the number of such packets before them, and
    `own` has the time of each packet by its place. `duration` is that of the last frame, 0 if it is not known.
    """

    first: int
    stop: int
    before: int
    ticks: npt.NDArray[np.int64]
    own: dict[int, int]
    duration: int

    def holds(self, place: int, total: int) -> bool:
        """Return whether all that can be presented next to the packet at a place is here; there are `total` packets."""
        begins = self.first == 0 or self.first + _REORDERED <= place
        return begins and (place + _REORDERED < self.stop or place < self.stop == total)


class SampleIndex:
    """The positions of key frames, see `SeekIndex`, in a container that lists all packets of a stream.

    The list has sizes and decoding times. Presentation times are read from the packets around a frame: a frame that is
    presented as the n-th is decoded at most 16 places from there. `first_tick` is the time of the first decoded frame, and
    `hidden` the number of packets that are decoded and never presented.

    `failures` are the errors of reading a packet. Raises these, and UnlistedPacketsError for other files. The methods raise
    RangeError if packets cannot be read, or are not as they are listed.
    """

    def __init__(self, container: Any, stream: Any, first_tick: int | None, failures: tuple[type[Exception], ...]) -> None:
        entries = list(stream.index_entries)
        self._container = container
        self._stream = stream
        self._failures: tuple[type[Exception], ...] = (UnlistedPacketsError, *failures)
        self._dts = np.array([entry.timestamp for entry in entries], np.int64)
        if len(entries) < _NEIGHBOURS or not (np.diff(self._dts) > 0).all():
            raise UnlistedPacketsError
        presented = np.array([not entry.is_discard for entry in entries])
        self._places = np.flatnonzero(presented)  # of the packets that are presented, in the order of decoding
        self._before = np.cumsum(presented) - presented
        self._keys = np.flatnonzero([entry.is_keyframe and not entry.is_discard for entry in entries])
        self._bytes = sum(entry.size for entry in entries)
        self._last: _Neighbours | None = None
        first, last = self._read_around(0), self._read_around(len(entries) - 1)
        self._duration, self._last_duration = int(last.ticks[-1] - first.ticks[0]), last.duration
        self.hidden = len(entries) - len(self._places)
        self._skipped = int(np.searchsorted(first.ticks, first_tick or 0))
        self.frames = len(self._places) - self._skipped

    def total(self, time_base: Fraction, fps: Fraction | None) -> VideoPackets:
        """Return the totals of all packets, as `PacketCount.total` does."""
        last_seconds = self._last_duration * time_base or (1 / fps if fps else 0)
        return VideoPackets(self._bytes, float(self._duration * time_base + last_seconds) or None)

    def before(self, number: int) -> int:
        """See SeekIndex."""
        place = self._places[min(number, self.frames - 1) + self._skipped]
        for key in self._keys[: np.searchsorted(self._keys, place, side="right")][::-1]:
            near = self._around(int(key))
            at = near.before + int(np.searchsorted(near.ticks, near.own[int(key)])) - self._skipped
            if at <= number:  # frames that are decoded after a key frame may be presented before it
                return max(at, 0)
        return 0

    def position(self, number: int) -> int:
        """See SeekIndex: the presentation time in ticks of the stream."""
        at = number + self._skipped
        near = self._around(int(self._places[at]))
        return int(near.ticks[at - near.before])

    def _around(self, place: int) -> _Neighbours:
        """Return the packets around a place in the list, with all that can be presented before or after that packet."""
        if self._last is not None and self._last.holds(place, len(self._dts)):
            return self._last
        try:
            return self._read_around(place)
        except self._failures:
            raise RangeError(f"the packets around number {place} are not as the container lists them") from None

    def _read_around(self, place: int) -> _Neighbours:
        first, stop = max(0, place - _NEIGHBOURS), min(len(self._dts), place + _NEIGHBOURS)
        packets = list(self._read(first, stop))
        own = {first + index: packet.pts for index, packet in enumerate(packets) if not packet.is_discard}
        ticks = np.sort(np.fromiter(own.values(), np.int64))
        if not len(ticks) or (np.diff(ticks) <= 0).any():
            raise UnlistedPacketsError
        duration = next(packet.duration or 0 for packet in packets if packet.pts == ticks[-1] and not packet.is_discard)
        self._last = _Neighbours(first, stop, int(self._before[first]), ticks, own, duration)
        return self._last

    def _read(self, first: int, stop: int) -> Iterator[Any]:
        """Yield the packets of some places. Raises UnlistedPacketsError if they are not as they are listed."""
        total = len(self._dts)
        place = -1
        self._container.seek(int(self._dts[first]), stream=self._stream, any_frame=True)
        for packet in self._container.demux(self._stream):
            if not packet.size:  # the end of the stream
                break
            if packet.pts is None or packet.dts is None or packet.is_corrupt or place == total:
                raise UnlistedPacketsError
            if place < 0:
                place = int(np.searchsorted(self._dts, packet.dts))
                if place > first:
                    raise UnlistedPacketsError
            if self._dts[place] != packet.dts:
                raise UnlistedPacketsError
            if place >= first:
                yield packet
            place += 1
            if place == stop < total:
                return
        if place != stop:
            raise UnlistedPacketsError
