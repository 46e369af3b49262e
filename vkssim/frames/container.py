"""The first video stream of a container, a picture or a sequence of pictures, decoded by PyAV (FFmpeg)."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError, RangeError, ReadError
from ..limits import LARGEST_NUMBER
from ..types import Planes
from .aperture import stated_crop
from .clip_facts import ClipFacts, VideoPackets
from .colour import MATRICES, RANGES, RGB_DEFAULT, YCBCR_BITS, Colour
from .demuxer import MOST_PIXELS_OPTION, open_container
from .forks import keep_in_forks
from .info import VideoInfo
from .layout import check_size
from .marks import KeyMarks, Marks
from .orientation import Orientation, by_degrees, orientation
from .packets import PacketCount
from .pixels import PixelFormat, pixel_format
from .raw import unreadable
from .sequence import sequence
from .source import SequentialSource

_TICKS = 1_000_000  # a second, in which FFmpeg gives the duration of a container
_MOST_TORN_PACKETS = 1000
_SEEK_SECONDS = 0, 1, 4, 16  # before a frame: without an index FFmpeg goes by when packets are decoded, past key frames
_MOST_PLANES = 3
_UNCOMPRESSED = ("rawvideo", "wrapped_avframe")
_FEW_FRAMES = 300  # of which some are as quickly found by decoding all


class ContainerFile(SequentialSource):
    """Decodes ahead on FFmpeg's own threads. Y'CbCr is taken as it is, R'G'B' becomes Y'CbCr of 16 bits.

    The first frame is decoded when it is opened: only it tells what comes out, cropped as the stream says by libavcodec.
    Raises InputError where there is no video that can be compared.
    """

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path
        self._read: PacketCount | None = PacketCount()  # None where frames are not read from the first packet on
        self._all_packets: VideoPackets | None = None
        self._container = self._open()
        try:
            self._open_stream()
        except BaseException:
            self._container.close()
            raise

    def _open(self) -> Any:
        import av  # here, since it is not quick and only containers need it

        self._av_error = av.FFmpegError
        self._failure = av.FFmpegError, OSError  # the latter where a URL cannot be read on
        self._sequence = sequence(self._path)
        try:
            if self._sequence is None:
                return open_container(self._path)
            return open_container(self._sequence.name, "image2", self._sequence.options)
        except (av.FFmpegError, OSError, ValueError) as error:
            refused = isinstance(error, av.ArgumentError)
            hint = "; what names other files, as HLS, DASH, SDP or concat do, is not read: name the file itself"
            raise InputError(f"{self._path}: FFmpeg cannot open it ({error}){hint if refused else ''}") from None

    def _open_stream(self) -> None:
        from av.video.reformatter import VideoReformatter

        if not self._container.streams.video:
            raise InputError(f"{self._path}: no video stream in it")
        self._stream = stream = self._container.streams.video[0]
        if stream.codec_context is None:
            raise InputError(f"{self._path}: FFmpeg has no decoder for its video")
        self._check_size(max(1, stream.codec_context.width), max(1, stream.codec_context.height))  # 0 where it is not known
        stream.thread_type = "AUTO"
        stream.codec_context.options = MOST_PIXELS_OPTION
        keep_in_forks(self, stream.codec_context)
        first, torn = self._first_frame()
        self._format_name = first.format.name
        self._format: PixelFormat = pixel_format(self._path, self._format_name)
        self._size = first.width, first.height
        self._times: list[float | None] = []
        self._times_begin = 0  # the frame whose time is the first of them
        self._first_time: float | None = first.time
        self._last_pts: int | None = None
        self.damaged: list[int] = []
        self._first_pts = first.pts
        self.info = self._described(first)
        if torn:
            note = f"begins with what cannot be decoded and was passed over, packets: {torn}"
            self.info = replace(self.info, notes=(*self.info.notes, note))
        self.aperture = stated_crop(self._path, *self._size)
        self.orientation = self._orientation(first)
        self._unconverted = self.info
        self.is_rgb = self._format.rgb
        self._reformatter = VideoReformatter()
        if self.is_rgb:
            dtype = np.uint8 if self._format.bits == 8 else np.uint16
            self._rgb = tuple(np.empty(self._size[::-1], dtype) for _ in "rgb")
            self.convert_to(RGB_DEFAULT)

    def _first_frame(self) -> tuple[Any, int]:
        """The first frame, and how many packets before it are torn: a recording may begin between key frames."""
        reason = ""
        for torn in range(_MOST_TORN_PACKETS):
            frames = self._decoded()
            try:
                first = next(frames, None)
            except self._av_error as error:
                reason = f" ({error})"
                continue
            except OSError as error:
                raise unreadable(self._path, error) from None
            if first is None:
                break
            self._frames: Iterator[Any] = chain([first], frames)
            return first, torn
        raise InputError(f"{self._path}: no frame can be decoded from it{reason}")

    def _decoded(self, *, from_key: bool = False) -> Iterator[Any]:
        """Frames, `from_key` from the next key frame on: some decoders make up what others refer to, and say nothing."""
        count = self._read
        for packet in self._container.demux(self._stream):
            self.bytes_read += packet.size
            if count is not None:
                count.add(packet)
            from_key = from_key and not packet.is_keyframe
            if not from_key:
                yield from packet.decode()
        if count is not None:
            count.complete = True

    def _check_size(self, width: int, height: int) -> None:
        try:
            check_size(width, height)
        except InputError as error:
            raise InputError(f"{self._path}: {error}") from None

    def _described(self, first: Any) -> VideoInfo:
        self._check_size(*self._size)
        stream, pixels = self._stream, self._format
        pictures = "image2" in self._container.format.name or self._container.format.name.endswith("_pipe")
        notes = ("its alpha is left out",) if any(part.is_alpha for part in first.format.components) else ()
        full = self._format_name.startswith("yuvj")
        return VideoInfo(
            self._path,
            stream.codec_context.name,
            *self._size,
            YCBCR_BITS if pixels.rgb else pixels.bits,
            self._sequence.frames if self._sequence is not None else min(stream.frames, LARGEST_NUMBER) or None,
            None if pictures else _rate(stream),
            pixels.chroma,
            None if pixels.rgb else MATRICES.get(first.colorspace),
            None if pixels.rgb else "full" if full else RANGES.get(first.color_range),
            notes,
        )

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

    def _copy(self, frame: Any, target: Planes) -> None:
        if self._format.via is not None:
            frame = self._reformatter.reformat(frame, format=self._format.via, threads=1)  # with more some slices stay empty
        if not self.is_rgb:
            self._format.copy(frame, target)
            return
        self._format.copy(frame, self._rgb)
        self._colour.convert(self._rgb, self._format.bits, target)

    def _next(self, target: Planes | None) -> bool:
        if self.problem is not None:
            return False
        try:
            frame = next(self._frames, None)
        except self._failure as error:
            kind = ReadError if isinstance(error, OSError) else InputError
            self.problem = kind(f"{self.info.path}: frame {self._position} cannot be decoded ({error})")
            return False
        if frame is None:
            return False
        size = frame.width, frame.height
        if (size, frame.format.name) != (self._size, self._format_name):
            self.problem = InputError(
                f"{self.info.path}: frame {self._position} is {size[0]}x{size[1]} {frame.format.name}, the first one"
                f" {self._size[0]}x{self._size[1]} {self._format_name}; a change within a stream cannot be scored"
            )
            return False
        self._times.append(frame.time)
        self._last_pts = frame.pts
        if frame.is_corrupt:
            self.damaged.append(self._position)
        if target is not None:
            try:
                self._copy(frame, target)
            except self._av_error as error:
                self.problem = InputError(
                    f"{self.info.path}: {self._format_name} cannot be converted to {self._format.via} ({error}); convert"
                    " it, for instance with `ffmpeg -i IN -pix_fmt yuv420p OUT.y4m`"
                )
                return False
        return True

    def time(self, number: int) -> float | None:
        """See FrameSource.time: by the presentation times of the frames."""
        place = number - self._times_begin
        if self.info.fps is None or not 0 <= place < len(self._times):
            return None
        first, this = self._first_time, self._times[place]
        return super().time(number) if first is None or this is None else this - first

    def times(self) -> npt.NDArray[np.float64] | None:
        """See FrameSource.times: by the presentation times of the packets, read from the container once more."""
        if self.info.fps is None or self._first_pts is None:
            return None
        try:
            packets = self._packets()
        except self._failure as error:
            raise InputError(f"{self._path}: its packets cannot be read ({error}); --sync index needs only frames") from None
        if any(stamp is None for stamp, _ in packets):
            return None
        ticks: npt.NDArray[np.int64] = self._ticks(packets) - self._first_pts
        return ticks.astype(np.float64) * float(self._stream.time_base)

    def marks(self) -> Marks | None:
        """See FrameSource.marks: its key frames, by the packets, read from the container once more."""
        if self.info.fps is None or self._first_pts is None or self._sequence is not None:
            return None
        try:
            packets = self._packets()
        except self._failure:
            return None
        if any(stamp is None for stamp, _ in packets):
            return None
        ticks = self._ticks(packets)
        keys = self._ticks([packet for packet in packets if packet[1]])
        return KeyMarks(ticks, keys) if len(ticks) and (np.diff(ticks) > 0).all() else None

    def _packets(self) -> list[tuple[int | None, bool]]:
        """When each packet's frame is shown, in ticks, and whether it is a key frame."""
        with self._open() as container:
            count = PacketCount()
            found = []
            for packet in container.demux(container.streams.video[0]):
                count.add(packet)
                if packet.size and not packet.is_discard:
                    found.append((packet.pts, packet.is_keyframe))
            self._all_packets = self._total(count)
            return found

    def clip_facts(self) -> ClipFacts:
        """See FrameSource.clip_facts."""
        import av

        stream, decoder = self._stream, self._stream.codec_context
        return replace(
            super().clip_facts(),
            container=self._container.format.name,
            stream=stream.index,
            codec=decoder.codec.canonical_name,
            decoder=decoder.name,
            decoder_version=f"libavcodec {'.'.join(map(str, av.library_versions['libavcodec']))}",
            bits=self._format.bits,
            duration=round(float(stream.duration * stream.time_base), 6) if stream.duration and self.info.fps else None,
            file_bytes=self._size_of_files(),
        )

    def _size_of_files(self) -> int | None:
        with suppress(OSError):
            size = self._container.size if self._sequence is None else sum(map(os.path.getsize, self._sequence.files))
            return int(size) if size > 0 else None
        return None

    def packets(self) -> VideoPackets | None:
        """See FrameSource.packets."""
        if self.info.fps is None or self._stream.codec_context.name in _UNCOMPRESSED:
            return None
        if self._read is not None and self._read.complete:
            return self._total(self._read)
        with suppress(*self._failure):
            if self._all_packets is None:
                self._packets()
        return self._all_packets

    def _total(self, count: PacketCount) -> VideoPackets:
        return count.total(self._stream.time_base, self.info.fps)

    def _ticks(self, packets: Sequence[tuple[int | None, bool]]) -> npt.NDArray[np.int64]:
        """Their times, rising; before the first frame none is decoded."""
        return np.array(sorted(stamp for stamp, _ in packets if stamp is not None and stamp >= self._first_pts), np.int64)

    def go_to(self, number: int, place: int) -> int | None:
        """See FrameSource.go_to: decodes from the key frame before it on."""
        self._read = None
        for earlier in _SEEK_SECONDS:
            try:
                self._container.seek(place - round(earlier / self._stream.time_base), stream=self._stream)
                frames = self._decoded(from_key=True)
                found = next((frame for frame in frames if frame.pts is None or frame.pts >= place), None)
            except (*self._failure, OverflowError) as error:
                raise RangeError(f"{self._path}: frame {number} cannot be decoded by itself ({error})") from None
            if found is not None and found.pts == place:
                self._position = self._times_begin = number
                self._frames = iter([found])
                fingerprint = self._following()
                self._times.clear()
                self._frames = chain([found], frames)
                return fingerprint
        raise RangeError(f"{self._path}: frame {number} is not where its packet promised it")

    def _is_behind(self, place: int) -> bool:
        return self._last_pts == place

    def _following(self) -> int:
        """See SequentialSource: the CRC-32 of all planes. A decoder that lacks what a frame refers to gets another one."""
        following = self.info.new_planes(_MOST_PLANES)
        if not self._next(following):
            raise RangeError(f"{self._path} ends before frame {self._position}, which its packets promised")
        return reduce(lambda crc, plane: zlib.crc32(plane.data, crc), following, 0)

    @property
    def expected(self) -> int | None:
        """See FrameSource.expected: as the container says, else by its duration."""
        if self.info.frames is not None or self.info.fps is None or not self._container.duration:
            return self.info.frames
        seconds: float = self._container.duration / _TICKS
        return min(round(seconds * self.info.fps), LARGEST_NUMBER)

    def sample(self, count: int) -> Iterator[Planes]:
        """See FrameSource.sample: of long streams key frames, which are quick to come by."""
        container, target = self._container, self.info.new_planes(1)
        if not container.duration or (self.expected or 0) <= _FEW_FRAMES:
            yield from super().sample(count)
            return
        for number in range(count):
            self._read = None
            try:
                container.seek((container.start_time or 0) + container.duration * number // count)
                self._frames = container.decode(self._stream)
            except (*self._failure, OverflowError):
                return
            if self._next(target):
                yield target

    def close(self) -> None:
        """Close the container."""
        self._container.close()
        self._frames = iter(())  # which holds this source: else its decoder and its threads stay until Python looks for cycles


def _rate(stream: Any) -> Fraction | None:
    """Frames a second, where that is known: what is not is None, or from PyAV 19 on 0/0."""
    rate = stream.average_rate
    return Fraction(rate.numerator, rate.denominator) if rate is not None and rate.denominator and rate.numerator else None
