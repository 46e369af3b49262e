"""Read the packets of a stream without decoding them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import ExitStack, suppress

import numpy as np
import numpy.typing as npt

from ..info import VideoPackets
from ..source import SeekIndex
from .clip_decoder import ClipDecoder
from .demuxer import choose_stream
from .description import ClipDescription
from .packets import Packet, PacketCount, are_in_file_order, are_rising
from .sample_index import SampleIndex, UnlistedPacketsError

_FEW_PACKETS = 500  # they are all read as quickly as some of them


class KeyframeIndex:
    """The positions of key frames. `ticks` are the rising presentation times of all frames, and `keys` those of key frames."""

    def __init__(self, ticks: npt.NDArray[np.int64], keys: npt.NDArray[np.int64]) -> None:
        self.frames = len(ticks)
        self._ticks = ticks
        self._keys = np.searchsorted(ticks, keys)

    def before(self, number: int) -> int:
        """See SeekIndex."""
        index = int(np.searchsorted(self._keys, number, side="right")) - 1
        return int(self._keys[index]) if index >= 0 else 0

    def position(self, number: int) -> int:
        """See SeekIndex: the presentation time in ticks of the stream."""
        return int(self._ticks[number])


class PacketScan:
    """The packets of a clip, read from its file opened again. Their totals are kept.

    `first_tick` is the presentation time of the first decoded frame, in ticks of the stream.
    """

    def __init__(self, clip: ClipDecoder, facts: ClipDescription, first_tick: int | None) -> None:
        self._clip = clip
        self._facts = facts
        self._first_tick = first_tick
        self._total: VideoPackets | None = None
        self._hidden = 0
        self._once = threading.Lock()
        self._was_read = False

    def read(self) -> list[Packet]:
        """Return the packets whose frames are presented. Raises the `failures` of the clip."""
        with self._clip.open() as container:
            count = PacketCount()
            found = []
            for packet in container.demux(choose_stream(self._clip.path, container, self._clip.index)[0]):
                count.add(packet)
                if packet.size and not packet.is_discard:
                    found.append(Packet(packet.pts, packet.dts, packet.is_keyframe, packet.is_corrupt))
            self._total, self._hidden = self.total_of(count), count.hidden
            return found

    def total_of(self, count: PacketCount) -> VideoPackets:
        """Return the totals of a count."""
        return count.total(self._facts.time_base, self._facts.info.fps)

    def total(self) -> VideoPackets | None:
        """Return the totals of all packets; None if they cannot be read."""
        self._read_once()
        return self._total

    def hidden(self) -> int:
        """Return the number of packets that are decoded and never presented; 0 if they cannot be read."""
        self._read_once()
        return self._hidden

    def _read_once(self) -> None:
        with self._once:  # several readers of a shared clip may call it at once
            if self._total is None and not self._was_read:
                with suppress(*self._clip.failures):
                    if self._listed() is None:
                        self.read()
            self._was_read = True

    def _listed(self) -> SampleIndex | None:
        """Return the index of an MP4 or MOV file that lists its packets; None for other files. Raises the clip's `failures`."""
        if self._facts.time_base is None:
            return None
        with ExitStack() as stack:
            container = stack.enter_context(self._clip.open())
            stream, _ = choose_stream(self._clip.path, container, self._clip.index)
            if "mp4" not in container.format.name.split(",") or len(stream.index_entries) < _FEW_PACKETS:
                return None
            try:
                index = SampleIndex(container, stream, self._first_tick)
            except UnlistedPacketsError:
                return None
            self._total, self._hidden = index.total(self._facts.time_base, self._facts.info.fps), index.hidden
            stack.pop_all()  # the container is closed with the index
            return index

    def seek_index(self) -> SeekIndex | None:
        """Return the index of key frames; None if their numbers or positions are not certain."""
        try:
            listed = self._listed()
            if listed is not None:
                return listed
            packets = self.read()
        except self._clip.failures:
            return None
        if any(packet.pts is None or packet.is_corrupt for packet in packets) or not are_rising(packets):
            return None
        if self._facts.reorders and are_in_file_order(packets, self._facts.container):
            return None
        ticks = self.ticks(packets)
        keys = self.ticks([packet for packet in packets if packet.is_key])
        return KeyframeIndex(ticks, keys) if len(ticks) and (np.diff(ticks) > 0).all() else None

    def ticks(self, packets: Sequence[Packet]) -> npt.NDArray[np.int64]:
        """Return the rising times of the frames, without those before the first decoded frame."""
        first = self._first_tick or 0
        return np.array(sorted(packet.pts for packet in packets if packet.pts is not None and packet.pts >= first), np.int64)
