"""Read raw planar YUV from files, URLs and pipes."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import BinaryIO

import numpy as np

from ..errors import InputError, ReadError, TruncatedInputError
from ..storage.remote import read_ranges
from ..types import DepthCheck, Planes, Samples
from ..utils.wording import counted
from .info import VideoInfo
from .layout import PlanarLayout
from .pipe import give_up
from .seek_index import FixedSizeIndex, SeekIndex
from .source import FrameSource, SequentialSource

_BYTES_AT_ONCE = 1 << 26  # bytes asked for together, which are in memory beside the frames themselves
_MOST_FRAMES_CHECKED = 16  # frames whose samples are looked at when a file is opened, if the first ones are dark

RAW = "raw"
"""The kind of raw streams."""


def truncated(path: str, frame: int, start: int, end: int, frame_bytes: int) -> TruncatedInputError:
    """Return the error for a stream that ends within a frame."""
    return TruncatedInputError(
        f"{path} ends at byte {end}, within frame {frame}, which begins at byte {start} and has {frame_bytes} bytes;"
        " is the file complete, and are size, pixel format and depth right?"
    )


def unreadable(path: str, error: OSError) -> ReadError:
    """Return the error for a file that the system cannot read on."""
    return ReadError(f"{path} cannot be read on: {error.strerror or error}")


class _RawFrames(FrameSource):
    """Read raw YUV of known size: frames lie at known offsets, so several threads may read at once.

    Raises InputError where the size is no whole number of frames, unless `allow_partial` accepts that the last one is cut: then
    the complete frames are read, and `problem` names the cut one.
    """

    concurrent = True

    def __init__(self, path: str, layout: PlanarLayout, size: int, allow_partial: bool) -> None:
        self._frame_bytes, self._offsets = layout.frame_bytes, layout.plane_offsets
        self._counting = threading.Lock()
        frames, rest = divmod(size, layout.frame_bytes)
        self.info = VideoInfo(path, RAW, layout.width, layout.height, layout.bits, frames, chroma=layout.chroma)
        self.length = frames
        self.file_bytes = size
        if frames:
            self._check_depth(frames)
        if rest:
            problem: InputError = truncated(path, frames, frames * layout.frame_bytes, size, layout.frame_bytes)
            if frames and not allow_partial:
                problem = InputError(
                    f"{path} has {size} bytes, which is no whole number of frames: {frames} of {layout.frame_bytes} bytes, and"
                    f" {rest} bytes more. Are size, pixel format and depth right? `allow_partial` scores the complete frames"
                )
            if not (frames and allow_partial):  # raised before memory for such a frame is taken
                self.close()
                raise problem
            self.problem = problem

    def _check_depth(self, frames: int) -> None:
        """Add a warning if the luma of frames all over the clip stays within a quarter of the range.

        The first frame that is bright enough ends this, as the first one of nearly every clip does.
        """
        check = DepthCheck(2**self.info.bits - 1)
        numbers = sorted({place * (frames - 1) // (_MOST_FRAMES_CHECKED - 1) for place in range(_MOST_FRAMES_CHECKED)})
        planes = self.info.new_planes(1)
        for number in numbers:
            if check.is_over or not self.read([number], [planes]):
                break
            check.look(planes[0])
        self.bytes_read, self.problem = 0, None  # the run itself meets what cannot be read
        depth = check.smaller_depth
        if depth is not None:
            cure = f"--bitdepth {depth} reads them" if depth > 8 else "convert them to bytes"
            warning = (
                f"{self.info.path}: no sample of the luma exceeds {2**depth - 1} in {counted(len(numbers), 'frame')} all over"
                f" the clip, and {self.info.bits} bits reach {2**self.info.bits - 1}; if the samples have {depth} bits, {cure}"
            )
            self.info = replace(self.info, warnings=(*self.info.warnings, warning))

    def seek_index(self) -> SeekIndex:
        """See FrameSource.seek_index."""
        assert self.info.frames is not None
        return FixedSizeIndex(self.info.frames, 0, self._frame_bytes)

    def seek(self, number: int, place: int) -> None:
        """See FrameSource.seek; every frame is read from its place anyway."""

    def _count(self, numbers: Sequence[int], targets: Sequence[Planes]) -> None:
        assert self.info.frames is not None
        there = sum(number < self.info.frames for number in numbers)
        with self._counting:
            self.bytes_read += sum(plane.nbytes for target in targets[:there] for plane in target)

    def _shorter(self, offset: int) -> InputError:
        return InputError(f"{self.info.path} became shorter while it was read, at byte {offset}")


class RawFile(_RawFrames):
    """Read raw YUV from a regular file, each plane that is asked for straight into its target."""

    def __init__(self, path: str, layout: PlanarLayout, *, allow_partial: bool = False) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        super().__init__(path, layout, os.fstat(self._descriptor).st_size, allow_partial)

    def read(self, numbers: Sequence[int], targets: Sequence[Planes]) -> int:
        """See FrameSource.read."""
        assert self.info.frames is not None
        self._count(numbers, targets)
        for count, (number, target) in enumerate(zip(numbers, targets, strict=True)):
            if number >= self.info.frames:
                return count
            start = number * self._frame_bytes
            if not all(self._read_plane(start + offset, plane) for offset, plane in zip(self._offsets, target, strict=False)):
                return count
        return len(numbers)

    def _read_plane(self, offset: int, target: Samples) -> bool:
        if not target.flags.c_contiguous:  # rows are padded: read into a plane without padding first
            plane = np.empty(target.shape, target.dtype)
            complete = self._read_plane(offset, plane)
            target[:] = plane
            return complete
        memory = target.data.cast("B")
        done = 0
        while done < len(memory):
            try:
                count = _read_at(self._descriptor, memory[done:], offset + done)
            except OSError as error:
                self.problem = unreadable(self.info.path, error)
                return False
            if not count:
                self.problem = self._shorter(offset + done)
                return False
            done += count
        return True

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _read_at(descriptor: int, target: memoryview, offset: int) -> int:
    if hasattr(os, "preadv"):
        return os.preadv(descriptor, [target], offset)
    os.lseek(descriptor, offset, os.SEEK_SET)  # Windows: one reader at a time, see `concurrent`
    data = os.read(descriptor, len(target))
    target[: len(data)] = data
    return len(data)


if not hasattr(os, "preadv"):
    RawFile.concurrent = False


class RawUrl(_RawFrames):
    """Read raw YUV by URL: one range of each frame, from its beginning to the end of the last plane that is asked for."""

    def __init__(self, path: str, layout: PlanarLayout, size: int, *, allow_partial: bool = False) -> None:
        super().__init__(path, layout, size, allow_partial)

    def read(self, numbers: Sequence[int], targets: Sequence[Planes]) -> int:
        """See FrameSource.read."""
        self._count(numbers, targets)
        at_once = max(1, _BYTES_AT_ONCE // self._frame_bytes)
        wanted = [(number, planes) for number, planes in zip(numbers, targets, strict=True) if number < (self.length or 0)]
        done = 0
        while done < len(wanted):
            count = self._read_frames(wanted[done : done + at_once])
            done += count
            if count < at_once:
                break
        return done

    def _read_frames(self, frames: Sequence[tuple[int, Planes]]) -> int:
        starts = [number * self._frame_bytes for number, _ in frames]
        stops = [start + sum(plane.nbytes for plane in planes) for start, (_, planes) in zip(starts, frames, strict=True)]
        try:
            parts = read_ranges(self.info.path, list(zip(starts, stops, strict=True)))
        except OSError as error:
            self.problem = unreadable(self.info.path, error)
            return 0
        for count, (part, start, stop, (_, planes)) in enumerate(zip(parts, starts, stops, frames, strict=True)):
            if len(part) < stop - start:
                self.problem = self._shorter(start + len(part))
                return count
            for offset, plane in zip(self._offsets, planes, strict=False):
                plane[:] = np.frombuffer(part, plane.dtype, plane.size, offset).reshape(plane.shape)
        return len(frames)

    def close(self) -> None:
        """Do nothing: no file is open between two reads."""


class PlanarStream(SequentialSource):
    """Read planar frames one after the other from a stream, each with an optional header of its own."""

    def __init__(self, stream: BinaryIO, info: VideoInfo, layout: PlanarLayout, position: int = 0) -> None:
        super().__init__()
        self.info = info
        self._stream = stream
        self._frame_bytes, self._offsets = layout.frame_bytes, layout.plane_offsets
        self._offset = position

    def _frame_header(self) -> bool:
        """Read what stands before a frame; False at the end of the stream. May set `problem`."""
        return True

    def _next(self, target: Planes | None) -> bool:
        try:
            return self.problem is None and self._read_frame(target)
        except OSError as error:
            self.problem = unreadable(self.info.path, error)
            return False

    def _read_frame(self, target: Planes | None) -> bool:
        if not self._frame_header():
            return False
        start = self._offset
        end = start + self._frame_bytes
        complete = all(
            self._skip(start + offset - self._offset) and self._read_plane(plane)
            for offset, plane in zip(self._offsets, target or (), strict=False)
        ) and self._skip(end - self._offset)
        if not complete and (self._offset > start or self._has_frame_headers):
            self.problem = truncated(self.info.path, self._position, start, self._offset, self._frame_bytes)
        return complete

    def _read_plane(self, target: Samples) -> bool:
        if target.flags.c_contiguous:
            return self._fill(target.data.cast("B"))
        plane = np.empty(target.shape, target.dtype)
        complete = self._fill(plane.data.cast("B"))
        target[:] = plane
        return complete

    _has_frame_headers = False

    def _is_behind(self, place: int) -> bool:
        return self._offset == place + self._frame_bytes

    def _fill(self, memory: memoryview) -> bool:
        done = 0
        while done < len(memory):
            count = self._stream.readinto(memory[done:])  # type: ignore[attr-defined]
            if not count:
                break
            done += count
        self._offset += done
        self.bytes_read += done
        return done == len(memory)

    def _skip(self, count: int) -> bool:
        while count:
            part = self._stream.read(min(count, 1 << 20))
            if not part:
                return False
            count -= len(part)
            self._offset += len(part)
            self.bytes_read += len(part)
        return True

    def give_up(self) -> None:
        """See FrameSource.give_up."""
        give_up(self._stream)

    def close(self) -> None:
        """Close the stream."""
        self._stream.close()


def raw_pipe(path: str, stream: BinaryIO, layout: PlanarLayout) -> PlanarStream:
    """Return a source of raw YUV from a stream that cannot seek."""
    return PlanarStream(stream, VideoInfo(path, RAW, layout.width, layout.height, layout.bits, chroma=layout.chroma), layout)
