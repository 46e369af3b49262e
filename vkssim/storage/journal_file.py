"""The file of a journal: lines that are added, and there for whoever goes on after the writer was cut off."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from ..errors import OutputError
from ..host.private import open_private
from .atomic import sync_folder

try:
    import fcntl
except ImportError:  # Windows has no such locks: there nothing keeps two processes from one journal
    fcntl = None  # type: ignore[assignment]

_SYNC_SECONDS = 1.0


def journal_path(results: Path) -> Path:
    """Return where the journal of a file of results is."""
    return results.with_name(results.name + ".journal")


class JournalFile:
    """Opened or made, private, and locked against other processes; use with `with`.

    A file that is there is not changed before something is written to it: what is in it may turn out to be no journal. Raises
    OutputError where it cannot be written, is no private file of this user, or another process has it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._descriptor = self._open()
        except OSError as error:
            raise self._error(error) from None
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
            os.close(descriptor)  # whoever had it has just removed it

    def _lock(self, descriptor: int) -> None:
        if fcntl is None:
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OutputError(
                f"another process is writing the same output: it has the journal {self.path}. Wait until it has ended, or give"
                " another `output`"
            ) from None
        except OSError:  # a file system without locks
            return

    def _is_there(self, found: os.stat_result) -> bool:
        try:
            named = os.lstat(self.path)
        except FileNotFoundError:
            return False
        return (named.st_dev, named.st_ino) == (found.st_dev, found.st_ino)

    @property
    def size(self) -> int:
        """Return bytes in it."""
        return self._end

    def lines(self) -> Iterator[bytes]:
        """Yield the lines from the first on, with their ends; the last one may have been cut off before its own."""
        with open(self._descriptor, "rb", closefd=False) as file:
            file.seek(0)
            yield from file

    def cut(self, size: int) -> None:
        """Keep the first `size` bytes. Raises OutputError."""
        try:
            self._make_private()
            os.ftruncate(self._descriptor, size)
        except OSError as error:
            raise self._error(error) from None
        self._end = size

    def add(self, lines: bytes) -> None:
        """Add lines: what follows them cannot lose them, but for a power cut within a second. Raises OutputError.

        Where they cannot be written the file is as it was before.
        """
        try:
            self._make_private()
            rest = memoryview(lines)
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
            if time.monotonic() - self._synced >= _SYNC_SECONDS:
                self._sync()
        except BaseException as error:
            os.ftruncate(self._descriptor, self._end)
            if isinstance(error, OSError):
                raise self._error(error) from None
            raise
        self._end += len(lines)

    def _make_private(self) -> None:
        """Give the file mode 0600, now that it is known to be a journal: others could read what an earlier one was."""
        if not self._private and hasattr(os, "fchmod"):
            os.fchmod(self._descriptor, 0o600)
        self._private = True

    def sync(self) -> None:
        """Have the lines and the name of the file on the disk. Raises OutputError."""
        try:
            self._sync()
        except OSError as error:
            raise self._error(error) from None
        sync_folder(self.path.parent)

    def _sync(self) -> None:
        getattr(os, "fdatasync", os.fsync)(self._descriptor)
        self._synced = time.monotonic()

    def remove(self) -> None:
        """Remove the file, and no other that was put in its place. Raises OutputError."""
        try:
            if not self._is_there(os.fstat(self._descriptor)):
                return
            if fcntl is None:  # Windows removes nothing that is open
                self.close()
            self.path.unlink(missing_ok=True)
        except OSError as error:
            raise self._error(error) from None

    def _error(self, error: OSError) -> OutputError:
        why = "it is a link" if error.errno == errno.ELOOP else error.strerror or error
        return OutputError(f"the journal {self.path} cannot be written: {why}")

    def close(self) -> None:
        """Close the file and let go of its lock; a second call does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
