"""Open pipes so that a run can end: a thread that waits for the writer of a pipe still hears of a signal."""

from __future__ import annotations

import io
import os
import select
import stat
from typing import Any, BinaryIO, cast

from ..utils.interruption import check

_MILLISECONDS = 100  # between two looks for a signal, in a thread that gets none itself


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
    """Let a thread that waits for the writer of a stream find its end instead; to be called from another thread."""
    pipe = getattr(stream, "raw", None)
    if isinstance(pipe, _Pipe):
        pipe.given_up = True


def open_stream(path: str) -> io.BufferedReader:
    """Return a file opened for reading; of a pipe by name this does not wait for its writer, reading does. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        is_pipe = stat.S_ISFIFO(os.fstat(descriptor).st_mode)
        if is_pipe:
            os.set_blocking(descriptor, True)
        file = open(descriptor, "rb")  # noqa: SIM115 - handed on
    except BaseException:
        os.close(descriptor)
        raise
    return interruptible(file) if is_pipe else file


def interruptible(stream: BinaryIO) -> io.BufferedReader:
    """Return the stream, from which nothing was read yet, so that reading it can be interrupted. One that is no pipe stays."""
    try:
        waits = hasattr(select, "poll") and not stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except OSError:  # the stream is in memory
        waits = False
    return io.BufferedReader(_Pipe(cast(io.IOBase, stream))) if waits else cast(io.BufferedReader, stream)
