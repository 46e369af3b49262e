"""Read the packets of a file again, without decoding: their totals, the times of the frames, and the key frames.

MP4 and MOV files list their packets, so most packets, which are most of a file, need not be read.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import RangeError
from ...storage.containers import choose_stream
from ..source import KeyframeIndex, SeekIndex
from .clip_decoder import FAILURES, ClipDecoder
from .description import ClipDescription
from .packets import ONE_FRAME_A_PACKET, WITHOUT_PRESENTATION_TIMES, PacketCount

_FEW_PACKETS = 500  # they are all read as quickly as some of them
_REORDERED = 16  # the most frames that H.264, HEVC and VVC reorder
_NEIGHBOURS = _REORDERED + 4


class UnlistedPacketsError(Exception):
    """A file whose list of packets is missing, is incomplete or does not match its packets."""


@dataclass(frozen=True)
class _Neighbours:
    """Consecutive packets, and their presentation times in ticks."""

    places: range
    """Their places in the list."""
    before: int
    """The number of packets before them that are presented."""
    ticks: npt.NDArray[np.int64]
    """The rising times of those that are presented."""
    own: dict[int, int]
    """The time of each packet by its place."""
    duration: int
    """The duration of the last frame; 0 if it is not known."""

    def holds(self, place: int, total: int) -> bool:
        """Return whether all that can be presented next to the packet at a place is here; there are `total` packets."""
        begins = self.places.start == 0 or self.places.start + _REORDERED <= place
        return begins and (place + _REORDERED < self.places.stop or place < self.places.stop == total)


class SampleIndex:
    """The positions of key frames, see `SeekIndex`, in a container that lists all packets of a stream.

    The list has sizes and decoding times. Presentation times are read from the packets around a frame: a frame that is
    presented as the n-th is decoded at most 16 places from there. `first_tick` is the time of the first decoded frame, and
    `count` has the totals of all packets.

    Raises UnlistedPacketsError for other files, and `FAILURES`. The methods raise RangeError if packets cannot be read, or are
    not as they are listed.
    """

    def __init__(self, container: Any, stream: Any, first_tick: int | None) -> None:
        entries = list(stream.index_entries)
        self._container = container
        self._stream = stream
        self._dts = np.array([entry.timestamp for entry in entries], np.int64)
        if len(entries) < _NEIGHBOURS or not (np.diff(self._dts) > 0).all():
            raise UnlistedPacketsError
        presented = np.array([not entry.is_discard for entry in entries])
        self._places = np.flatnonzero(presented)  # of the packets that are presented, in the order of decoding
        self._before = np.cumsum(presented) - presented
        self._keys = np.flatnonzero([entry.is_keyframe and not entry.is_discard for entry in entries])
        self._last: _Neighbours | None = None
        first, last = self._read_around(0), self._read_around(len(entries) - 1)
        self.count = PacketCount(
            sum(entry.size for entry in entries),
            len(self._places),
            len(entries) - len(self._places),
            int(first.ticks[0]),
            int(last.ticks[-1]),
            last.duration,
        )
        self._skipped = int(np.searchsorted(first.ticks, first_tick or 0))
        self.frames = len(self._places) - self._skipped

    def before(self, number: int) -> int:
        """Return the last frame up to `number` that can be decoded without the frames before it."""
        place = self._places[min(number, self.frames - 1) + self._skipped]
        for key in self._keys[: np.searchsorted(self._keys, place, side="right")][::-1]:
            near = self._around(int(key))
            at = near.before + int(np.searchsorted(near.ticks, near.own[int(key)])) - self._skipped
            if at <= number:  # frames that are decoded after a key frame may be presented before it
                return max(at, 0)
        return 0

    def position(self, number: int) -> int:
        """Return the presentation time of a frame in ticks of the stream."""
        at = number + self._skipped
        near = self._around(int(self._places[at]))
        return int(near.ticks[at - near.before])

    def _around(self, place: int) -> _Neighbours:
        """Return the packets around a place in the list, with all that can be presented before or after that packet."""
        if self._last is not None and self._last.holds(place, len(self._dts)):
            return self._last
        try:
            return self._read_around(place)
        except (UnlistedPacketsError, *FAILURES):
            raise RangeError(f"the packets around number {place} are not as the container lists them") from None

    def _read_around(self, place: int) -> _Neighbours:
        first, stop = max(0, place - _NEIGHBOURS), min(len(self._dts), place + _NEIGHBOURS)
        packets = list(self._read(first, stop))
        own = {first + index: packet.pts for index, packet in enumerate(packets) if not packet.is_discard}
        ticks = np.sort(np.fromiter(own.values(), np.int64))
        if not len(ticks) or (np.diff(ticks) <= 0).any():
            raise UnlistedPacketsError
        duration = next(packet.duration or 0 for packet in packets if packet.pts == ticks[-1] and not packet.is_discard)
        self._last = _Neighbours(range(first, stop), int(self._before[first]), ticks, own, duration)
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


# -- all packets ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Packet:
    """A packet as its container describes it: its times in ticks, and whether a decoder can begin with it."""

    pts: int | None
    dts: int | None
    is_key: bool
    is_corrupt: bool


class PacketScan:
    """The packets of a clip, read from its file opened again. `first_tick` is the time of the first decoded frame."""

    def __init__(self, clip: ClipDecoder, facts: ClipDescription, first_tick: int | None) -> None:
        self._clip = clip
        self._facts = facts
        self._first_tick = first_tick
        self._count: PacketCount | None = None
        self._once = threading.Lock()
        self._was_read = False

    def read(self) -> list[_Packet]:
        """Return the packets whose frames are presented. Raises `FAILURES`."""
        with self._clip.open() as container:
            count = PacketCount()
            presented = []
            for packet in container.demux(choose_stream(self._clip.path, container, self._clip.index)):
                count.add(packet)
                if packet.size and not packet.is_discard:
                    presented.append(_Packet(packet.pts, packet.dts, packet.is_keyframe, packet.is_corrupt))
            self._count = count
            return presented

    def count(self) -> PacketCount | None:
        """Return the totals of all packets; None if they cannot be read."""
        with self._once:  # several readers of a shared clip may call it at once
            if self._count is None and not self._was_read:
                self._was_read = True
                with suppress(*FAILURES):
                    if self._listed() is None:
                        self.read()
            return self._count

    def _listed(self) -> SampleIndex | None:
        """Return the index of an MP4 or MOV file that lists its packets; None for other files. Raises `FAILURES`."""
        with ExitStack() as stack:
            container = stack.enter_context(self._clip.open(packets_only=True))
            stream = choose_stream(self._clip.path, container, self._clip.index)
            if "mp4" in container.format.name.split(",") and len(stream.index_entries) >= _FEW_PACKETS:
                with suppress(UnlistedPacketsError, *FAILURES):
                    index = SampleIndex(container, stream, self._first_tick)
                    self._count = index.count
                    stack.pop_all()  # the container is closed with the index
                    return index
        return None

    def seek_index(self) -> SeekIndex | None:
        """Return the index of key frames; None if their numbers or positions are not certain."""
        try:
            listed = self._listed()
            if listed is not None:
                return listed
            packets = self.read()
        except FAILURES:
            return None
        if not _are_in_order(packets):
            return None
        if self._facts.reorders and self._facts.container in WITHOUT_PRESENTATION_TIMES:
            times = [packet.pts for packet in packets if packet.pts is not None]
            if all(first < second for first, second in pairwise(times)):  # they only show the order, see `PacketOrder`
                return None
        ticks = self._ticks(packets)
        keys = np.searchsorted(ticks, self._ticks([packet for packet in packets if packet.is_key]))
        return KeyframeIndex(ticks.tolist(), keys.tolist()) if len(ticks) and (np.diff(ticks) > 0).all() else None

    def frame_ticks(self) -> npt.NDArray[np.int64] | None:
        """Return the times of the frames. Raises `FAILURES`.

        Return None if not each packet is certainly a frame that is presented at the packet's time: then only decoding tells.
        """
        packets, codec = self.read(), self._facts.codec
        if self._facts.interlaced or not (codec.intra_only or codec.name in ONE_FRAME_A_PACKET):
            return None
        is_certain = _are_in_order(packets) and len({packet.pts for packet in packets}) == len(packets)
        return self._ticks(packets) if is_certain else None

    def _ticks(self, packets: Sequence[_Packet]) -> npt.NDArray[np.int64]:
        """Return the rising times of the frames, without those before the first decoded frame."""
        first = self._first_tick or 0
        return np.array(sorted(packet.pts for packet in packets if packet.pts is not None and packet.pts >= first), np.int64)


def _are_in_order(packets: Sequence[_Packet]) -> bool:
    """Return whether all packets are sound and timed, and their decoding times rise, unlike those of joined streams."""
    decoded = [packet.dts for packet in packets if packet.dts is not None]
    are_sound = all(packet.pts is not None and not packet.is_corrupt for packet in packets)
    return are_sound and all(first <= second for first, second in pairwise(decoded))
