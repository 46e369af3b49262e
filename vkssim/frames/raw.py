"""Read raw planar YUV from files and URLs, and planar frames from streams.

Pipes are opened so that a thread that waits for a writer can be interrupted.
"""

from __future__ import annotations

import io
import os
import select
import stat
import threading
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Any, BinaryIO, cast

import numpy as np

from ..errors import InputError, ReadError, TruncatedInputError
from ..storage.urls import read_ranges
from ..types import PIXEL_FORMATS, DepthCheck, Planes, plane_shapes
from ..utils.choices import BIT_DEPTHS
from ..utils.interruption import check
from ..utils.wording import counted
from .info import VideoInfo, check_size
from .source import FrameSource, KeyframeIndex, SequentialSource

_BYTES_AT_ONCE = 1 << 26  # bytes of one request, which take memory besides the frames themselves
_MAX_FRAMES_CHECKED = 16  # frames whose samples are checked when a file is opened, if the first ones are dark

RAW = "raw"
"""The kind of raw streams in `VideoInfo`."""


@dataclass(frozen=True)
class PlanarLayout:
    """The layout of a planar frame. More than 8 bits take two bytes, little-endian. Odd sizes of chroma are rounded up."""

    width: int
    height: int
    pixel_format: str
    bits: int

    def __post_init__(self) -> None:
        check_size(self.width, self.height)
        if self.pixel_format not in PIXEL_FORMATS:
            raise InputError(f"pixel format {self.pixel_format!r}; {', '.join(PIXEL_FORMATS)} are possible")
        if self.bits not in BIT_DEPTHS:
            raise InputError(f"{self.bits} bits a sample; {', '.join(map(str, BIT_DEPTHS))} are possible")

    @property
    def chroma(self) -> str:
        """Return the chroma format, without a mark of an alpha plane."""
        return self.pixel_format.removesuffix("alpha")

    def info(self, path: str, kind: str, **stated: Any) -> VideoInfo:
        """Return the facts about a stream of such frames. Grey that states no range is full, as FFmpeg takes it."""
        is_grey = self.chroma == "400"
        stated["range"] = stated.get("range") or ("full" if is_grey else None)
        return VideoInfo(path, kind, self.width, self.height, self.bits, chroma=self.chroma, is_grey=is_grey, **stated)

    @property
    def plane_offsets(self) -> list[int]:
        """Return the byte at which each plane begins within the frame, and the end of the last one, which may be alpha."""
        shapes = plane_shapes(self.width, self.height, self.chroma)
        alpha = shapes[:1] if self.pixel_format.endswith("alpha") else []
        sample_bytes = 1 if self.bits == 8 else 2
        return [0, *accumulate(height * width * sample_bytes for height, width in shapes + alpha)]

    @property
    def frame_bytes(self) -> int:
        """Return the bytes of all planes."""
        return self.plane_offsets[-1]


def truncated(path: str, frame: int, start: int, end: int, frame_bytes: int) -> TruncatedInputError:
    """Return the error for a stream that ends within a frame."""
    return TruncatedInputError(
        f"{path} ends at byte {end}, within frame {frame}, which begins at byte {start} and has {frame_bytes} bytes;"
        " is the file complete, and are size, pixel format and depth right?"
    )


def unreadable(path: str, error: OSError) -> ReadError:
    """Return the error for a file that the system can no longer read."""
    return ReadError(f"{path} cannot be read on: {error.strerror or error}")


class _RawFrames(FrameSource):
    """Raw YUV of known size. Frames lie at known offsets, so several threads may read at once.

    Raises InputError if the size is not a whole number of frames, unless `allow_partial` accepts a cut last frame. Then the
    complete frames are read, and `problem` names the cut one.
    """

    concurrent = True

    def __init__(self, path: str, layout: PlanarLayout, size: int, *, allow_partial: bool = False) -> None:
        self._frame_bytes, self._offsets = layout.frame_bytes, layout.plane_offsets
        self._at_once = max(1, _BYTES_AT_ONCE // layout.frame_bytes)
        self._counting = threading.Lock()
        frames, rest = divmod(size, layout.frame_bytes)
        self.info = layout.info(path, RAW, frames=frames)
        self.length = self.expected = frames
        self.file_bytes = size
        if frames:
            self._check_depth(frames)
        if rest and frames and not allow_partial:
            self.close()
            raise InputError(
                f"{path} has {size} bytes, which is not a whole number of frames: {frames} of {layout.frame_bytes} bytes,"
                f" and {rest} bytes more. Are size, pixel format and depth right? `allow_partial` scores the whole frames"
            )
        if rest:
            self.problem = truncated(path, frames, frames * layout.frame_bytes, size, layout.frame_bytes)
            if not frames:  # raised before memory for such a frame is allocated
                self.close()
                raise self.problem

    def _check_depth(self, frames: int) -> None:
        """Add a warning if luma stays within a quarter of the range. The first bright frame, mostly frame 0, ends the check."""
        depths = DepthCheck(2**self.info.bits - 1)
        numbers = sorted({step * (frames - 1) // (_MAX_FRAMES_CHECKED - 1) for step in range(_MAX_FRAMES_CHECKED)})
        planes = self.info.new_planes(1)
        for number in numbers:
            if depths.is_over or not self.read([number], [planes]):
                break
            depths.look(planes[0])
        self.bytes_read, self.problem = 0, None  # reading the frames for the scores meets the same problem
        depth = depths.smaller_depth
        if depth is not None:
            cure = f"--bitdepth {depth} reads them" if depth > 8 else "convert them to bytes"
            warning = (
                f"{self.info.path}: no sample of the luma exceeds {2**depth - 1} in {counted(len(numbers), 'frame')} all over"
                f" the clip, and {self.info.bits} bits reach {2**self.info.bits - 1}; if the samples have {depth} bits, {cure}"
            )
            self.info = replace(self.info, warnings=(*self.info.warnings, warning))

    def seek_index(self) -> KeyframeIndex:
        assert self.info.frames is not None
        starts = range(0, self.info.frames * self._frame_bytes, self._frame_bytes)
        return KeyframeIndex(starts, range(self.info.frames))

    def seek(self, number: int, position: int) -> None:
        """Do nothing: every frame is read from its offset."""

    def read(self, numbers: Sequence[int], targets: Sequence[Planes]) -> int:
        places = [number * self._frame_bytes for number in numbers if number < (self.length or 0)]
        with self._counting:
            self.bytes_read += sum(plane.nbytes for target in targets[: len(places)] for plane in target)
        for done in range(0, len(places), self._at_once):
            part = slice(done, min(done + self._at_once, len(places)))
            count = self._read_frames(places[part], targets[part])
            if count < part.stop - done:
                return done + count
        return len(places)

    @abstractmethod
    def _read_frames(self, starts: Sequence[int], targets: Sequence[Planes]) -> int:
        """Read the frames that begin at these bytes, and return their number; fewer if it sets `problem`."""

    def _shorter(self, offset: int) -> InputError:
        return InputError(f"{self.info.path} became shorter while it was read, at byte {offset}")


class RawFile(_RawFrames):
    """Raw YUV of a regular file. Each requested plane is read directly into its target."""

    def __init__(self, path: str, layout: PlanarLayout, *, allow_partial: bool = False) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        super().__init__(path, layout, os.fstat(self._descriptor).st_size, allow_partial=allow_partial)

    def _read_frames(self, starts: Sequence[int], targets: Sequence[Planes]) -> int:
        for count, (start, target) in enumerate(zip(starts, targets, strict=True)):
            if not _read_into(target, partial(self._fill, start)):
                return count
        return len(starts)

    def _fill(self, offset: int, memory: list[memoryview]) -> bool:
        try:
            while memory:
                count = _read_at(self._descriptor, memory, offset)
                if not count:
                    self.problem = self._shorter(offset)
                    return False
                offset += count
                while memory and count >= len(memory[0]):
                    count -= len(memory.pop(0))
                if count:
                    memory[0] = memory[0][count:]
        except OSError as error:
            self.problem = unreadable(self.info.path, error)
        return not memory

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _read_into(target: Planes, fill: Callable[[list[memoryview]], bool]) -> bool:
    """Have the memory of planes filled, and return whether it was. Planes with padded rows are read without padding first."""
    planes = [plane if plane.flags.c_contiguous else np.empty(plane.shape, plane.dtype) for plane in target]
    complete = fill([plane.data.cast("B") for plane in planes])
    for plane, read in zip(target, planes, strict=True):
        if read is not plane:
            plane[:] = read
    return complete


def _read_at(descriptor: int, targets: list[memoryview], offset: int) -> int:
    if hasattr(os, "preadv"):
        return os.preadv(descriptor, targets, offset)
    os.lseek(descriptor, offset, os.SEEK_SET)  # Windows: one reader at a time, see `concurrent`
    data = os.read(descriptor, len(targets[0]))
    targets[0][: len(data)] = data
    return len(data)


if not hasattr(os, "preadv"):
    RawFile.concurrent = False


class RawUrl(_RawFrames):
    """Raw YUV by URL. One range of each frame is read, from its beginning to the end of the last requested plane."""

    def _read_frames(self, starts: Sequence[int], targets: Sequence[Planes]) -> int:
        stops = [start + sum(plane.nbytes for plane in planes) for start, planes in zip(starts, targets, strict=True)]
        try:
            ranges = read_ranges(self.info.path, list(zip(starts, stops, strict=True)))
        except OSError as error:
            self.problem = unreadable(self.info.path, error)
            return 0
        for count, (data, start, stop, planes) in enumerate(zip(ranges, starts, stops, targets, strict=True)):
            if len(data) < stop - start:
                self.problem = self._shorter(start + len(data))
                return count
            for offset, plane in zip(self._offsets, planes, strict=False):
                plane[:] = np.frombuffer(data, plane.dtype, plane.size, offset).reshape(plane.shape)
        return len(starts)

    def close(self) -> None:
        """Do nothing: no file is open between two reads."""


# -- streams ----------------------------------------------------------------------------------------------------------

_MILLISECONDS = 100  # between two checks for an interruption, in a thread that receives no signals


class _Pipe(io.RawIOBase):
    def __init__(self, file: io.IOBase) -> None:
        self._file = file
        self._poll = select.poll()
        self._poll.register(file.fileno(), select.POLLIN)
        self.given_up = False

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._file.fileno()

    def readinto(self, buffer: Any) -> int:
        while not self._poll.poll(_MILLISECONDS):
            check()
            if self.given_up:
                return 0
        return os.readv(self._file.fileno(), [buffer])

    def close(self) -> None:
        self._file.close()
        super().close()


def open_stream(path: str) -> io.BufferedReader:
    """Open a file for reading. For a named pipe, only reading waits for its writer. Raises OSError."""
    not_waiting = getattr(os, "O_NONBLOCK", 0)
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | not_waiting))  # noqa: SIM115 - returned
    if not stat.S_ISFIFO(os.fstat(file.fileno()).st_mode):
        return file
    os.set_blocking(file.fileno(), True)
    return interruptible(file)


def interruptible(stream: BinaryIO) -> io.BufferedReader:
    """Return a stream that was not read yet so that reading it can be interrupted; return a regular file as it is."""
    try:
        waits = hasattr(select, "poll") and not stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except OSError:  # the stream is in memory
        waits = False
    return io.BufferedReader(_Pipe(cast(io.IOBase, stream))) if waits else cast(io.BufferedReader, stream)


class PlanarStream(SequentialSource):
    """Planar frames one after the other in a stream, each after an optional header."""

    def __init__(self, stream: io.BufferedReader, info: VideoInfo, layout: PlanarLayout, position: int = 0) -> None:
        super().__init__()
        self.info = info
        self._stream = stream
        self._frame_bytes = layout.frame_bytes
        self._offset = position

    def _frame_header(self) -> bool:
        """Read the header of a frame; return False at the end of the stream. May set `problem`."""
        return True

    def _next(self, target: Planes | None) -> bool:
        try:
            return self.problem is None and self._read_frame(target)
        except OSError as error:
            self.problem = unreadable(self.info.path, error)
            return False

    def _read_frame(self, target: Planes | None) -> bool:
        begin = self._offset
        if not self._frame_header():
            return False
        start = self._offset
        complete = _read_into(target or (), self._fill_all) and self._skip(start + self._frame_bytes - self._offset)
        if not complete and self._offset > begin:
            self.problem = truncated(self.info.path, self._position, start, self._offset, self._frame_bytes)
        return complete

    def _was_last(self, position: int) -> bool:
        return self._offset == position + self._frame_bytes

    def _fill_all(self, memory: list[memoryview]) -> bool:
        return all(map(self._fill, memory))

    def _fill(self, memory: memoryview) -> bool:
        done = self._stream.readinto(memory)  # less at the end alone, because the stream is buffered
        self._offset += done
        self.bytes_read += done
        return done == len(memory)

    def _skip(self, count: int) -> bool:
        memory = memoryview(bytearray(min(count, 1 << 20)))
        while count and self._fill(memory[:count]):
            count -= min(count, len(memory))
        return not count

    def give_up(self) -> None:
        """End a `read` that waits for data."""
        pipe = getattr(self._stream, "raw", None)
        if isinstance(pipe, _Pipe):
            pipe.given_up = True

    def close(self) -> None:
        """Close the stream."""
        self._stream.close()
