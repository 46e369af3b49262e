"""Read raw planar YUV from files, URLs and pipes."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np

from ..errors import InputError, ReadError, TruncatedInputError
from ..storage.remote import read_ranges
from ..types import CHROMA_STEPS, DepthCheck, Planes, Samples, plane_shapes
from ..utils.choices import BIT_DEPTHS
from ..utils.wording import counted
from .info import VideoInfo, check_size
from .source import FrameSource, SeekIndex

_BYTES_AT_ONCE = 1 << 26  # bytes asked for together, which are in memory beside the frames themselves
_MOST_FRAMES_CHECKED = 16  # frames whose samples are looked at when a file is opened, if the first ones are dark

PIXEL_FORMATS = (*CHROMA_STEPS, "444alpha")

RAW = "raw"
"""The kind of raw streams."""


@dataclass(frozen=True)
class PlanarLayout:
    """Describe a planar frame, luma first. Samples over 8 bits take two bytes, little-endian; odd sizes round chroma up."""

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
        """Return the chroma format, whether or not there is an alpha plane as well."""
        return self.pixel_format.removesuffix("alpha")

    @property
    def sample_bytes(self) -> int:
        """Return bytes of a sample."""
        return 1 if self.bits == 8 else 2

    @property
    def plane_bytes(self) -> list[int]:
        """Return bytes of each plane, alpha included."""
        shapes = plane_shapes(self.width, self.height, self.chroma)
        alpha = shapes[:1] if self.pixel_format.endswith("alpha") else []
        return [height * width * self.sample_bytes for height, width in shapes + alpha]

    @property
    def plane_offsets(self) -> list[int]:
        """Return where each plane begins, in bytes from the start of the frame."""
        return [0, *accumulate(self.plane_bytes)][:-1]

    @property
    def frame_bytes(self) -> int:
        """Return bytes of all planes."""
        return sum(self.plane_bytes)


class FixedSizeIndex:
    """Mark frames of one length, one after the other, each of which can be read by itself."""

    def __init__(self, frames: int, first: int, frame_bytes: int) -> None:
        self.frames = frames
        self._first = first
        self._frame_bytes = frame_bytes

    def before(self, number: int) -> int:
        """See SeekIndex."""
        return number

    def place(self, number: int) -> int:
        """See SeekIndex: the frame's first byte."""
        return self._first + number * self._frame_bytes


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
