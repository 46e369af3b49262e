"""Decode the frames of one stream with FFmpeg, and collect the signs of damage (docs/adr/0010)."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

from ...storage.containers import MAX_PIXELS_OPTION
from ...utils import ffmpeg_log
from .packets import ONE_FRAME_A_PACKET, FramesDue, PacketCount, PacketOrder

_MAX_TORN_PACKETS = 1000

_WITHOUT_FRAMES = ("h264", "mpeg4", "vp8")
"""Decoders that return no frame for some packets of sound streams: second fields, uncoded pictures, hidden pictures."""

_STRICT = ("hevc",)
"""Decoders that report nearly all damage by an error or a mark on the frame if `err_detect` is "explode". So hardware needs no
messages, for each of which PyAV's callback takes Python's lock, even below the level that is set (docs/adr/0010)."""

_UNALIGNED = 1
"""FFmpeg's AV_CODEC_FLAG_UNALIGNED. Without it, rows begin on whole vectors, so decoders show cropped columns at the left."""

_NEW_EXTRADATA = 1
"""FFmpeg's AV_PKT_DATA_NEW_EXTRADATA: side data of a packet with parameter sets that are new to the decoder."""

_PADDING = 64  # FFmpeg's AV_INPUT_BUFFER_PADDING_SIZE: its readers look beyond the end of data

_FEW_CORES = 2  # two clips are decoded in parallel, so threads of each decoder gain nothing on two cores

_CUT_OFF = "File ended prematurely"

_MAX_LEADING = 16  # packets, the key frame included, among which one may be presented before it

_TOGETHER = 8
"""Packets that hardware decodes in a row, before the first of their frames is used. Each of FFmpeg's calls gives up Python's
lock, and the less Python has to do between two calls, the less it waits for the lock (docs/adr/0010)."""


class UndecodableError(Exception):
    """A frame is missing, because a packet could not be decoded, or hardware reports damage. The message has the reason."""


@dataclass(frozen=True)
class Begin:
    """The place in a stream where decoding begins."""

    packets: int = 0
    """The number of packets before it."""
    from_key: bool = False
    """Whether it is at the next packet marked as a key frame."""
    without_leading: bool = False
    """Whether to leave out frames presented before the first packet, which refer to frames that were not decoded."""


FROM_START = Begin()
AT_FIRST_KEY = Begin(without_leading=True)
"""The usual place: the first packet is the key frame from which the first frame is decoded."""


@dataclass(frozen=True)
class Report:
    """A report of FFmpeg on a frame: a message, or a mark."""

    text: str
    is_damage: bool
    """Whether the frame is damaged; False for a mere warning."""
    packet: int
    """The number of packets up to the one that was decoded then."""
    pts: int | None
    """The presentation time of that packet, or of the frame that is marked."""
    frames_before: int
    """The number of frames that had been returned. These frames are sound, and the damaged one is among the next frames."""


def threads_help() -> bool:
    """Return whether there are more cores than two decoders without threads use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) > _FEW_CORES
    return (os.cpu_count() or 1) > _FEW_CORES


class Decoder:
    """A decoder of the frames of a stream, in the order of their presentation. It has to be closed.

    `codec` is the codec context that decodes the stream: the stream's own, or a second one for the same packets. Frames of
    damaged streams are returned as FFmpeg conceals the damage, but `hardware` returns none from the first sign of damage on.
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
        self._name = codec.codec.name
        self.hardware = hardware
        self.has_failed = False
        """Whether an error was raised in place of a frame, or the frames are not what they should be."""
        self._parameters: bytes | None = stream.codec_context.extradata if codec.is_open else None
        """The parameter sets of the stream, until an open decoder has them, which may have those of another stream."""
        self.frame_count = 0
        """The number of frames returned since the start, or since the frame that was sought."""
        self.count = PacketCount()
        """The packets of the stream; the count is complete if all were read, from the first to the last."""
        self.order = PacketOrder(stream.codec_context.codec.name, container.format.name)
        self.begin = begin
        """The place from which the first frame was decoded; known without threads, once a frame was returned."""
        self.skipped_packets = False
        """Whether packets before the first frame could not be decoded; known without threads."""
        self.reports: list[Report] = []
        self.failure: str | None = None
        """The reason why a packet could not be decoded, for the last such packet."""
        self.is_cut_off = False
        """Whether the container ended before its end, without an error."""
        self._whole = True  # whether packets are read from the first one
        self._sent = 0
        self._presented_from: int | None = None
        self._is_matroska = "matroska" in container.format.name

        is_strict = hardware and self._name in _STRICT
        self._listens = not is_strict
        self._channel: ffmpeg_log.Channel | None = None
        if self._listens:
            ffmpeg_log.listen()
            if threads or hardware:
                self._channel = ffmpeg_log.open_channel(self._name, hardware=hardware)
        self.threads = threads and self._channel is not None
        self._close = weakref.finalize(self, _close, [codec] if self.threads else [], os.getpid(), self._listens, self._channel)

        if not codec.is_open:
            if not hardware:
                codec.flags |= _UNALIGNED
            if self.threads:
                codec.thread_type = "AUTO"
            else:
                codec.thread_type, codec.thread_count = "NONE", 1
            options = {**MAX_PIXELS_OPTION}
            if is_strict:
                options["err_detect"] = "explode"
            if not adds_grain:
                options["export_side_data"] = "film_grain"  # decoders pass its parameters on, in place of adding it
            codec.options = options if self._channel is None else {**options, **self._channel.options}
        self._start(begin)

    def _start(self, begin: Begin) -> None:
        """Decode the packets from the current position of the container."""
        self._due = FramesDue()
        self._last_pts: int | None = None  # of the last packet
        packets = self._packets(begin)
        self._frames = self._by_hardware(packets) if self.hardware else self._by_cpu(packets)

    def next(self) -> Any:
        """Return the next frame; None at the end. Raises av.FFmpegError, OSError or UndecodableError in place of a frame."""
        try:
            frame = next(self._frames, None)
        except Exception:
            self.has_failed = True
            raise
        if frame is not None:
            if not self.frame_count:
                self.order.begin(frame)
            self.frame_count += 1
        return frame

    @property
    def is_sound(self) -> bool:
        """Return whether there was no error and no sign of damage."""
        return not (self.has_failed or self.reports)

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
        if undecoded or messages or len(frames) != 1 or any(item.is_corrupt for item in (packets[0], *frames)):
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
        self.frame_count, self._whole = 0, False
        self.order.ignore()
        self.reports.clear()  # of another part of the stream
        self._start(Begin(from_key=from_key, without_leading=from_key))

    def begin_at(self, time: int) -> None:
        """Count frames from the last returned one, presented at a time in ticks, and forget reports on frames before it."""
        self.frame_count, self._presented_from = 1, time
        self.reports = [replace(report, frames_before=0) for report in self.reports if not _is_before(report.pts, time)]

    def close(self) -> None:
        """Stop the threads and release FFmpeg's decoder and its frames; a second call does nothing.

        Hardware has few decoders and little memory, which may be needed before this object is garbage-collected.
        """
        self._close()
        self._frames = iter(())
        self._container = self._stream = self._codec = None

    # -- packets ------------------------------------------------------------------------------------------------------

    def _packets(self, begin: Begin) -> Iterator[Any]:
        """Yield the packets from `begin`, and an empty one at the end, which flushes the decoder."""
        number = 0
        began = False
        first: int | None = None  # presentation time of the first packet, until a later one
        packets: Iterator[Any] = self._container.demux(self._stream)
        for packet in self._up_to_cut(packets) if self._listens else packets:
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
                if self._parameters is not None:
                    _attach(packet, self._parameters)
                    self._parameters = None
            yield packet
        self.count.complete = self._whole

    def _up_to_cut(self, packets: Iterator[Any]) -> Iterator[Any]:
        """Yield packets, and note if the container is cut off: Matroska ends without an error."""
        while True:
            with ffmpeg_log.hearing() as messages:
                packet = next(packets, None)
            self._note_messages(messages)
            self.is_cut_off |= any(text.startswith(_CUT_OFF) for _, _, text in messages)
            if packet is None:
                return
            yield packet

    def _read_end_again(self) -> None:
        """Note if the container is cut off. Only a message tells, and nobody has listened. All packets have been decoded.

        FFmpeg reads the packets from the last key frame on twice more: to seek, and again afterwards.
        """
        from av import FFmpegError

        ffmpeg_log.listen()
        try:
            with suppress(FFmpegError, OSError):  # the frames are right, whatever happens to the file now
                self._container.seek(self._due.newest or 0, stream=self._stream)
                for _ in self._up_to_cut(self._container.demux(self._stream)):
                    pass
        finally:
            ffmpeg_log.leave()

    # -- frames -------------------------------------------------------------------------------------------------------

    def _by_hardware(self, packets: Iterator[Any]) -> Iterator[Any]:
        may_skip = not self._whole or self._name in _WITHOUT_FRAMES
        began = False
        while True:
            group, unread = _up_to_error(islice(packets, _TOGETHER if began else 1))
            frames, undecoded = self._decode(group)
            began |= bool(frames)
            failure = undecoded or unread
            is_end = any(not packet.size for packet in group) and failure is None
            if is_end and self._is_matroska and not (self._listens or self.reports):
                self._read_end_again()

            if self.reports:
                raise UndecodableError(self.reports[0].text)
            while frames:
                frame = frames.pop(0)
                if self._due.returned(frame.pts) and self._due.is_timed and not (self._listens or may_skip):
                    raise UndecodableError("a packet gave no frame")
                yield frame
            if failure is not None:
                raise failure
            if not group:
                break
        if self._due.fall_short(may_skip=may_skip):
            raise UndecodableError("a packet gave no frame")

    def _by_cpu(self, packets: Iterator[Any]) -> Iterator[Any]:
        """Yield frames up to the first one that is missing after a sign of damage. Packets before the first may be torn."""
        from av import FFmpegError

        began, failures, lost = False, 0, ""
        failed: int | None = None  # the time of the last packet that could not be decoded
        gap: int | None = None  # the number of the first frame before which one is missing
        has_fields = False
        opening: list[tuple[int | None, bool]] = []  # time and key mark of the packets up to the first frame
        while True:
            group, unread = _up_to_error(islice(packets, 1))
            # If reading fails, the decoder returns the frames that it still has.
            frames, undecoded = self._decode(group if unread is None else [None])
            if not began:
                opening += [(packet.pts, packet.is_keyframe and undecoded is None) for packet in group]
            if undecoded is not None:
                if not isinstance(undecoded, FFmpegError):
                    raise undecoded
                self.failure = reason(undecoded, *(report.text for report in self.reports[-1:] if report.packet == self._sent))
                lost = lost or (self.failure if began else "")
                failures, failed = failures + (not began), self._last_pts
                if failures == _MAX_TORN_PACKETS:
                    return

            for frame in frames:
                if not began:
                    began = True
                    self._note_begin(frame, opening, failures)
                    if _is_before(frame.pts, failed):  # a later frame is missing
                        lost = self.failure or ""
                if self._due.returned(frame.pts):
                    if lost:
                        raise UndecodableError(lost)
                    gap = self.frame_count if gap is None else gap
                has_fields |= frame.interlaced_frame
                yield frame
            if unread is not None:
                self.failure = reason(unread)
                if not isinstance(unread, FFmpegError):
                    raise unread
                if began:
                    raise UndecodableError(self.failure)
                return
            if not group:
                break
        if lost:
            raise UndecodableError(lost)
        has_one_each = self._name in ONE_FRAME_A_PACKET and self._due.is_timed and not has_fields
        if began and self._whole and has_one_each and self._due.fall_short():
            # PyAV swallows an error that follows a frame, and with it all further frames at the end.
            if self._due.fall_short(may_skip=True) and (damage := [report for report in self.reports if report.is_damage]):
                raise UndecodableError(damage[0].text)
            at = self.frame_count - 1 if gap is None else gap
            self.reports.append(Report("a packet gave no frame", True, self._sent, None, at))

    def _decode(self, group: list[Any]) -> tuple[list[Any], Exception | None]:
        """Return the frames that the decoder has after a group of packets, and the error that ended them, if any."""
        for packet in group:
            if packet is not None and packet.size:
                self._sent += 1
                self._last_pts = packet.pts
                if not packet.is_discard:
                    self._due.add(packet.pts)
        with ffmpeg_log.hearing() as messages:
            frames, error = _up_to_error(chain.from_iterable(map(self._codec.decode, group)))

        self._note_messages(messages)
        if any(packet is not None and packet.is_corrupt for packet in group):
            self._report("a packet is marked as corrupt", is_damage=True)
        for number, frame in enumerate(frames, self.frame_count):
            if frame.is_corrupt:
                self.reports.append(Report("a frame is marked as corrupt", True, self._sent, frame.pts, number))
        return frames, error

    def _note_messages(self, messages: Iterable[ffmpeg_log.Message]) -> None:
        """Note the messages of the decoder that may mean damage, of this thread and of the decoder's own threads."""
        own = [(level, text) for level, name, text in messages if name == self._name] if self._listens else []
        own += [] if self._channel is None else self._channel.take()
        for level, text in own:
            if ffmpeg_log.is_worrying(level, text):
                self._report(text.strip(), is_damage=ffmpeg_log.is_damage(level, text))

    def _report(self, text: str, *, is_damage: bool) -> None:
        """Report the frame that is being decoded, unless that was done."""
        last = self.reports[-1] if self.reports else None
        if last is not None and (last.packet, last.is_damage) == (self._sent, is_damage):
            return
        if self.threads or not _is_before(self._last_pts, self._presented_from):
            self.reports.append(Report(text, is_damage, self._sent, self._last_pts, self.frame_count))

    def _note_begin(self, first: Any, opening: list[tuple[int | None, bool]], failures: int) -> None:
        """Note the place from which the first frame was decoded. Problems before it are no damage of a frame."""
        own = max((number for number, (pts, _) in enumerate(opening) if pts == first.pts), default=len(opening) - 1)
        key = max((number for number, (_, is_key) in enumerate(opening[: own + 1]) if is_key), default=0)
        self.begin = Begin(key, without_leading=own == key)
        before = 0
        if not self.threads:
            self._presented_from = first.pts if self._presented_from is None else self._presented_from
            reports = [
                report
                for report in self.reports
                if report.packet > key and not _is_before(report.pts, self._presented_from) and (report.is_damage or not key)
            ]
            before = len(self.reports) - len(reports)
            self.reports = reports
        self.skipped_packets = bool(key or before or failures)


def _attach(packet: Any, parameters: bytes) -> None:
    """Have an open decoder read the parameter sets of a stream before its first packet."""
    from av.packet import PacketSideData

    padded = parameters + bytes(_PADDING)
    data: Any = PacketSideData(_NEW_EXTRADATA, len(padded))  # type: ignore[call-arg] # which PyAV's types leave out
    data.update(padded)
    packet.set_sidedata(data, move=True)


def _up_to_error(things: Iterable[Any]) -> tuple[list[Any], Exception | None]:
    """Return the things before the first error, and the error; None if there is none."""
    things_before: list[Any] = []
    try:
        things_before.extend(things)  # which keeps what came before an error
    except Exception as error:
        return things_before, error
    return things_before, None


def reason(error: Exception, *messages: str) -> str:
    """Return the reason of an error, without the messages of other decoders that PyAV adds."""
    return ": ".join((getattr(error, "strerror", None) or str(error), *messages))


def _is_before(pts: int | None, time: int | None) -> bool:
    return pts is not None and time is not None and pts < time


def _close(threaded: list[Any], process: int, listens: bool, channel: ffmpeg_log.Channel | None) -> None:
    ffmpeg_log.park(threaded, process)
    if listens and os.getpid() == process:  # a fork does not listen
        ffmpeg_log.leave(channel)
