"""Decode a video stream of a container, a picture or a sequence of pictures with PyAV (FFmpeg)."""

from __future__ import annotations

import logging
import threading
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial, reduce
from typing import Any

import av
import numpy as np
import numpy.typing as npt

from ...errors import InputError, RangeError, ReadError
from ...storage.inputs import Opened
from ...types import Planes
from ...utils.av_frames import new_scaler
from ...utils.interruption import check
from ...utils.thread_pool import closing_on_error
from ..info import ClipFacts, VideoPackets
from ..pixels import RGB_DEFAULT, YCBCR_BITS, Colour, DecodedFrame, format_name, pixel_format, stated_colours
from ..source import SeekIndex, SequentialSource
from .choice import choose_decoder
from .clip_decoder import FAILURES, ClipDecoder
from .decoder import UndecodableError, reason
from .description import ClipDescription
from .hardware import UNCOMPRESSED, HardwareDecoder
from .packets import FrameTimes, PacketCount
from .sample_index import PacketScan

_SEEK_SECONDS = 0, 1, 4, 16
"""Seconds to seek before a frame: without an index, FFmpeg seeks by decoding times, and beyond key frames."""

_FEW_FRAMES = 300  # up to this number, decoding all frames is as quick as seeking

_log = logging.getLogger("vkssim")


class ContainerFile(SequentialSource):
    """A video stream of a container, decoded as `choose_decoder` says. Y'CbCr is not converted, and R'G'B' becomes 16 bits.

    The first frame is decoded at once, because only a frame shows the output of the decoder, which libavcodec has cropped as
    the stream states. Raises InputError if there is no video that can be compared, and otherwise as `choose_decoder` does.
    """

    def __init__(
        self,
        path: str,
        stream: int | None = None,
        hardware: HardwareDecoder | None = None,
        opened: Opened | None = None,
        *,
        adds_grain: bool = True,
    ) -> None:
        super().__init__()
        self.opened = opened
        self._path = path
        self.stream = stream
        self._adds_grain = adds_grain
        self._range: tuple[int, int] | None = None  # the number and the position of the last seek
        self._decoded_from = 0  # the number of the frame with which the decoder began to count
        self._packet_ticks: npt.NDArray[np.int64] | None = None
        self._boundary: tuple[int, int, int] | None = None
        """The number, position and fingerprint of the last frame that was read for comparison."""
        self._again = threading.RLock()  # held while decoding starts again and `damage` is incomplete
        key = None if opened is None else (opened, stream)
        choice = choose_decoder(partial(ClipDecoder, path, stream, adds_grain=adds_grain), hardware, key)
        self._clip, self._waiting, self._hardware = choice.clip, choice.first, choice.hardware
        with closing_on_error(self):
            self._describe(choice.facts)
            self._note_decoder(hardware, choice.reason)

    # -- decoding -----------------------------------------------------------------------------------------------------

    def _note_decoder(self, preferred: HardwareDecoder | None, refusal: str | None) -> None:
        self._refusal: str | None = None
        self._surfaces = None if self._hardware is None else self._hardware.surfaces
        notes = self.info.notes
        if self._hardware is not None:
            name = format_name(self._waiting)
            self._formats[name] = pixel_format(self._path, name)
            self.external = self._surfaces is not None
            notes += (f"decoded by {self._hardware.kind}, which notices less damage than the CPU's decoder",)
        elif preferred is not None and refusal is not None:
            self._refusal = f"{preferred.kind}: {refusal}"
            notes += (f"decoded on the CPU, because the {preferred.kind} decoder cannot decode it: {refusal}",)
        self.info = replace(self.info, notes=notes)

    def _leave_hardware(self, number: int, failure: Exception) -> None:
        assert self._hardware is not None
        kind, why = self._hardware.kind, reason(failure)
        self._hardware, self._refusal = None, f"{kind}: it saw damage or failed at frame {number} ({why})"
        self.fallback = number, f"decoded on the CPU from here, because the {kind} decoder saw damage or failed ({why})"
        _log.info("%s, frame %d: %s", self._path, *self.fallback)

    def _decode_again(self) -> None:
        """Let the CPU decode the clip, from the beginning or the last seek, up to the next frame to read."""
        position = self._position
        with self._again:
            if self._range is not None:
                self._seek_without_threads(*self._range)
                self._read_to(position - 1, None)
                return
            self._decoded_from, self._waiting = 0, self._clip.begin()
            for _ in range(position):
                check()
                if self._take() is None:
                    break

    def _take(self) -> Any:
        if self._waiting is not None:
            frame, self._waiting = self._waiting, None
            return frame
        decoder = self._clip.decoder
        try:
            frame = decoder.next()
        except (av.FFmpegError, UndecodableError) as failure:
            if not decoder.hardware:
                raise
            self._leave_hardware(self._position, failure)
        else:
            if self._range is None or not (decoder.threads and decoder.reports):
                return frame
        # In a range, a decoder without threads may show that only frames before it are meant.
        self._decode_again()
        return self._take()

    # -- facts --------------------------------------------------------------------------------------------------------

    def _describe(self, facts: ClipDescription) -> None:
        self.facts = facts
        self.info, self.expected = facts.info, facts.expected
        self.aperture, self.orientation, self.file_bytes = facts.aperture, facts.orientation, facts.file_bytes
        self._formats = {facts.format_name: facts.pixels}
        self._pixels = facts.pixels  # of the frame that was read last
        self._last_look: tuple[Any, ...] | None = None
        self._changes: dict[str, tuple[int, str]] = {}
        time_base, fps = facts.time_base, facts.info.fps
        self._times = FrameTimes(round(1 / (fps * time_base)) if fps else 1, round(1 / time_base))
        self._times_begin = 0  # the number of the first frame in `_times`
        self._first_tick = self._clip.decoder.tick(self._waiting)
        self._packets = PacketScan(self._clip, facts, self._first_tick)
        self.is_rgb = facts.is_rgb
        self._convert = new_scaler()
        if self.is_rgb:
            self.convert_to(RGB_DEFAULT)

    def convert_to(self, colour: Colour) -> None:
        """Choose the Y'CbCr that R'G'B' becomes."""
        self._colour = colour
        limited = " of limited range" if self.facts.colours["range"] == "limited" else ""
        before = f"converted from {self.facts.format_name}{limited} to Y'CbCr of {YCBCR_BITS} bits by "
        notes = [note for note in self.info.notes if not note.startswith(before)]
        notes.append(f"{before}{colour.matrix}, {colour.range} range")
        self.info = replace(self.info, matrix=colour.matrix, range=colour.range, notes=tuple(notes))

    def allow_any_size(self) -> None:
        """Let the size of frames change, but not that of surfaces, nor if the first frame has a visible rectangle."""
        self.any_size = self._hardware is None and self.aperture is None

    @property
    def at_start(self) -> bool:  # type: ignore[override]
        """Return whether the clip is open and none of its frames was read."""
        return self._position == 0 and self._range is None and self._waiting is not None

    @property
    def damage(self) -> Mapping[int, str]:  # type: ignore[override] # an attribute of other sources
        """Return FFmpeg's first report on each damaged frame."""
        damage = self._reported(is_damage=True)
        if self._clip.decoder.is_cut_off:
            damage.setdefault(self._times_begin + len(self._times.ticks) - 1, "the file is cut off after this frame")
        return damage

    @property
    def remarks(self) -> Sequence[tuple[int, str]]:  # type: ignore[override]
        """Return FFmpeg's first warning, and changes within the stream."""
        warnings = [(number, f"FFmpeg says: {text}") for number, text in self._reported(is_damage=False).items()]
        back = "the presentation times go back; they continue from the frame before"
        return warnings[:1] + [(number, back) for number in self.joins] + list(self._changes.values())

    def _reported(self, *, is_damage: bool) -> dict[int, str]:
        """Return the first text that FFmpeg reported on each frame, in order."""
        with self._again:
            reports = [report for report in self._clip.decoder.reports if report.is_damage == is_damage]
        texts: dict[int, str] = {}
        for report in reports:
            texts.setdefault(self._decoded_from + report.frames_before, report.text)
        return dict(sorted(texts.items()))

    @property
    def bytes_read(self) -> int:  # type: ignore[override]
        """Return the number of bytes that were read for the frames so far."""
        return self._clip.bytes_read

    # -- frames -------------------------------------------------------------------------------------------------------

    def decoded_frame(self, number: int) -> DecodedFrame | None:
        """Return a frame before it is copied. Once the CPU decodes, the frames are on the host."""
        assert self._surfaces is not None
        frame = self.picture(number)
        return None if frame is None else DecodedFrame(frame, self._pixels, self._surfaces)

    @property
    def first_frame(self) -> Any:
        """Return the first frame as an av.VideoFrame, if no frame was read yet."""
        return self._waiting

    @property
    def av_stream(self) -> Any:
        """Return the stream of PyAV."""
        return self._clip.stream

    def picture(self, number: int) -> Any:
        """Return a decoded frame as an av.VideoFrame, in rising order; None at the end, or if it sets `problem`."""
        return self._advance(self._next_frame) if self._read_to(number - 1, None) else None

    def _next(self, target: Planes | None) -> bool:
        frame = self._next_frame()
        return frame is not None and (target is None or self._copy(frame, target))

    def read_any_size(self, number: int, memory: Planes) -> Planes | None:
        """Read a frame of any size, as `FrameSource.read_any_size` says."""
        if not self.any_size:
            return super().read_any_size(number, memory)
        return self._advance(partial(self._next_any_size, memory)) if self._read_to(number - 1, None) else None

    def _next_any_size(self, memory: Planes) -> Planes | None:
        frame = self._next_frame()
        if frame is None:
            return None
        if memory[0].shape != (frame.height, frame.width):
            memory = self._memory(frame, len(memory))
        return memory if self._copy(frame, memory) else None

    def _memory(self, frame: Any, count: int = 3) -> Planes:
        info = replace(self.info, width=frame.width, height=frame.height) if self.any_size else self.info
        return info.new_planes(count)

    def _next_frame(self) -> Any:
        """Return the next frame after all checks; None at the end, or if it sets `problem`."""
        if self.problem is not None:
            return None
        try:
            frame = self._take()
        except (*FAILURES, UndecodableError) as error:
            kind = ReadError if isinstance(error, OSError) else InputError
            self.problem = kind(f"{self.info.path}: frame {self._position} cannot be decoded ({reason(error)})")
            return None
        if frame is None:
            return None
        # Compared in one step, which is quick.
        look = format_name(frame), frame.width, frame.height, frame.color_range, frame.colorspace, frame.color_trc
        changed = look != self._last_look
        if changed and not self._has_known_format(frame):
            return None
        # FFmpeg gives an interlaced frame the duration of its first packet, which may be a field.
        self._times.add(self._clip.decoder.tick(frame), 0 if frame.interlaced_frame else frame.duration)
        if self._is_out_of_time():
            return None
        if changed:
            self._note_changes(frame)
            self._last_look = look
        return frame

    def _has_known_format(self, frame: Any) -> bool:
        """Set the pixel format of a frame; return False, and set `problem`, if its size or format has changed."""
        name = format_name(frame)
        if self.is_rgb and name not in self._formats:  # any R'G'B', and grey among it, can be converted
            with suppress(InputError):
                pixels = pixel_format(self._path, name)
                if pixels.rgb or pixels.chroma == "400":
                    self._formats[name] = pixels
        is_of_first_size = (frame.width, frame.height) == self.facts.size
        if self._hardware is not None and self._clip.decoder.hardware:  # surfaces may have one more sample, which is not copied
            is_of_first_size = self._hardware.has_size(frame, *self.facts.size)
        if name in self._formats and (is_of_first_size or self.any_size):
            self._pixels = self._formats[name]
            return True
        self._refuse_change(frame)
        return False

    def _refuse_change(self, frame: Any) -> None:
        cure = ""
        if format_name(frame) in self._formats:
            cure = "; `scale` would scale each frame, of a clip that is not cropped itself and is decoded with `decode=cpu`"
        self.problem = InputError(
            f"{self.info.path}: frame {self._position} is {frame.width}x{frame.height} {format_name(frame)}, the first one is"
            f" {self.facts.size[0]}x{self.facts.size[1]} {self.facts.format_name}; a change within a stream cannot be"
            f" scored{cure}"
        )

    def _copy(self, frame: Any, target: Planes) -> bool:
        if self.any_size and target[0].shape != (frame.height, frame.width):
            self._refuse_change(frame)
            return False
        pixels, name, stated = self._pixels, format_name(frame), stated_colours(frame)["range"]
        if pixels.via is not None:
            try:
                frame = self._convert(frame, format=pixels.via)
            except av.FFmpegError as error:
                self.problem = InputError(
                    f"{self.info.path}: {name} cannot be converted to {pixels.via} ({error}); convert"
                    " it, for instance with `ffmpeg -i IN -pix_fmt yuv420p OUT.y4m`"
                )
                return False
        if not self.is_rgb:
            pixels.copy(frame, target, self._surfaces)
            return True
        dtype = np.uint8 if pixels.bits == 8 else np.uint16
        planes = tuple(np.empty((frame.height, frame.width), dtype) for _ in range(3 if pixels.rgb else 1))
        pixels.copy(frame, planes)
        self._colour.convert(planes if pixels.rgb else planes * 3, pixels.bits, stated, target, pixels.whites)
        return True

    def _note_changes(self, frame: Any) -> None:
        """Note the frame from which the stream has another size, or states colours that change the meaning of its samples."""
        size, first_size = (frame.width, frame.height), self.facts.size
        if self.any_size and size != first_size and "size" not in self._changes:
            text = "is {}x{}, and the first one is {}x{}: from here on, each frame was scaled from its own size"
            self._changes["size"] = self._position, text.format(*size, *first_size)
        colours = stated_colours(frame)
        if colours == self.facts.colours or self.is_rgb:
            return
        for name, first in self.facts.colours.items():
            alike = colours[name] in (first, None, "limited" if first is None else first)
            if not alike and name not in self._changes and not (name == "matrix" and self.info.is_grey):
                text = (
                    f"states the {name} {colours[name]} from here, and {first or 'none'} before: the meaning of the samples"
                    " changes, and they are scored as they are"
                )
                self._changes[name] = self._position, text

    def sample(self, count: int) -> Iterator[Planes]:
        """Yield the luma of frames from all over the stream; for long ones, of key frames, which are quick to decode."""
        target = self.info.new_planes(1)
        if not self.facts.duration or (self.expected or 0) <= _FEW_FRAMES:
            yield from super().sample(count)
            return
        self._clip.start(threads=False)
        self._waiting = None
        for number in range(count):
            try:
                self._clip.decoder.seek(self.facts.start_time + self.facts.duration * number // count)
            except (*FAILURES, OverflowError):
                return
            if self._next(target):
                yield target

    # -- times --------------------------------------------------------------------------------------------------------

    @property
    def joins(self) -> list[int]:
        """Return the numbers of the frames read so far at which presentation times go back because streams were joined."""
        return [number + self._times_begin for number in self._times.jumps]

    @property
    def renumbered(self) -> bool:
        """Return whether a frame that was read got a corrected time, see `PacketOrder`."""
        return self._clip.decoder.order.renumbered

    def tick(self, number: int) -> int | None:
        """Return the presentation time of a frame that was read, in ticks of the stream; None if it is unknown."""
        index = number - self._times_begin
        return self._times.ticks[index] if 0 <= index < len(self._times.ticks) else None

    def times_of(self, numbers: Sequence[int]) -> list[float | None]:
        """Return the presentation times of frames that were read, from the first frame on."""
        by_rate = super().times_of(numbers)
        if self.info.fps is None:
            return by_rate
        first, base = self._first_tick, self.facts.time_base  # of PyAV's own type, not a Fraction, from version 19 on
        duration, second = base.numerator, base.denominator
        read = range(self._times_begin, self._times_begin + len(self._times.ticks))
        return [
            None if number not in read else time if first is None or tick is None else (tick - first) * duration / second
            for number, tick, time in zip(numbers, map(self.tick, numbers), by_rate, strict=True)
        ]

    def times(self) -> npt.NDArray[np.float64] | None:
        """Return all presentation times: from the packets if each is certainly a frame, else by decoding the clip once more.

        The times of the packets are compared with the times of the frames. A different time ends the clip with an error.
        """
        if self.info.fps is None or self._first_tick is None:
            return None
        try:
            ticks = self._packet_ticks = self._packets.frame_ticks()
        except FAILURES as error:
            raise InputError(f"{self._path}: its packets cannot be read ({error}); `sync=index` needs no packets") from None
        ticks = self._ticks_by_decoding() if ticks is None else ticks
        if ticks is None:
            return None
        # A frame slightly out of order gets the time of the frame before.
        seconds: npt.NDArray[np.float64] = (np.maximum.accumulate(ticks) - self._first_tick) * float(self.facts.time_base)
        return seconds

    def _ticks_by_decoding(self) -> npt.NDArray[np.int64] | None:
        with ContainerFile(self._path, self.stream, adds_grain=self._adds_grain) as again:
            while again._read_to(again._position, None):
                pass
            ticks = [tick for tick in again._times.ticks if tick is not None]
            return np.array(sorted(ticks), np.int64) if len(ticks) == len(again._times.ticks) else None

    def _is_out_of_time(self) -> bool:
        """Return whether the time of the last frame differs from the time of its packet; then set `problem`."""
        if self._packet_ticks is None or self._position >= len(self._packet_ticks):
            return False
        expected, this = int(self._packet_ticks[self._position]), self._times.ticks[-1]
        if this == expected:
            return False
        when = "at no known time" if this is None else f"at {float(this * self.facts.time_base):.3f} s"
        self.problem = InputError(
            f"{self.info.path}: frame {self._position} is presented {when}, but its packet at"
            f" {float(expected * self.facts.time_base):.3f} s: a packet gave no frame. Later frames would be paired with the"
            " wrong ones; `sync=index`, with `start` and `end` as numbers, needs no times"
        )
        return True

    def seek_index(self) -> SeekIndex | None:
        """Return the index of key frames, from the packets of the file opened again."""
        if self.info.fps is None or self._first_tick is None or self._clip.sequence is not None:
            return None
        return self._packets.seek_index()

    def packets(self) -> VideoPackets | None:
        """Return the totals of the packets of the video stream."""
        count = None if self.info.fps is None or self.facts.codec.name in UNCOMPRESSED else self._count()
        return None if count is None else count.total(self.facts.time_base, self.facts.info.fps)

    def hidden_frames(self) -> int:
        """Return the number of frames that an edit list hides."""
        count = self._count()
        return 0 if count is None else count.hidden

    def _count(self) -> PacketCount | None:
        count = self._clip.decoder.count
        return count if count.complete else self._packets.count()

    def clip_facts(self) -> ClipFacts:
        """Return the facts about the clip before any preprocessing."""
        return replace(
            super().clip_facts(),
            container=self.facts.container,
            stream=self.facts.stream,
            codec=self.facts.codec.canonical_name,
            decoder=self.facts.codec.name if self._hardware is None else self._hardware.name(self.facts.codec.canonical_name),
            decoder_reason=self._refusal,
            decoder_version=f"libavcodec {'.'.join(map(str, av.library_versions['libavcodec']))}",
            bits=self.facts.pixels.bits,
            duration=self.facts.seconds,
        )

    # -- ranges -------------------------------------------------------------------------------------------------------

    def seek(self, number: int, position: int) -> int | None:
        """Continue with a frame. Decoding begins at the key frame before, unless `verify_boundary` has read this frame."""
        self._range = number, position
        read = None if self._waiting is None else self._boundary
        if read is not None and read[:2] == (number, position):
            self._begin_range(number)
            return read[2]
        self._waiting = None
        decoder = self._clip.decoder
        for earlier in _SEEK_SECONDS:
            try:
                decoder.seek(position - round(earlier / self.facts.time_base), self._clip.stream, from_key=True)
                frame = decoder.next()
                while frame is not None and frame.pts is not None and frame.pts < position:
                    frame = decoder.next()
            except (*FAILURES, UndecodableError, OverflowError) as error:
                if not decoder.hardware:
                    raise RangeError(f"{self._path}: frame {number} cannot be decoded by itself ({error})") from None
                self._leave_hardware(number, error)
                return self._seek_without_threads(number, position)
            if decoder.threads and (decoder.reports or decoder.skipped_packets):  # perhaps because of frames before
                return self._seek_without_threads(number, position)
            if frame is not None and frame.pts == position:
                decoder.begin_at(position)
                self._decoded_from = number
                self._waiting, self._position = frame, number
                fingerprint = self._following()
                self._begin_range(number)
                return fingerprint
        raise RangeError(f"{self._path}: frame {number} is not at the time of its packet")

    def _seek_without_threads(self, number: int, position: int) -> int | None:
        """Seek on the CPU, where it is certain which frames reports are on."""
        self._clip.start(threads=False)
        return self.seek(number, position)

    def _begin_range(self, number: int) -> None:
        self._times_begin = number
        self._times.restart()

    def _was_last(self, position: int) -> bool:
        return bool(self._times.ticks) and self._times.ticks[-1] == position

    def _following(self) -> int:
        """Return the CRC-32 of all planes of the next frame, which differs if a decoder lacks the references of the frame.

        The frame is the next one to be returned, also afterwards.
        """
        frame = self._next_frame()
        planes = () if frame is None else self._memory(frame)
        if frame is None or not self._copy(frame, planes):
            raise RangeError(f"{self._path} ends before frame {self._position}, which has a packet")
        self._times.drop_last()
        fingerprint = reduce(lambda crc, plane: zlib.crc32(plane.data, crc), planes, 0)
        self._waiting, self._boundary = frame, (self._position, frame.pts, fingerprint)
        return fingerprint

    # -- end ----------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the container and its decoder."""
        self._clip.close()
        self._waiting = None
