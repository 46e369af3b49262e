"""The sizes and presentation times of packets and frames, with the packets of a file that are not decoded."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..info import VideoPackets
from ..source import SeekIndex
from .demuxer import choose_stream
from .sample_index import SampleIndex, UnlistedPacketsError

if TYPE_CHECKING:
    from .clip_decoder import ClipDecoder
    from .description import ClipDescription


class PacketCount:
    """The totals of the packets that were read. `complete` is True once all packets of the stream were added, each once.

    `hidden` counts packets that are never presented. They are decoded because others refer to them.
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
        """Add a packet. The empty packet with which PyAV ends a stream does not count."""
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
        """Return the totals.

        The duration is from the first presentation time to the end of the last frame, which lasts for its own duration, or as
        long as a frame at the frame rate. If packets have no presentation times, as in AVI, the duration is the number of
        frames divided by the frame rate.
        """
        seconds = None
        if self._timed and time_base and self._first is not None and self._last is not None:
            last_seconds = self._last_duration * time_base or (1 / fps if fps else 0)
            seconds = (self._last - self._first) * time_base + last_seconds
        elif self._presented and fps:
            seconds = self._presented / fps
        return VideoPackets(self._bytes, float(seconds) if seconds else None)


_ONE_FRAME_A_PACKET = frozenset(("h264", "hevc", "vvc", "av1", "libdav1d", "vp9", "mpeg1video", "mpeg2video", "ffv1"))
"""Decoders that make one frame of each packet, with the packet's presentation time, unless the stream is interlaced."""

_WITHOUT_PRESENTATION_TIMES = frozenset(("asf", "avi", "mxf"))
"""Containers whose packets are frames, even of interlaced video. In other containers, a packet may be a field."""

_PICTURE_OF_MPEG4 = b"\0\0\1\xb6"
"""The start code of a picture: ISO/IEC 14496-2, 6.2.5."""

SEEK_SECONDS = 0, 1, 4, 16
"""Seconds to seek before a frame: without an index, FFmpeg seeks by decoding times, and beyond key frames."""

_JUMP_SECONDS = 1.0
"""A time that goes back by more than this shows that streams were joined."""


@dataclass(frozen=True)
class Packet:
    """A packet as its container describes it: its times in ticks, and whether a decoder can begin with it."""

    pts: int | None
    dts: int | None
    is_key: bool
    is_corrupt: bool


class PacketOrder:
    """The times of packets in the order of the file, for containers that state no presentation times.

    AVI, ASF, MXF without an index, and packets of Xvid with two pictures state one time per packet, in the order of decoding. A
    decoder that reorders frames then gives each frame the time of a different frame. Such times rise from packet to packet,
    whereas presentation times go back as soon as frames are reordered.
    """

    def __init__(self, codec: str, container: str) -> None:
        self._codec = codec
        self._has_fields = container not in _WITHOUT_PRESENTATION_TIMES
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
        if not (self._packed or self._codec in _ONE_FRAME_A_PACKET) or (frame.interlaced_frame and self._has_fields):
            return own
        index = self._first + number
        tick = self._ticks[index] if index < len(self._ticks) else own
        self.renumbered |= tick != own
        return tick


def are_in_file_order(packets: Sequence[Packet], container: str) -> bool:
    """Return whether the times of packets only show their order in the file, see `PacketOrder`."""
    times = [packet.pts for packet in packets if packet.pts is not None]
    return container in _WITHOUT_PRESENTATION_TIMES and all(first < second for first, second in pairwise(times))


def packets_are_frames(packets: Sequence[Packet], codec: Any, *, interlaced: bool) -> bool:
    """Return whether each packet is certainly a frame that is presented at the packet's time; otherwise only decoding tells."""
    if interlaced or not (codec.intra_only or codec.name in _ONE_FRAME_A_PACKET):
        return False
    times = [packet.pts for packet in packets]
    if None in times or len(set(times)) < len(times) or any(packet.is_corrupt for packet in packets):
        return False
    return are_rising(packets)


def are_rising(packets: Sequence[Packet]) -> bool:
    """Return whether decoding times rise with the order in the file, which is false if two streams were joined."""
    decoded = [packet.dts for packet in packets if packet.dts is not None]
    return all(first <= second for first, second in pairwise(decoded))


class FrameTimes:
    """The presentation times of frames in ticks, in the order of decoding.

    If a time goes back by more than a second, streams were joined there, and it is replaced by the end of the frame before.
    `jumps` has the numbers of these frames. A frame without a time, as in MPEG program streams, follows the frame before after
    the last known duration of a frame, which is `step` at first. A second has `second` ticks.
    """

    def __init__(self, step: int, second: int) -> None:
        self._step = step
        self._second = second
        self._offset = 0
        self._last: int | None = None
        self.ticks: list[int | None] = []
        self.jumps: list[int] = []

    def add(self, pts: int | None) -> None:
        """Add the presentation time of the next frame."""
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
        """Forget all times, to begin at another frame."""
        self._offset, self._last = 0, None
        self.ticks.clear()
        self.jumps.clear()


def rising_seconds(ticks: Sequence[int], first: int, time_base: float) -> npt.NDArray[np.float64]:
    """Return times in seconds after the tick `first`. A frame slightly out of order gets the time of the frame before."""
    seconds: npt.NDArray[np.float64] = (np.maximum.accumulate(np.array(ticks, np.int64)) - first) * time_base
    return seconds


# -- packets of a file ------------------------------------------------------------------------------------------------

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
                index = SampleIndex(container, stream, self._first_tick, self._clip.failures)
            except (UnlistedPacketsError, *self._clip.failures):
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
