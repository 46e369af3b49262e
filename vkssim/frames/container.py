"""Decode a video stream of a container, a picture or a sequence of pictures with PyAV (FFmpeg)."""

from __future__ import annotations

import os
import threading
import zlib
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import DecoderBusyError, DeviceError, InputError, RangeError, ReadError
from ..types import Planes
from ..utils.interruption import check
from ..utils.limits import LARGEST_NUMBER
from .aperture import Track, stated_crop
from .boxes import lacks_index
from .clip_facts import ClipFacts, VideoPackets
from .colour import MATRICES, RANGES, RGB_DEFAULT, TRANSFERS, YCBCR_BITS, Colour
from .decoder import Begin, Decoder, UndecodableError, reason, threads_help
from .demuxer import open_container
from .fields import field_order
from .forks import keep_in_forks, keep_no_longer
from .hardware import FORMATS, UNCOMPRESSED, CodedVideo, HardwareDecoder
from .info import VideoInfo
from .layout import check_size
from .marks import KeyMarks, Marks
from .orientation import Orientation, by_degrees, orientation
from .packets import PacketCount
from .pixels import PixelFormat, RowsOf, pixel_format, plane_rows
from .raw import unreadable
from .sequence import sequence
from .source import SequentialSource
from .streams import choose_stream, is_cover
from .surfaces import DecodedFrame, SurfaceReader, format_name
from .times import FrameTimes, Packet, are_in_file_order, are_rising, packets_are_frames, rising_seconds

_TICKS = 1_000_000  # ticks of a second, in which FFmpeg gives the duration of a container
_SEEK_SECONDS = 0, 1, 4, 16  # how long before a frame to seek: without an index FFmpeg goes by decoding times, past key frames
_MOST_PLANES = 3
_FEW_FRAMES = 300  # up to this number, decoding all frames is as quick as seeking


class UnknownFormatError(InputError):
    """Report that a file has no format that FFmpeg knows, or none that is read here."""


class ContainerFile(SequentialSource):
    """Decode ahead on FFmpeg's own threads, until there is a sign of damage; see `Decoder`.

    Y'CbCr is taken as it is, R'G'B' becomes Y'CbCr of 16 bits. `stream` is the index of the stream, see `choose_stream`. The
    first frame is decoded when it is opened: only it tells what comes out, cropped as the stream says by libavcodec. A
    `hardware` decoder that is given has to decode this frame to the same samples, and then decodes the clip. Raises InputError
    where there is no video that can be compared, or where hardware that is demanded cannot decode it, and DecoderBusyError.
    """

    def __init__(self, path: str, stream: int | None = None, hardware: HardwareDecoder | None = None) -> None:
        super().__init__()
        self._path = path
        self.stream = stream
        self._bytes_before = 0
        self._range: tuple[int, int] | None = None  # the frame that was sought, and its position
        self._promised: npt.NDArray[np.int64] | None = None
        self._waiting: Any = None
        self._again = threading.RLock()  # held while decoding starts again, when `damage` is incomplete
        self._all_packets: VideoPackets | None = None
        self._hidden = 0
        self._codec: Any = None
        self._unconverted: VideoInfo
        self._hardware: HardwareDecoder | None = None
        self._surfaces: SurfaceReader | None = None
        self._rows_of: RowsOf = plane_rows
        self._refusal: str | None = None  # why a hardware decoder does not decode it
        try:
            self._describe(self._begin(threads=hardware is None and threads_help()))
            if hardware is not None:
                self._change_to(hardware)
        except BaseException:
            self.close()
            raise

    # -- decoding -----------------------------------------------------------------------------------------------------

    def _open(self, hwaccel: Any = None) -> Any:
        import av  # here, since its import takes time and only containers need it

        self._av_error = av.FFmpegError
        self._failure = av.FFmpegError, OSError  # OSError comes where a URL cannot be read on
        self._sequence = sequence(self._path)
        try:
            if self._sequence is not None:
                return open_container(self._sequence.name, "image2", self._sequence.options)
            container = open_container(self._path, hwaccel=hwaccel)
        except (av.FFmpegError, OSError, ValueError) as error:
            if hwaccel is not None:
                raise
            if isinstance(error, av.InvalidDataError):
                self._check_index()
            raise UnknownFormatError(f"{self._path}: FFmpeg cannot open it ({reason(error)})") from None
        if not len(container.streams):
            self._check_index()
        return container

    def _check_index(self) -> None:
        if lacks_index(self._path):
            raise InputError(
                f"{self._path}: the index (moov) is missing: the file is cut off, or still being written"
            ) from None

    def _start(
        self,
        *,
        threads: bool,
        begin: Begin = Begin(),  # noqa: B008 - frozen
        hardware: HardwareDecoder | None = None,
    ) -> None:
        """Open the container, in place of the one that is open, and decode from its beginning."""
        self._let_go()
        own = None if hardware is None else hardware.own_codec(self._codec)
        self._container = self._open(None if hardware is None or own is not None else hardware.request())
        self._stream, self._stream_notes = choose_stream(self._path, self._container, self.stream)
        codec = self._stream.codec_context
        if codec is None:
            raise InputError(f"{self._path}: FFmpeg has no decoder for its video")
        self._check_size(max(1, codec.width), max(1, codec.height))  # 0 means that it is not known
        if hardware is not None and own is not None:
            codec = hardware.open_codec(own, self._stream)
        self._decoder = Decoder(
            self._container, self._stream, codec, threads=threads, begin=begin, hardware=hardware is not None
        )
        keep_in_forks(self, codec)

    def _begin(self, *, threads: bool) -> Any:
        """Decode the first frame, which is given again when the first frame is read.

        A recording may begin between key frames: what cannot be decoded there is passed over, and is no damage. To start
        `threads` takes longer than one frame, so they are of no use where hardware goes on.
        """
        if threads:
            self._waiting = self._begin_with_threads()
        if self._waiting is None:
            self._start(threads=False)
            self._waiting = self._first_frame()
        return self._waiting

    def _begin_with_threads(self) -> Any:
        """Return the first frame, None where it is to be decoded without threads."""
        self._start(threads=True)
        first = self._first_frame(doubt=True)
        if first is not None:
            return first
        self._start(threads=False)
        first = self._first_frame()
        if not self._decoder.passed_over:
            return None
        self._start(threads=True, begin=self._decoder.begin)
        again = self._first_frame(doubt=True)
        return again if again is not None and again.pts == first.pts else None

    def _first_frame(self, *, doubt: bool = False) -> Any:
        """Return the first frame; None where there is `doubt` that it is right."""
        why = None
        try:
            first = self._decoder.next()
        except (self._av_error, UndecodableError) as failure:
            first, why = None, reason(failure)
        except OSError as failure:
            raise unreadable(self._path, failure) from None
        if doubt and (first is None or self._decoder.doubtful):
            return None
        if first is None:
            why = why or self._decoder.failure
            raise InputError(f"{self._path}: no frame can be decoded from it" + (f" ({why})" if why else ""))
        return first

    def _change_to(self, hardware: HardwareDecoder) -> None:
        """Have the hardware decoder give the frames, the first one included.

        A clip that it cannot decode is left to the processor where the decoder is not demanded. Raises InputError where it is.
        """
        if hardware.passes_over(self._codec.canonical_name, moving=self.info.fps is not None):
            self._begin(threads=threads_help())
            return
        problem = hardware.refuses(self._coded_video(), self._format, self._format_name) or self._start_by(hardware)
        if problem is None:
            name = format_name(self._waiting)
            self._formats[name] = pixel_format(self._path, name)
            self._hardware = hardware
            self.external = self._surfaces is not None
            self._add_note(f"decoded by {hardware.kind}, which notices less damage than the processor's decoder")
            return
        if hardware.demanded:
            raise InputError(
                f"{self._path}: the {hardware.kind} decoder cannot decode it: {problem}. `decode=cpu` decodes it on the"
                " processor"
            )
        self._refusal = f"{hardware.kind}: {problem}"
        self._add_note(f"decoded on the processor, since the {hardware.kind} decoder cannot decode it: {problem}")
        self._waiting = None
        self._begin(threads=threads_help())

    def _leave_hardware(self, problem: str) -> None:
        """Note that the processor decodes the clip from now on, and why."""
        assert self._hardware is not None
        kind, self._hardware = self._hardware.kind, None
        self._refusal = f"{kind}: {problem}"
        self._add_note(f"decoded on the processor, since the {kind} decoder cannot go on: {problem}")

    def _start_by(self, hardware: HardwareDecoder) -> str | None:
        """Decode the first frame again by hardware; return why it cannot go on so, None where it can.

        Raises DecoderBusyError.
        """
        first, begin = self._waiting, self._decoder.begin
        try:
            if hardware.surfaces is not None:
                self._surfaces = SurfaceReader(hardware.surfaces)
                self._rows_of = self._surfaces.rows
            self._start(threads=False, begin=begin, hardware=hardware)
            self._waiting = self._decoder.next()
            return self._differing(first, hardware)
        except RuntimeError:  # of PyAV, for a codec that FFmpeg has no such decoder for
            return f"FFmpeg has none for {self._codec.canonical_name}"
        except (*self._failure, ValueError, UndecodableError, InputError, DeviceError) as error:
            problem = f"its driver or its device refuses ({reason(error)})"
            if hardware.shared:
                raise DecoderBusyError(f"the {hardware.kind} decoder decodes fewer clips side by side: {problem}") from None
            return problem

    def _add_note(self, note: str) -> None:
        self.info = replace(self.info, notes=(*self.info.notes, note))
        self._unconverted = replace(self._unconverted, notes=(*self._unconverted.notes, note))

    def _coded_video(self) -> CodedVideo:
        """Return what a driver is asked about. The size before cropping is not known of each codec, but is never smaller."""
        codec = self._stream.codec_context
        width, height = max(codec.coded_width, self._size[0]), max(codec.coded_height, self._size[1])
        return CodedVideo(self._codec.canonical_name, self._format.chroma, self._format.bits, width, height)

    def _is_of_first_size(self, frame: Any) -> bool:
        """Return whether a frame has the size of the first one. Surfaces may be a sample larger, which is left out."""
        if self._decoder.hardware and self._hardware is not None:
            return self._hardware.has_size(frame, *self._size)
        return (frame.width, frame.height) == self._size

    def _differing(self, first: Any, hardware: HardwareDecoder) -> str | None:
        """Return how the frame that waits is another than the processor's; None where all samples are equal."""
        frame = self._waiting
        if frame is None or self._decoder.doubtful:
            return "it gives no frame, or sees damage in the first one"
        expected, name = FORMATS[self._format.bits], format_name(frame)
        if (name, frame.pts) != (expected, first.pts) or not hardware.has_size(frame, *self._size):
            return f"its first frame is {frame.width}x{frame.height} {name} at {frame.pts}"
        planes, others = self.info.new_planes(_MOST_PLANES), self.info.new_planes(_MOST_PLANES)
        self._format.copy(first, planes)
        pixel_format(self._path, expected).copy(frame, others, self._rows_of)
        alike = all(np.array_equal(plane, other) for plane, other in zip(planes, others, strict=True))
        return None if alike and _colours(frame) == _colours(first) else "its first frame has other samples"

    def _decode_again(self, failure: Exception | None) -> None:
        """Decode from the beginning, or from the frame that was gone to, without threads up to the frame to be read."""
        position = self._position
        if self._decoder.hardware:
            assert self._hardware is not None
            seen = "FFmpeg saw damage" if failure is None else f"FFmpeg saw damage or a failure ({reason(failure)})"
            text = f"decoded on the processor from there on: {seen} while the {self._hardware.kind} decoder read it"
            self._changes["decoder"] = position, text
        with self._again:
            self._start(threads=False)
            if self._range is not None:
                self.go_to(*self._range)
                self._read_to(position - 1, None)
                return
            for _ in range(position):
                check()
                if self._decoder.next() is None:
                    break

    def _take(self) -> Any:
        """Return the next frame, None at the end."""
        if self._waiting is not None:
            frame, self._waiting = self._waiting, None
            return frame
        while True:
            try:
                frame, failure = self._decoder.next(), None
            except self._av_error as error:
                if not self._decoder.stops_at_doubt:
                    raise
                failure = error
            if failure is None and not self._decoder.doubtful:
                return frame
            self._decode_again(failure)

    def _check_size(self, width: int, height: int) -> None:
        try:
            check_size(width, height)
        except InputError as error:
            raise InputError(f"{self._path}: {error}") from None

    # -- what is known ------------------------------------------------------------------------------------------------

    def _describe(self, first: Any) -> None:
        from av.video.reformatter import VideoReformatter

        # These are copied here, since another thread may open the container anew at any time.
        self._time_base: Fraction = self._stream.time_base
        self._start_time, self._duration = self._container.start_time or 0, self._container.duration
        self._stream_index, self._stream_duration = self._stream.index, self._stream.duration
        self._container_name = self._container.format.name
        self._container_bytes = max(0, self._container.size or 0) if self._sequence is None else 0
        self._codec = self._stream.codec_context.codec
        self._format_name = first.format.name
        self._format: PixelFormat = pixel_format(self._path, self._format_name)
        self._formats = {self._format_name: self._format}
        self._pixels = self._format  # that of the frame that was read last
        self._last_look: tuple[Any, ...] | None = None
        self._size = first.width, first.height
        self._colours = _colours(first)
        self._changes: dict[str, tuple[int, str]] = {}
        self._interlaced: bool = first.interlaced_frame
        self._in_file_order = are_in_file_order(self._container, self._stream)
        self.info = self._described(first)
        time_base, fps = self._time_base, self.info.fps
        self._times = FrameTimes(round(1 / (fps * time_base)) if fps else 1, round(1 / time_base))
        self._times_begin = 0  # the frame that the first of the times belongs to
        self._first_tick = self._tick(first)
        self.aperture = stated_crop(self._path, *self._size, self._track())
        self.orientation = self._orientation(first)
        self._unconverted = self.info
        self.is_rgb = self._format.rgb
        self._reformatter = VideoReformatter()
        if self.is_rgb:
            dtype = np.uint8 if self._format.bits == 8 else np.uint16
            self._rgb = tuple(np.empty(self._size[::-1], dtype) for _ in "rgb")
            self.convert_to(RGB_DEFAULT)

    def _described(self, first: Any) -> VideoInfo:
        self._check_size(*self._size)
        stream, pixels = self._stream, self._format
        pictures = "image2" in self._container.format.name or self._container.format.name.endswith("_pipe")
        notes = self._stream_notes
        if any(part.is_alpha for part in first.format.components):
            notes += ("its alpha is left out",)
        if self._decoder.begin.packets:
            notes += (f"begins with what cannot be decoded and was passed over, packets: {self._decoder.begin.packets}",)
        return VideoInfo(
            self._path,
            stream.codec_context.name,
            *self._size,
            YCBCR_BITS if pixels.rgb else pixels.bits,
            self._claimed_frames(),
            None if pictures else _rate(stream),
            pixels.chroma,
            None if pixels.rgb else self._colours["matrix"],
            None if pixels.rgb else self._colours["range"],
            notes,
            transfer=self._colours["transfer"],
            field_order=None if pictures or pixels.rgb else field_order(first),
            sample_aspect=stream.codec_context.sample_aspect_ratio or stream.sample_aspect_ratio or None,
        )

    def _claimed_frames(self) -> int | None:
        if self._sequence is not None:
            return self._sequence.frames
        if self._interlaced and self._codec.name == "h264":  # the count may be of fields
            return None
        return min(self._stream.frames, LARGEST_NUMBER) or None

    def _track(self) -> Track:
        videos = [stream.index for stream in self._container.streams.video if not is_cover(stream)]
        index = self._stream.index
        return Track(self._stream.id or None, videos.index(index) if index in videos else 0)

    def _orientation(self, first: Any) -> Orientation | None:
        try:
            matrix = first.side_data.get("DISPLAYMATRIX")
        except ValueError:  # PyAV gives no side data at all where it does not know one of them, such as EXIF
            turned = by_degrees(first.rotation)
        else:
            turned = None if matrix is None else orientation(bytes(matrix))
        if turned is None and first.rotation:
            note = f"to be shown turned by {first.rotation} degrees, which is no multiple of 90 and was not done"
            self.info = replace(self.info, notes=(*self.info.notes, note))
        return turned

    def convert_to(self, colour: Colour) -> None:
        """Choose the Y'CbCr that R'G'B' becomes; to be called before the first frame is read."""
        self._colour = colour
        note = f"converted from {self._format_name} to Y'CbCr of {YCBCR_BITS} bits by {colour.matrix}, {colour.range} range"
        self.info = replace(self._unconverted, matrix=colour.matrix, range=colour.range, notes=(*self._unconverted.notes, note))

    @property
    def expected(self) -> int | None:
        """See FrameSource.expected: as the container says, else by its duration."""
        if self.info.frames is not None or self.info.fps is None or not self._duration:
            return self.info.frames
        seconds: float = self._duration / _TICKS
        return min(round(seconds * self.info.fps), LARGEST_NUMBER)

    @property
    def at_start(self) -> bool:
        """See FrameSource.at_start."""
        return self._position == 0 and self._range is None and self._waiting is not None

    @property
    def damage(self) -> Mapping[int, str]:  # type: ignore[override] # which others have as an attribute
        """See FrameSource.damage."""
        with self._again:
            return self._decoder.damage.copy()

    @property
    def remarks(self) -> Sequence[tuple[int, str]]:  # type: ignore[override]
        """See FrameSource.remarks: what FFmpeg warned of, and what changes on the way."""
        with self._again:
            remarks = self._decoder.remarks
        ticks = [tick for tick in self._times.ticks if tick is not None]
        said = [
            (
                remark.frames_before if remark.pts is None else self._times_begin + bisect_left(ticks, remark.pts),
                f"FFmpeg says: {remark.text}",
            )
            for remark in remarks
        ]
        back = "the presentation times go back; they were counted on from the frame before"
        return said + [(number + self._times_begin, back) for number in self._times.jumps] + list(self._changes.values())

    @property
    def bytes_read(self) -> int:  # type: ignore[override]
        """See FrameSource.bytes_read."""
        return self._bytes_before + self._decoder.bytes_read

    # -- frames -------------------------------------------------------------------------------------------------------

    def decoded_frame(self, number: int) -> DecodedFrame | None:
        """See FrameSource.decoded_frame. Where the processor goes on, the frames lie on the host."""
        assert self._surfaces is not None
        frame: Any = None

        def take() -> bool:
            nonlocal frame
            frame = self._next_frame()
            return frame is not None

        if not (self._pass_to(number) and self._advance(take)):
            return None
        return DecodedFrame(frame, self._pixels, self._surfaces)

    def _next(self, target: Planes | None) -> bool:
        frame = self._next_frame()
        return frame is not None and (target is None or self._copy(frame, target))

    def _next_frame(self) -> Any:
        """Return the next frame after all checks; None at the end, or where it sets `problem`."""
        if self.problem is not None:
            return None
        try:
            frame = self._take()
        except (*self._failure, UndecodableError) as error:
            kind = ReadError if isinstance(error, OSError) else InputError
            self.problem = kind(f"{self.info.path}: frame {self._position} cannot be decoded ({reason(error)})")
            return None
        if frame is None:
            return None
        look = _look(frame)
        changed = look != self._last_look
        if changed and not self._has_known_format(frame):
            return None
        self._times.add(self._tick(frame))
        if self._is_out_of_time():
            return None
        if changed:
            self._note_changes(frame)
            self._last_look = look
        return frame

    def _has_known_format(self, frame: Any) -> bool:
        """Choose the pixel format of a frame; return False, and set `problem`, where its size or format is another one."""
        name = format_name(frame)
        if self._is_of_first_size(frame) and name in self._formats:
            self._pixels = self._formats[name]
            return True
        self.problem = InputError(
            f"{self.info.path}: frame {self._position} is {frame.width}x{frame.height} {name}, the first one"
            f" {self._size[0]}x{self._size[1]} {self._format_name}; a change within a stream cannot be scored"
        )
        return False

    def _copy(self, frame: Any, target: Planes) -> bool:
        pixels = self._pixels
        if pixels.via is not None:
            try:
                # With more threads some slices stay empty.
                frame = self._reformatter.reformat(frame, format=pixels.via, threads=1)
            except self._av_error as error:
                self.problem = InputError(
                    f"{self.info.path}: {self._format_name} cannot be converted to {pixels.via} ({error}); convert"
                    " it, for instance with `ffmpeg -i IN -pix_fmt yuv420p OUT.y4m`"
                )
                return False
        if not self.is_rgb:
            pixels.copy(frame, target, self._rows_of)
            return True
        pixels.copy(frame, self._rgb)
        self._colour.convert(self._rgb, pixels.bits, target)
        return True

    def _note_changes(self, frame: Any) -> None:
        """Note where the stream begins to state other colours: its samples do not mean the same any more."""
        colours = _colours(frame)
        if colours == self._colours or self.is_rgb:
            return
        for what, first in self._colours.items():
            alike = colours[what] in (first, None, "limited" if first is None else first)
            if not alike and what not in self._changes:
                text = (
                    f"states the {what} {colours[what]} from there on, before that {first or 'none'}: the samples mean another"
                    " thing then, and are scored as they are"
                )
                self._changes[what] = self._position, text

    def sample(self, count: int) -> Iterator[Planes]:
        """See FrameSource.sample: of long streams key frames, which are quick to come by."""
        target = self.info.new_planes(1)
        if not self._duration or (self.expected or 0) <= _FEW_FRAMES:
            yield from super().sample(count)
            return
        self._start(threads=False)
        self._waiting = None
        for number in range(count):
            try:
                self._decoder.seek(self._start_time + self._duration * number // count)
            except (*self._failure, OverflowError):
                return
            if self._next(target):
                yield target

    # -- times --------------------------------------------------------------------------------------------------------

    def _tick(self, frame: Any) -> int | None:
        """Return when the next frame is shown, in ticks of the stream."""
        if not self._in_file_order:
            pts: int | None = frame.pts
            return pts
        stamps = self._decoder.stamps
        return stamps[self._position] if self._position < len(stamps) else None

    def time(self, number: int) -> float | None:
        """See FrameSource.time: by the presentation times of the frames."""
        place = number - self._times_begin
        if self.info.fps is None or not 0 <= place < len(self._times.ticks):
            return None
        first, this = self._first_tick, self._times.ticks[place]
        if first is None or this is None:
            return super().time(number)
        return (this - first) * self._time_base.numerator / self._time_base.denominator

    def times(self) -> npt.NDArray[np.float64] | None:
        """See FrameSource.times: by the packets where each is sure to be a frame, else by decoding once more.

        The times that packets promise are compared with those of the frames: a frame of another time ends the clip with an
        error.
        """
        if self.info.fps is None or self._first_tick is None:
            return None
        try:
            packets = self._packets()
        except self._failure as error:
            raise InputError(f"{self._path}: its packets cannot be read ({error}); `sync=index` needs only frames") from None
        time_base = float(self._time_base)
        if self._in_file_order:
            stamps = [packet.dts for packet in packets if packet.dts is not None]
            return rising_seconds(sorted(stamps), self._first_tick, time_base)
        if packets_are_frames(packets, self._codec, interlaced=self._interlaced):
            self._promised = self._ticks(packets)
            return rising_seconds(list(self._promised), self._first_tick, time_base)
        return self._times_by_decoding()

    def _times_by_decoding(self) -> npt.NDArray[np.float64] | None:
        with ContainerFile(self._path, self.stream) as other:
            while other._read_to(other._position, None):
                pass
            ticks = [tick for tick in other._times.ticks if tick is not None]
            if len(ticks) < len(other._times.ticks) or self._first_tick is None:
                return None
            return rising_seconds(ticks, self._first_tick, float(self._time_base))

    def _is_out_of_time(self) -> bool:
        """Return whether the frame that was just read is shown at another time than its packet promised."""
        if self._promised is None or self._position >= len(self._promised):
            return False
        promised, this = int(self._promised[self._position]), self._times.ticks[-1]
        if this == promised:
            return False
        when = "at no known time" if this is None else f"at {float(this * self._time_base):.3f} s"
        self.problem = InputError(
            f"{self.info.path}: frame {self._position} is shown {when}, and the packets promised"
            f" {float(promised * self._time_base):.3f} s: one of them gave no frame. Frames behind it would be paired"
            " with the wrong ones; `sync=index`, with `start` and `end` as numbers, needs no times"
        )
        return True

    def marks(self) -> Marks | None:
        """See FrameSource.marks: its key frames, by the packets, read from the container once more."""
        if self.info.fps is None or self._first_tick is None or self._sequence is not None or self._in_file_order:
            return None
        try:
            packets = self._packets()
        except self._failure:
            return None
        if any(packet.pts is None or packet.is_corrupt for packet in packets) or not are_rising(packets):
            return None
        ticks = self._ticks(packets)
        keys = self._ticks([packet for packet in packets if packet.is_key])
        return KeyMarks(ticks, keys) if len(ticks) and (np.diff(ticks) > 0).all() else None

    def _packets(self) -> list[Packet]:
        """Return what the container says of each packet whose frame is shown; counts the bytes of all on the way."""
        with self._open() as container:
            count = PacketCount()
            found = []
            for packet in container.demux(choose_stream(self._path, container, self.stream)[0]):
                count.add(packet)
                if packet.size and not packet.is_discard:
                    found.append(Packet(packet.pts, packet.dts, packet.is_keyframe, packet.is_corrupt))
            self._all_packets, self._hidden = self._total(count), count.hidden
            return found

    def packets(self) -> VideoPackets | None:
        """See FrameSource.packets."""
        if self.info.fps is None or self._codec.name in UNCOMPRESSED:
            return None
        if self._decoder.count.complete:
            return self._total(self._decoder.count)
        with suppress(*self._failure):
            if self._all_packets is None:
                self._packets()
        return self._all_packets

    def hidden_frames(self) -> int:
        """See FrameSource.hidden_frames."""
        if self._decoder.count.complete:
            return self._decoder.count.hidden
        with suppress(*self._failure):
            self._packets()
        return self._hidden

    def _total(self, count: PacketCount) -> VideoPackets:
        return count.total(self._time_base, self.info.fps)

    def clip_facts(self) -> ClipFacts:
        """See FrameSource.clip_facts."""
        import av

        seconds = self._stream_duration * self._time_base if self._stream_duration and self.info.fps else None
        return replace(
            super().clip_facts(),
            container=self._container_name,
            stream=self._stream_index,
            codec=self._codec.canonical_name,
            decoder=self._codec.name if self._hardware is None else self._hardware.name(self._codec.canonical_name),
            decoder_reason=self._refusal,
            decoder_version=f"libavcodec {'.'.join(map(str, av.library_versions['libavcodec']))}",
            bits=self._format.bits,
            duration=None if seconds is None else round(float(seconds), 6),
            file_bytes=self._size_of_files(),
        )

    def _size_of_files(self) -> int | None:
        with suppress(OSError):
            files = () if self._sequence is None else self._sequence.files
            return (self._container_bytes or sum(map(os.path.getsize, files))) or None
        return None

    def _ticks(self, packets: Sequence[Packet]) -> npt.NDArray[np.int64]:
        """Return the rising times of the frames; before the first frame none is decoded."""
        first = self._first_tick or 0
        return np.array(sorted(packet.pts for packet in packets if packet.pts is not None and packet.pts >= first), np.int64)

    # -- ranges -------------------------------------------------------------------------------------------------------

    def go_to(self, number: int, place: int) -> int | None:
        """See FrameSource.go_to: decodes from the key frame before it on."""
        self._waiting = None
        self._range = number, place
        for earlier in _SEEK_SECONDS:
            try:
                self._decoder.seek(place - round(earlier / self._time_base), self._stream, from_key=True)
                found = self._decoder.next()
                while found is not None and found.pts is not None and found.pts < place:
                    found = self._decoder.next()
            except (*self._failure, UndecodableError, OverflowError) as error:
                raise RangeError(f"{self._path}: frame {number} cannot be decoded by itself ({error})") from None
            if found is not None and found.pts == place:
                if self._decoder.doubtful:  # frames before the position may be missing; other damage shows again
                    if self._decoder.hardware:
                        self._leave_hardware(f"FFmpeg saw damage when it went to frame {number}")
                    self._start(threads=False)
                    return self.go_to(number, place)
                self._decoder.forget_before(place)
                self._position = self._times_begin = number
                self._waiting = found
                fingerprint = self._following()
                self._times.restart()
                self._waiting = found
                return fingerprint
        raise RangeError(f"{self._path}: frame {number} is not where its packet promised it")

    def _is_behind(self, place: int) -> bool:
        return bool(self._times.ticks) and self._times.ticks[-1] == place

    def _following(self) -> int:
        """See SequentialSource: the CRC-32 of all planes. A decoder that lacks what a frame refers to gets another one."""
        following = self.info.new_planes(_MOST_PLANES)
        if not self._next(following):
            raise RangeError(f"{self._path} ends before frame {self._position}, which its packets promised")
        return reduce(lambda crc, plane: zlib.crc32(plane.data, crc), following, 0)

    # -- end ----------------------------------------------------------------------------------------------------------

    def _let_go(self) -> None:
        decoder = getattr(self, "_decoder", None)
        if decoder is not None:
            self._bytes_before += decoder.bytes_read
            decoder.close()
            decoder.bytes_read = 0
        container = getattr(self, "_container", None)
        if container is not None:
            container.close()

    def close(self) -> None:
        """Close the container, and let go of its decoder."""
        self._let_go()
        keep_no_longer(self)
        self._container = self._stream = self._waiting = None


def _look(frame: Any) -> tuple[Any, ...]:
    """Return what a frame says of its samples, to compare it with the frame before in one step."""
    layout = frame.format.name, format_name(frame), frame.width, frame.height
    return *layout, frame.color_range, frame.colorspace, frame.color_trc


def _colours(frame: Any) -> dict[str, str | None]:
    """Return what a frame states of its colours, by their names here; None for what it does not."""
    return {
        "range": "full" if frame.format.name.startswith("yuvj") else RANGES.get(frame.color_range),
        "matrix": MATRICES.get(frame.colorspace),
        "transfer": TRANSFERS.get(frame.color_trc),
    }


def _rate(stream: Any) -> Fraction | None:
    """Return frames a second, where that is known: what is not is None, or from PyAV 19 on 0/0."""
    rate = stream.average_rate or stream.guessed_rate
    return Fraction(rate.numerator, rate.denominator) if rate is not None and rate.denominator and rate.numerator else None
