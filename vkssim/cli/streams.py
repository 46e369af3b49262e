"""Guard the standard streams of the command line, which may be closed, full, or without a reader.

A stream that fails must never cost a result. Messages that cannot be written are dropped. Results that cannot be written to
standard output are an OutputError, so that whatever else was asked for is still written and the exit code is 2.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import Any

from ..errors import OutputError

_MODES = {0: os.O_WRONLY, 1: os.O_RDONLY, 2: os.O_WRONLY}
"""How a stand-in for each closed descriptor is opened: reading standard input and writing standard output has to fail."""

_REASONS = {errno.EBADF: "it is closed", errno.EPIPE: "nobody reads it any more"}


class _StandardOutput(io.FileIO):
    """A stream that raises OutputError at the first write that fails, and drops later ones, such as the flush at exit."""

    failed = False

    def write(self, data: Any) -> int:
        if self.failed:
            return len(data)
        try:
            return super().write(data)
        except OSError as error:
            self.failed = True
            reason = _REASONS.get(error.errno or 0, error.strerror)
            raise OutputError(f"standard output cannot be written: {reason}") from error


class _StandardError(io.FileIO):
    """A stream that drops text that cannot be written."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError:
            return len(data)


def install() -> None:
    """Put streams that fail as this module says in place of the process's standard output and standard error.

    Call it before any file is opened, because a file can get the number of a closed stream, and then all that is printed there.
    """
    for descriptor, mode in _MODES.items():
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, mode)  # the new descriptor gets the lowest free number, which is this one
    sys.stdout = _guarded(sys.stdout, _StandardOutput, 1)
    sys.stderr = _guarded(sys.stderr, _StandardError, 2)


def _guarded(stream: Any, raw: type[io.FileIO], descriptor: int) -> Any:
    """Return a text stream over `raw`; a terminal keeps its own stream, which on Windows is no file."""
    if stream is not None and stream.isatty():
        stream.reconfigure(errors="backslashreplace")  # a name may have what the terminal's encoding lacks
        return stream
    encoding = "utf-8" if stream is None else stream.encoding
    return io.TextIOWrapper(io.BufferedWriter(raw(descriptor, "w", closefd=False)), encoding, "backslashreplace")
