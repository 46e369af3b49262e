"""Read planar frames from streams. Pipes are opened so that a thread that waits for a writer can be interrupted."""

from __future__ import annotations

import io
import os
import select
import stat
from typing import Any, BinaryIO, cast

import numpy as np

from ..types import Planes, Samples
from ..utils.interruption import check
from .info import VideoInfo
from .raw import RAW, PlanarLayout, truncated, unreadable
from .source import SequentialSource

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


def give_up(stream: io.IOBase | BinaryIO) -> None:
    """End the stream for a thread that waits for its writer. Call it from another thread."""
    pipe = getattr(stream, "raw", None)
    if isinstance(pipe, _Pipe):
        pipe.given_up = True


def open_stream(path: str) -> io.BufferedReader:
    """Open a file for reading. For a named pipe, only reading waits for its writer. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        is_pipe = stat.S_ISFIFO(os.fstat(descriptor).st_mode)
        if is_pipe:
            os.set_blocking(descriptor, True)
        file = open(descriptor, "rb")  # noqa: SIM115 - returned
    except BaseException:
        os.close(descriptor)
        raise
    return interruptible(file) if is_pipe else file


def interruptible(stream: BinaryIO) -> io.BufferedReader:
    """Return a stream that was not read yet so that reading it can be interrupted; return a regular file as it is."""
    try:
        waits = hasattr(select, "poll") and not stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except OSError:  # the stream is in memory
        waits = False
    return io.BufferedReader(_Pipe(cast(io.IOBase, stream))) if waits else cast(io.BufferedReader, stream)


class PlanarStream(SequentialSource):
    """Planar frames one after the other in a stream, each after an optional header."""

    _has_frame_headers = False

    def __init__(self, stream: BinaryIO, info: VideoInfo, layout: PlanarLayout, position: int = 0) -> None:
        super().__init__()
        self.info = info
        self._stream = stream
        self._frame_bytes, self._offsets = layout.frame_bytes, layout.plane_offsets
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

    def _was_last(self, position: int) -> bool:
        return self._offset == position + self._frame_bytes

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
            data = self._stream.read(min(count, 1 << 20))
            if not data:
                return False
            count -= len(data)
            self._offset += len(data)
            self.bytes_read += len(data)
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
