"""Decode the frames of one stream with FFmpeg: quickly, or the same every time (docs/adr/0010).

FFmpeg decodes several frames at a time on threads. What it makes up for damage then depends on which thread was how far, and on
whose memory a frame gets: the same file scores differently from run to run. Without threads it does not. So a stream is decoded
with threads until the first sign of damage, and what a decoder gave before that is right. From there on it is decoded again,
from its beginning, without them. Where there are no more cores than clips they are not used at all, nor for decoders that give
no sign of some damage.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from . import ffmpeg_log
from .demuxer import MOST_PIXELS_OPTION
from .packets import PacketCount, PacketOrder

_MOST_TORN_PACKETS = 1000

_WITHOUT_FRAMES = ("h264", "mpeg4", "vp8")
"""Decoders that give no frame for some packets of sound streams: second fields, pictures not coded, pictures not shown."""

_SILENT = ("hevc", "vvc")
"""Decoders that leave out what ends too early, and say nothing of it: what is seen there is what the memory held before."""

_UNALIGNED = 1
"""FFmpeg's AV_CODEC_FLAG_UNALIGNED. Without it, decoders show hidden columns at the left: rows begin on whole vectors."""

_FEW_CORES = 2  # two clips are decoded at a time, so that threads of each gain nothing on two cores


_CUT_OFF = "File ended prematurely"


class UndecodableError(Exception):
    """Report that the next frame cannot be decoded, and why."""


@dataclass(frozen=True)
class Begin:
    """Say where to begin in a stream: behind so many `packets`, or at the next one that is marked as a key frame.

    `without_leading` leaves out frames that are decoded after the first packet and presented before it: they refer to frames
    that were not decoded.
    """

    packets: int = 0
    from_key: bool = False
    without_leading: bool = False


@dataclass(frozen=True)
class Remark:
    """Hold what FFmpeg says of a packet with presentation time `pts`, after `frames_before` frames were given."""

    pts: int | None
    frames_before: int
    text: str


@dataclass(frozen=True)
class _Lost:
    """Describe a packet that could not be decoded, by its presentation time `pts`, None where that is not known.

    `at_end` says that the container cannot give any packets from here on.
    """

    pts: int | None
    reason: str
    at_end: bool = False

    def is_before(self, other: _Lost) -> bool:
        """Return whether it is shown before another one."""
        return self.pts is not None and other.pts is not None and self.pts < other.pts

    def is_behind(self, frame: Any) -> bool:
        """Return whether a frame is sure to be shown before it, so that it is right to give it."""
        return self.at_end or (self.pts is not None and frame.pts is not None and frame.pts < self.pts)


def threads_help() -> bool:
    """Return whether there are more cores than decoders without threads keep busy."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) > _FEW_CORES
    return (os.cpu_count() or 1) > _FEW_CORES


class _PacketNumber:
    """Hold the number of a packet, which its frame gets. PyAV knows it by its identity, so that a plain number will not do."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


class Decoder:
    """Give the frames of a stream in the order of their presentation. It has to be closed.

    `codec` is the codec context that decodes the stream: its own one, or another one for the same packets.

    With `threads`, which are used where the decoder notices all damage, or by `hardware`, it is `doubtful` as soon as there is
    a sign of damage: frames given before are right, but that frame and those after it need not be. Without either, frames are
    the same every time; `damage` then has the message and the number of each frame that is damaged, and UndecodableError is
    raised in place of a missing frame.
    """

    def __init__(
        self,
        container: Any,
        stream: Any,
        codec: Any,
        *,
        threads: bool,
        begin: Begin = Begin(),
        hardware: bool = False,
    ) -> None:
        self._container = container
        self._stream = stream
        self._codec = codec
        self._name = self._codec.codec.name
        self._codec.options = MOST_PIXELS_OPTION
        self.hardware = hardware
        threads = threads and self._name not in _SILENT
        self.stops_at_doubt = threads or hardware
        """Whether frames are given only up to the first sign of damage."""
        if not hardware:
            codec.flags |= _UNALIGNED
        if threads:
            codec.thread_type = "AUTO"
        else:
            codec.thread_type, codec.thread_count = "NONE", 1
            self._codec.copy_opaque = not hardware
        self.frames_given = 0
        """How many frames were given since the decoder was made, or since the last seek."""
        self.bytes_read = 0
        self.count = PacketCount()
        """The packets of the stream; the count is complete where all were read, from the first to the last."""
        self.order = PacketOrder(stream.codec_context.codec.name, container.format.name)
        self.begin = begin
        """Where the first frame could be decoded from; known without threads, once a frame was given."""
        self.passed_over = False
        """Whether there were packets before the first frame that could not be decoded; known without threads."""
        self.damage: dict[int, str] = {}
        """What FFmpeg says of the damage of a frame, by its number; an empty text where only the frame is marked."""
        self._damaged_packets: dict[int, Remark] = {}  # by the number of the packet, until its frame is given
        self._remarks: list[Remark] = []
        self.is_cut_off = False
        """Whether the container ended before its end, without an error."""
        self.failure: str | None = None
        """Why the last packet that could not be decoded was not."""
        # PyAV frees a frame whose side data was asked for when garbage is collected, at some time; and missing parts of a
        # frame show what its memory held before. So the first frame, whose side data is asked for, is always kept.
        self._first: Any = None
        self._presented_from: int | None = None
        self._doubtful = False
        self._whole = True  # whether packets are read from the first one on
        ffmpeg_log.listen()
        self._close = weakref.finalize(self, _close, [self._codec] if threads else [], os.getpid())
        self._heard = ffmpeg_log.worrying_messages(self._name)
        packets = self._packets(begin)
        self._frames = self._up_to_doubt(packets, sought=False) if self.stops_at_doubt else self._unthreaded(packets)

    @property
    def doubtful(self) -> bool:
        """Return whether there was a sign of damage, so that frames given from now on may not be right."""
        return self.stops_at_doubt and (self._doubtful or ffmpeg_log.worrying_messages(self._name) > self._heard)

    @property
    def remarks(self) -> list[Remark]:
        """Return what else FFmpeg warned of, or of packets of which no frame was given."""
        return [*self._remarks, *self._damaged_packets.values()]

    def next(self) -> Any:
        """Return the next frame, None at the end. Raises av.FFmpegError or OSError; UndecodableError, see Decoder."""
        frame = next(self._frames, None)
        if frame is not None:
            if not self.frames_given:
                self.order.begin(frame)
            self.frames_given += 1
            self._first = self._first or frame
        return frame

    def tick(self, frame: Any) -> int | None:
        """Return when the frame that was given last is presented, in ticks; None where nothing says so."""
        reorders = bool(self._stream.codec_context.has_b_frames)
        return self.order.tick(self.frames_given - 1, frame, reorders=reorders)

    def seek(self, place: int, stream: Any = None, *, from_key: bool = False) -> None:
        """Go on from the key frame before a place, in ticks of a stream, or in microseconds where none is given.

        `from_key` leaves out frames found there that are no key frames, and frames that are presented before the key frame.
        Raises av.FFmpegError, OverflowError.
        """
        self._container.seek(place, stream=stream)
        self._codec.flush_buffers()  # PyAV does that for codecs of its own streams alone
        self.frames_given = 0
        self.order.ignore()
        self._whole = False
        packets = self._packets(Begin(from_key=from_key, without_leading=from_key))
        self._frames = self._up_to_doubt(packets, sought=True) if self.stops_at_doubt else self._unthreaded(packets)

    def forget_before(self, place: int) -> None:
        """Count no damage of what is shown before a place in ticks, which is that of the frame given last."""
        last = self.frames_given - 1
        self._presented_from = place
        self.damage = {number: text for number, text in self.damage.items() if number == last}
        self._remarks.clear()
        damaged = self._damaged_packets.items()
        self._damaged_packets = {number: remark for number, remark in damaged if not _is_before(remark.pts, place)}

    def close(self) -> None:
        """Stop its threads and let go of FFmpeg's decoder and its frames; a second call does nothing.

        Hardware has few decoders and little memory, which others need before this object is collected.
        """
        self._close()
        self._frames = iter(())
        self._container = self._stream = self._codec = self._first = None

    # -- packets ------------------------------------------------------------------------------------------------------

    def _packets(self, begin: Begin) -> Iterator[Any]:
        """Yield the packets from there on, and an empty one at the end, which brings what the decoder still has."""
        number = 0
        began = False
        first: int | None = None  # presentation time of the first packet, until a later one has come
        for packet in self._demuxed():
            self.bytes_read += packet.size
            self.count.add(packet)
            number += 1
            if packet.size and not began:
                if number <= begin.packets or (begin.from_key and not packet.is_keyframe):
                    continue
                began, first = True, packet.pts if begin.without_leading else None
            elif first is not None and packet.pts is not None:
                if packet.pts < first:
                    continue
                first = None
            if packet.size:
                self.order.add(packet)
            yield packet
        self.count.complete = self._whole

    def _demuxed(self) -> Iterator[Any]:
        """Yield packets as the container gives them, and note if it is cut off: Matroska then ends without an error."""
        packets = self._container.demux(self._stream)
        while True:
            with ffmpeg_log.hearing() as messages:
                packet = next(packets, None)
            self.is_cut_off |= any(text.startswith(_CUT_OFF) for _, _, text in messages)
            if packet is None:
                return
            yield packet

    def _packets_or_failure(self, packets: Iterator[Any]) -> Iterator[Any]:
        """Yield packets, and the error in place of a packet that the container cannot give."""
        from av import FFmpegError

        while True:
            try:
                packet = next(packets, None)
            except FFmpegError as error:
                yield error
                return
            if packet is None:
                return
            yield packet

    # -- with threads, or by hardware --------------------------------------------------------------------------------

    def _up_to_doubt(self, packets: Iterator[Any], *, sought: bool) -> Iterator[Any]:
        sent = given = 0
        newest = latest = None
        for packet in packets:
            if packet.size:
                sent += 1
                newest = packet.pts if newest is None else max(newest, packet.pts or newest)
            self._doubtful |= packet.is_corrupt
            for frame in self._codec.decode(packet):
                given += 1
                latest = frame.pts
                self._doubtful |= frame.is_corrupt
                yield frame
        # PyAV swallows an error that follows a frame, and with it all further frames at the end.
        reached = newest is not None and latest is not None and latest >= newest
        self._doubtful |= given < sent and not (reached and (sought or self._name in _WITHOUT_FRAMES))

    # -- without ------------------------------------------------------------------------------------------------------

    def _unthreaded(self, packets: Iterator[Any]) -> Iterator[Any]:
        self._damaged_packets.clear()
        lost: _Lost | None = None
        began, key, failures = False, 0, 0
        for number, packet in enumerate(self._packets_or_failure(packets)):
            frames, failure = self._decode(packet, number)
            if failure is not None:
                self.failure = failure.reason
                failures += 1
                if not began and failures == _MOST_TORN_PACKETS:
                    return
                if began and (lost is None or failure.is_before(lost)):
                    lost = failure
            elif not began and packet.is_keyframe:
                key = number
            for frame in frames:
                if not began:
                    began = True
                    self._note_begin(frame, number, key, failures)
                if lost is not None and not lost.is_behind(frame):
                    raise UndecodableError(lost.reason)
                damage = self._damaged_packets.pop(_number(frame, -1), None)
                if damage is not None or frame.is_corrupt:
                    self.damage[self.frames_given] = "" if damage is None else damage.text
                yield frame
        if lost is not None:
            raise UndecodableError(lost.reason)

    def _decode(self, packet: Any, number: int) -> tuple[list[Any], _Lost | None]:
        """Return the frames that a packet brings, and what is lost with it; note what FFmpeg says."""
        from av import FFmpegError

        broken = packet if isinstance(packet, FFmpegError) else None
        frames: list[Any] = []
        failure: FFmpegError | None = None
        with ffmpeg_log.hearing() as messages:
            try:
                if broken is None:
                    packet.opaque = _PacketNumber(number)
                    frames = self._codec.decode(packet)
                else:
                    frames = self._codec.decode(None)
            except FFmpegError as error:
                failure = error
        if broken is not None:
            return frames, _Lost(None, reason(broken), at_end=True)
        own = [(level, text.strip()) for level, name, text in messages if name == self._name]
        lost = None if failure is None else _Lost(packet.pts, reason(failure, *(text for _, text in own[:1])))
        if self._presented_from is not None and packet.pts is not None and packet.pts < self._presented_from:
            return frames, lost
        damage = next((text for level, text in own if ffmpeg_log.is_damage(level, text)), None)
        if packet.is_corrupt and damage is None:
            damage = "packet marked as corrupt by the demuxer"
        if damage is not None:
            self._damaged_packets[number] = Remark(packet.pts, self.frames_given, damage)
        else:
            warnings = [text for level, text in own if ffmpeg_log.is_worrying(level, text)]
            self._remarks += [Remark(packet.pts, self.frames_given, text) for text in warnings[:1]]
        return frames, lost

    def _note_begin(self, first: Any, number: int, key: int, failures: int) -> None:
        """Note where the first frame could be decoded from. What is wrong with what comes before it is no damage of a frame."""
        own = _number(first, number)
        key = key if key <= own else 0
        self._presented_from = first.pts if self._presented_from is None else self._presented_from
        damaged = self._damaged_packets.items()
        before = [place for place, remark in damaged if place < key or _is_before(remark.pts, self._presented_from)]
        for place in before:
            del self._damaged_packets[place]
        self.begin = Begin(key, without_leading=own == key)
        self.passed_over = bool(key or before or failures)
        if key:
            self._remarks.clear()


def reason(error: Exception, *said: str) -> str:
    """Return why something could not be decoded, without what PyAV adds of the messages of other decoders."""
    return ": ".join((getattr(error, "strerror", None) or str(error), *said))


def _number(frame: Any, otherwise: int) -> int:
    """Return the number of the packet that a frame was made from."""
    number = frame.opaque
    return number.number if isinstance(number, _PacketNumber) else otherwise


def _is_before(pts: int | None, place: int | None) -> bool:
    return pts is not None and place is not None and pts < place


def _close(threaded: list[Any], process: int) -> None:
    ffmpeg_log.park(threaded, process)
    if os.getpid() == process:  # a fork listens to nothing
        ffmpeg_log.leave()
