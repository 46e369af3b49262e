"""Decode the frames of one stream with FFmpeg: with threads until the first sign of damage, then without (docs/adr/0010)."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from itertools import chain, count, islice
from operator import attrgetter
from typing import Any

from ...storage.containers import MAX_PIXELS_OPTION
from ...utils import ffmpeg_log
from .packets import PacketCount, PacketOrder

_MAX_TORN_PACKETS = 1000

_WITHOUT_FRAMES = ("h264", "mpeg4", "vp8")
"""Decoders that return no frame for some packets of sound streams: second fields, uncoded pictures, hidden pictures."""

_SILENT = ("hevc", "vvc")
"""Decoders that leave out the rest of cut data without a message. The picture then shows stale memory there."""

_STRICT = ("hevc",)
"""Decoders that report nearly all damage by an error or a mark on the frame if `err_detect` is "explode". So hardware needs no
messages, for each of which PyAV's callback takes Python's lock, even below the level that is set (docs/adr/0010)."""

_EXPLODE = {"err_detect": "explode"}

_WITHOUT_GRAIN = {"export_side_data": "film_grain"}
"""Decoders then pass the parameters of film grain on, in place of adding it."""

_UNALIGNED = 1
"""FFmpeg's AV_CODEC_FLAG_UNALIGNED. Without it, rows begin on whole vectors, so decoders show cropped columns at the left."""

_FEW_CORES = 2  # two clips are decoded in parallel, so threads of each decoder gain nothing on two cores

_CUT_OFF = "File ended prematurely"

_KEPT_FRAMES = 2

_MAX_LEADING = 16  # packets, the key frame included, among which one may be presented before it

_is_corrupt = attrgetter("is_corrupt")

_TOGETHER = 8
"""Packets that hardware decodes in a row, before the first of their frames is used. Each of FFmpeg's calls gives up Python's
lock, and the less Python has to do between two calls, the less it waits for the lock (docs/adr/0012)."""


Messages = Sequence[ffmpeg_log.Message]


class UndecodableError(Exception):
    """A packet cannot be decoded, for the reason in the message. `pts` is its presentation time, None if that is not known.

    `at_end` is True if the container has no further packets.
    """

    def __init__(self, message: str, pts: int | None, *, at_end: bool = False) -> None:
        super().__init__(message)
        self.pts = pts
        self.at_end = at_end


@dataclass(frozen=True)
class Begin:
    """The place in a stream where decoding begins: after a number of `packets`, or at the next packet marked as a key frame.

    `without_leading` leaves out frames that are decoded after the first packet and presented before it, because they refer to
    frames that were not decoded.
    """

    packets: int = 0
    from_key: bool = False
    without_leading: bool = False


FROM_START = Begin()
AT_FIRST_KEY = Begin(without_leading=True)
"""The usual place: the first packet is the key frame from which the first frame is decoded."""


@dataclass(frozen=True)
class Remark:
    """A message of FFmpeg about a packet with the presentation time `pts`, when `frames_before` frames had been returned."""

    pts: int | None
    frames_before: int
    text: str


def threads_help() -> bool:
    """Return whether there are more cores than two decoders without threads use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) > _FEW_CORES
    return (os.cpu_count() or 1) > _FEW_CORES


class Decoder:
    """A decoder of the frames of a stream, in the order of their presentation. It has to be closed.

    `codec` is the codec context that decodes the stream: the stream's own, or a second one for the same packets.

    With `threads`, which are used only if the decoder notices all damage, or with `hardware`, it is `doubtful` as soon as there
    is a sign of damage, and returns no more frames: the frames before are right. Without either, frames are the same every
    time. `damage` then has the message for each damaged frame, by its number, and UndecodableError is raised instead of
    returning a frame after a missing one.
    """

    def __init__(
        self,
        container: Any,
        stream: Any,
        codec: Any,
        *,
        threads: bool,
        begin: Begin = FROM_START,
        hardware: bool = False,
        adds_grain: bool = True,
    ) -> None:
        self._container = container
        self._stream = stream
        self._codec = codec
        self._name = self._codec.codec.name
        is_strict = hardware and self._name in _STRICT
        self.hardware = hardware
        threads = threads and self._name not in _SILENT
        self.stops_at_doubt = threads or hardware
        """Whether frames are returned only up to the first sign of damage."""
        if not hardware:
            codec.flags |= _UNALIGNED
        if threads:
            codec.thread_type = "AUTO"
        else:
            codec.thread_type, codec.thread_count = "NONE", 1
            self._codec.copy_opaque = not hardware
        self.frame_count = 0
        """The number of frames returned since the start, or since the last seek."""
        self.count = PacketCount()
        """The packets of the stream; the count is complete if all were read, from the first to the last."""
        self.order = PacketOrder(stream.codec_context.codec.name, container.format.name)
        self.begin = begin
        """The place from which the first frame was decoded; known without threads, once a frame was returned."""
        self.skipped_packets = False
        """Whether packets before the first frame could not be decoded; known without threads."""
        self.damage: dict[int, str] = {}
        """FFmpeg's message on the damage of a frame, by its number; an empty text if the frame is only marked as corrupt."""
        self._damaged_packets: dict[int, Remark] = {}  # by the number of the packet, until its frame is returned
        self._remarks: list[Remark] = []
        self.is_cut_off = False
        """Whether the container ended before its end, without an error."""
        self.failure: str | None = None
        """The reason why a packet could not be decoded, for the last such packet."""
        # Missing parts of a frame show stale memory, so frames must be freed in the same order every time. PyAV frees a frame
        # whose side data was read, as that of the first one is, only at a garbage collection. And without Python's lock, a
        # frame that another thread made is freed late. The thread that opens a clip makes the first frame and, ahead, the
        # next one. So both are kept.
        self._kept: list[Any] = []
        self._presented_from: int | None = None
        self._doubtful = False
        self._whole = True  # whether packets are read from the first one
        self._is_matroska = "matroska" in container.format.name
        self._listens = not is_strict
        self._channel: ffmpeg_log.Channel | None = None
        if self._listens and self.stops_at_doubt:
            self._channel = ffmpeg_log.open_channel(self._name)
        elif self._listens:
            ffmpeg_log.listen()
        parked = [self._codec] if threads else []
        self._close = weakref.finalize(self, _close, parked, os.getpid(), self._listens, self._channel)
        self._heard = 0 if self._channel is None else ffmpeg_log.worrying_messages(self._channel)
        self._codec.options = {
            **MAX_PIXELS_OPTION,
            **(_EXPLODE if is_strict else {}),
            **({} if adds_grain else _WITHOUT_GRAIN),
            **({} if self._channel is None else self._channel.options),
        }
        packets = self._packets(begin)
        self._frames = self._up_to_doubt(packets, sought=False) if self.stops_at_doubt else self._unthreaded(packets)

    @property
    def doubtful(self) -> bool:
        """Return whether there was a sign of damage, so that further frames may be wrong."""
        if not self.stops_at_doubt:
            return False
        return self._doubtful or (self._channel is not None and ffmpeg_log.worrying_messages(self._channel) > self._heard)

    @property
    def remarks(self) -> list[Remark]:
        """Return FFmpeg's other warnings, and its messages about packets without a frame."""
        return [*self._remarks, *self._damaged_packets.values()]

    def next(self) -> Any:
        """Return the next frame; None at the end. Raises av.FFmpegError, OSError, or UndecodableError as `Decoder` says."""
        frame = next(self._frames, None)
        if frame is not None:
            if not self.frame_count:
                self.order.begin(frame)
            self.frame_count += 1
            if len(self._kept) < _KEPT_FRAMES:
                self._kept.append(frame)
        return frame

    def decode_first_alone(self) -> Any:
        """Return the frame of the first packet if no packet after it is presented earlier, and it is sound; otherwise None.

        `next` takes longer, because a decoder that reorders frames returns the first one after several packets. Nothing can be
        decoded afterwards.
        """
        packets, unread = _up_to_error(islice(self._container.demux(self._stream), _MAX_LEADING))
        times = [packet.pts for packet in packets if packet.size]
        if unread or not times or None in times or times[0] != min(times) or not packets[0].is_keyframe:
            return None
        with ffmpeg_log.hearing() as messages:
            frames, undecoded = _up_to_error(chain.from_iterable(map(self._codec.decode, (packets[0], None))))
        if undecoded or messages or len(frames) != 1 or any(map(_is_corrupt, (packets[0], *frames))):
            return None
        self.begin, self.frame_count = AT_FIRST_KEY, 1
        return frames[0]

    def tick(self, frame: Any) -> int | None:
        """Return the presentation time of the last returned frame in ticks; None if it is not known."""
        reorders = bool(self._stream.codec_context.has_b_frames)
        return self.order.tick(self.frame_count - 1, frame, reorders=reorders)

    def seek(self, time: int, stream: Any = None, *, from_key: bool = False) -> None:
        """Continue with the key frame before a time, in ticks of a stream, or in microseconds if there is no stream.

        `from_key` leaves out packets up to the first key frame, and frames that are presented before it. Raises av.FFmpegError,
        OverflowError.
        """
        self._container.seek(time, stream=stream)
        self._codec.flush_buffers()  # PyAV does this only for codecs of its own streams
        self.frame_count = 0
        self.order.ignore()
        self._whole = False
        packets = self._packets(Begin(from_key=from_key, without_leading=from_key))
        self._frames = self._up_to_doubt(packets, sought=True) if self.stops_at_doubt else self._unthreaded(packets)

    def forget_before(self, time: int) -> None:
        """Forget the damage of frames presented before a time in ticks, at which the last returned frame is presented."""
        last = self.frame_count - 1
        self._presented_from = time
        self.damage = {number: text for number, text in self.damage.items() if number == last}
        self._remarks.clear()
        damaged = self._damaged_packets.items()
        self._damaged_packets = {number: remark for number, remark in damaged if not _is_before(remark.pts, time)}

    def close(self) -> None:
        """Stop the threads and release FFmpeg's decoder and its frames; a second call does nothing.

        Hardware has few decoders and little memory, which may be needed before this object is garbage-collected.
        """
        self._close()
        self._frames = iter(())
        self._container = self._stream = self._codec = None
        self._kept.clear()

    # -- packets ------------------------------------------------------------------------------------------------------

    def _packets(self, begin: Begin) -> Iterator[Any]:
        """Yield the packets from `begin`, and an empty one at the end, which flushes the decoder."""
        number = 0
        began = False
        first: int | None = None  # presentation time of the first packet, until a later one
        for packet in self._demuxed():
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
        packets: Iterator[Any] = self._container.demux(self._stream)
        return self._up_to_cut(packets) if self._listens else packets

    def _up_to_cut(self, packets: Iterator[Any]) -> Iterator[Any]:
        """Yield packets, and note if the container is cut off: Matroska ends without an error."""
        while True:
            with ffmpeg_log.hearing() as messages:
                packet = next(packets, None)
            self._note_doubt(messages)
            self.is_cut_off |= any(text.startswith(_CUT_OFF) for _, _, text in messages)
            if packet is None:
                return
            yield packet

    def _read_end_again(self, newest: int | None) -> None:
        """Note if the container is cut off. Only a message tells, and nobody has listened. All packets have been decoded.

        FFmpeg reads the packets from the last key frame on twice more: to seek, and again afterwards.
        """
        from av import FFmpegError

        ffmpeg_log.listen()
        try:
            with suppress(FFmpegError, OSError):  # the frames are right, whatever happens to the file now
                self._container.seek(newest or 0, stream=self._stream)
                for _ in self._up_to_cut(self._container.demux(self._stream)):
                    pass
        finally:
            ffmpeg_log.leave()

    def _note_doubt(self, messages: Messages) -> None:
        """Note if a message that this thread collected may mean damage of the stream. A strict decoder needs none."""
        own = ((level, text) for level, name, text in messages if self._listens and name == self._name)
        self._doubtful |= any(ffmpeg_log.is_worrying(*message) for message in own)

    # -- with threads, or by hardware --------------------------------------------------------------------------------

    def _up_to_doubt(self, packets: Iterator[Any], *, sought: bool) -> Iterator[Any]:
        sent = returned = 0
        newest = latest = None
        while True:
            group, unread = _up_to_error(islice(packets, _TOGETHER if self.hardware and returned else 1))
            whole = [packet for packet in group if packet.size]
            sent += len(whole)
            newest = max((time for time in (newest, *(packet.pts for packet in whole)) if time is not None), default=None)
            # Hardware has many decoders and few threads, which would share channels.
            collector: AbstractContextManager[Messages] = ffmpeg_log.hearing() if self.hardware else nullcontext(())
            with collector as messages:
                frames, undecoded = _up_to_error(chain.from_iterable(map(self._codec.decode, group)))
            self._note_doubt(messages)
            self._doubtful |= any(map(_is_corrupt, (*group, *frames)))
            is_end = len(whole) < len(group) and undecoded is unread is None
            if is_end and self._is_matroska and not (self._listens or self._doubtful):
                self._read_end_again(newest)
            if frames and not self.doubtful:
                returned += len(frames)
                latest = frames[-1].pts
                while frames:
                    yield frames.pop(0)
            failure = undecoded or unread
            if failure is not None:  # also if there are messages: such a packet is refused
                raise failure
            if self.doubtful or not group:
                break
        # PyAV swallows an error that follows a frame, and with it all further frames at the end.
        reached = newest is not None and latest is not None and latest >= newest
        self._doubtful |= returned < sent and not (reached and (sought or self._name in _WITHOUT_FRAMES))

    # -- without threads ----------------------------------------------------------------------------------------------

    def _unthreaded(self, packets: Iterator[Any]) -> Iterator[Any]:
        from av import FFmpegError

        self._damaged_packets.clear()
        lost: UndecodableError | None = None
        began, key, failures = False, 0, 0
        for number in count():
            packet: Any = None
            broken: FFmpegError | None = None
            try:
                packet = next(packets, None)
            except FFmpegError as error:
                broken = error
            if packet is broken is None:
                break
            frames, failure = self._decode(packet, number, broken)
            if failure is not None:
                self.failure = str(failure)
                failures += 1
                if not began and failures == _MAX_TORN_PACKETS:
                    return
                if began and (lost is None or _is_before(failure.pts, lost.pts)):
                    lost = failure
            elif not began and packet.is_keyframe:
                key = number
            for frame in frames:
                if not began:
                    began = True
                    self._note_begin(frame, number, key, failures)
                if lost is not None and not (lost.at_end or _is_before(frame.pts, lost.pts)):
                    raise UndecodableError(str(lost), lost.pts)
                damage = self._damaged_packets.pop(_number(frame, -1), None)
                if damage is not None or frame.is_corrupt:
                    self.damage[self.frame_count] = "" if damage is None else damage.text
                yield frame
        if lost is not None:
            raise UndecodableError(str(lost), lost.pts)

    def _decode(self, packet: Any, number: int, broken: Exception | None) -> tuple[list[Any], UndecodableError | None]:
        """Return the frames of a packet, and a description of its loss; note FFmpeg's messages.

        If reading was `broken` by an error, there is no packet, and the decoder returns the frames that it still has.
        """
        from av import FFmpegError

        frames: list[Any] = []
        failure: FFmpegError | None = None
        with ffmpeg_log.hearing() as messages:
            try:
                if packet is not None:
                    packet.opaque = [number]  # which PyAV passes to its frame, by its identity: a plain number would not work
                frames = self._codec.decode(packet)
            except FFmpegError as error:
                failure = error
        if broken is not None:
            return frames, UndecodableError(reason(broken), None, at_end=True)
        own = [(level, text.strip()) for level, name, text in messages if name == self._name]
        lost = None if failure is None else UndecodableError(reason(failure, *(text for _, text in own[:1])), packet.pts)
        if self._presented_from is not None and packet.pts is not None and packet.pts < self._presented_from:
            return frames, lost
        damage = next((text for level, text in own if ffmpeg_log.is_damage(level, text)), None)
        if packet.is_corrupt and damage is None:
            damage = "packet marked as corrupt by the demuxer"
        if damage is not None:
            self._damaged_packets[number] = Remark(packet.pts, self.frame_count, damage)
        else:
            warnings = [text for level, text in own if ffmpeg_log.is_worrying(level, text)]
            self._remarks += [Remark(packet.pts, self.frame_count, text) for text in warnings[:1]]
        return frames, lost

    def _note_begin(self, first: Any, number: int, key: int, failures: int) -> None:
        """Note the place from which the first frame was decoded. Problems before it are no damage of a frame."""
        own = _number(first, number)
        key = key if key <= own else 0
        self._presented_from = first.pts if self._presented_from is None else self._presented_from
        damaged = self._damaged_packets.items()
        before = [packet for packet, remark in damaged if packet < key or _is_before(remark.pts, self._presented_from)]
        for packet in before:
            del self._damaged_packets[packet]
        self.begin = Begin(key, without_leading=own == key)
        self.skipped_packets = bool(key or before or failures)
        if key:
            self._remarks.clear()


def _up_to_error(things: Iterator[Any]) -> tuple[list[Any], Exception | None]:
    """Return the things before the first error, and the error; None if there is none."""
    found: list[Any] = []
    try:
        found.extend(things)  # which keeps what came before an error
    except Exception as error:
        return found, error
    return found, None


def reason(error: Exception, *messages: str) -> str:
    """Return the reason of an error, without the messages of other decoders that PyAV adds."""
    return ": ".join((getattr(error, "strerror", None) or str(error), *messages))


def _number(frame: Any, otherwise: int) -> int:
    """Return the number of the packet that a frame was made from."""
    return int(frame.opaque[0]) if isinstance(frame.opaque, list) else otherwise


def _is_before(pts: int | None, time: int | None) -> bool:
    return pts is not None and time is not None and pts < time


def _close(threaded: list[Any], process: int, listens: bool, channel: ffmpeg_log.Channel | None) -> None:
    ffmpeg_log.park(threaded, process)
    if listens and os.getpid() == process:  # a fork does not listen
        ffmpeg_log.leave(channel)
