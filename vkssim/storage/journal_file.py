"""Append lines to the file of a journal, so that a later run can continue after the writer was interrupted."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import OptionError, OutputError
from ..host.private import open_private
from ..utils.thread_pool import Closable
from .atomic import replace_file, sync_folder

try:
    import fcntl
except ImportError:  # Windows has no such locks: there, two processes can open one journal
    fcntl = None  # type: ignore[assignment]

_SYNC_SECONDS = 1.0


def journal_path(results: Path) -> Path:
    """Return the path of the journal of a file of results. Raises OptionError if the path names no file."""
    if not results.name:
        raise OptionError(f"a journal is beside a file of results, and {str(results)!r} names no file; give the name of a file")
    return results.with_name(results.name + ".journal")


class JournalFile(Closable):
    """A private file of lines, opened or created, and locked against other processes; use it with `with`.

    An existing file is not changed before the first write, because it may turn out not to be a journal. Raises OutputError if
    the file cannot be written, is not a private file of this user, or is locked by another process.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._errors():
            self._descriptor = self._open()
        self._private = False
        self._end = os.fstat(self._descriptor).st_size
        self._synced = time.monotonic()

    def _open(self) -> int:
        while True:
            with open_private(self.path, "a+b") as file:
                descriptor = os.dup(file.fileno())
            try:
                self._lock(descriptor)
                if self._is_there(os.fstat(descriptor)):
                    return descriptor
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)  # the process that had it open has just removed it

    def _lock(self, descriptor: int) -> None:
        if fcntl is None:
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OutputError(
                f"another process is writing the same output: it uses the journal {self.path}. Wait until it has ended, or give"
                " another `output`"
            ) from None
        except OSError:  # this file system has no locks
            return

    def _is_there(self, found: os.stat_result) -> bool:
        try:
            named = os.lstat(self.path)
        except FileNotFoundError:
            return False
        return (named.st_dev, named.st_ino) == (found.st_dev, found.st_ino)

    @property
    def size(self) -> int:
        """Return the size of the file in bytes."""
        return self._end

    def lines(self) -> Iterator[bytes]:
        """Yield the lines from the first on, with their line ends. The last line may be torn and then lacks its end."""
        with open(self._descriptor, "rb", closefd=False) as file:
            file.seek(0)
            yield from file

    def cut(self, size: int) -> None:
        """Truncate the file to the first `size` bytes. Raises OutputError."""
        with self._errors():
            self._make_private()
            os.ftruncate(self._descriptor, size)
        self._end = size

    def append(self, lines: bytes) -> None:
        """Append lines. Only a power failure within a second can lose them afterwards. Raises OutputError.

        If they cannot be written, the file is as it was before.
        """
        with self._errors():
            try:
                self._make_private()
                rest = memoryview(lines)
                while rest:
                    rest = rest[os.write(self._descriptor, rest) :]
                if time.monotonic() - self._synced >= _SYNC_SECONDS:
                    self._sync()
            except BaseException:
                os.ftruncate(self._descriptor, self._end)
                raise
        self._end += len(lines)

    def replace(self, lines: bytes) -> None:
        """Replace all lines in one step. Raises OutputError."""
        replace_file(lines, self.path)
        with self._errors():
            self.close()
            self._descriptor, self._private = self._open(), False
        self._end = len(lines)

    def _make_private(self) -> None:
        """Give the file mode 0600, once it is known to be a journal: it may have been copied with another mode."""
        if not self._private and hasattr(os, "fchmod"):
            os.fchmod(self._descriptor, 0o600)
        self._private = True

    def sync(self) -> None:
        """Flush the lines and the name of the file to the disk. Raises OutputError."""
        with self._errors():
            self._sync()
        sync_folder(self.path.parent)

    def _sync(self) -> None:
        getattr(os, "fdatasync", os.fsync)(self._descriptor)
        self._synced = time.monotonic()

    def remove(self) -> None:
        """Remove the file, but no other file that was put in its place. Raises OutputError."""
        with self._errors():
            if not self._is_there(os.fstat(self._descriptor)):
                return
            if fcntl is None:  # Windows does not remove open files
                self.close()
            self.path.unlink(missing_ok=True)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            why = "it is a link" if error.errno == errno.ELOOP else error.strerror or error
            raise OutputError(f"the journal {self.path} cannot be written: {why}") from None

    def close(self) -> None:
        """Close the file and release its lock; a second call does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
