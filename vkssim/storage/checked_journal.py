"""Journals of lines of JSON with checksums, so that damage is always found. A run continues only from such lines.

Each line begins with the CRC-32 of the kind of the lines and of all entries up to it. If a line is torn, altered, doubled,
missing or out of order, the checksums of this line and of all later lines do not match.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from copy import copy
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import InputError, OptionError, OutputError
from ..host.closing import closing_on_error
from ..host.private import open_private
from ..utils.limits import LARGEST_JOURNAL_BYTES, MAX_NAME_BYTES, file_name
from ..utils.thread_pool import Closable
from .atomic import replace_file, sync_folder

try:
    import fcntl
except ImportError:  # Windows has no such locks: there, two processes can open one journal
    fcntl = None  # type: ignore[assignment]

RUN = b"vkssim run 1 "
"""The kind of the journal of a run of `vkssim score`."""

BATCH = b"vkssim batch 1 "
"""The kind of the journal of a batch."""

SEARCH = b"vkssim search 1 "
"""The kind of the journal of a search."""

ENCODE = b"vkssim encode 1 "
"""The kind of the record of a video that is being written."""

_WRITERS = {RUN: "`vkssim score`", BATCH: "`vkssim batch`", SEARCH: "`vkssim search`", ENCODE: "`vkssim search -o`"}
_SYNC_SECONDS = 1.0
_ENDING = ".journal"


def journal_path(results: Path) -> Path:
    """Return the path of the journal of a file of results. Raises OptionError if the path names no file.

    If the name of the journal would be longer than file systems allow, a digest stands for the end of the results' name.
    """
    if not results.name:
        raise OptionError(f"a journal is beside a file of results, and {str(results)!r} names no file; give the name of a file")
    name = results.name + _ENDING
    if len(os.fsencode(name)) > MAX_NAME_BYTES:
        digest = hashlib.sha256(os.fsencode(results.name)).hexdigest()[:16]
        name = file_name(results.name, f"-{digest}{_ENDING}")
    return results.with_name(name)


class CheckedLines:
    """A sequence of lines, into which entries are packed, or from which they are unpacked.

    `kind` opens the first line and identifies the purpose of the lines.
    """

    def __init__(self, kind: bytes) -> None:
        self._opening = kind
        self._sum = zlib.crc32(kind)

    def pack(self, *entries: Any) -> bytes:
        """Return the next lines, one for each entry. An entry is any value that JSON can express."""
        return b"".join(self._line(json.dumps(entry, separators=(",", ":")).encode()) for entry in entries)

    def unpack(self, line: bytes) -> Any:
        """Return the entry of the next line. Raises ValueError if the line differs from the one that `pack` wrote.

        After an error, no line matches.
        """
        text = line.removeprefix(self._opening)[9:-1]
        if self._line(text) != line:
            raise ValueError("the line is torn, altered or out of place")
        return json.loads(text)

    def _line(self, text: bytes) -> bytes:
        opening, self._opening = self._opening, b""
        self._sum = zlib.crc32(text, self._sum)
        return opening + b"%08x %s\n" % (self._sum, text)


def _has_damaged_kind(line: bytes, kind: bytes) -> bool:
    """Return True for a first line in which only the kind was altered: the checksum proves that vkssim wrote it."""
    with suppress(ValueError):
        CheckedLines(kind).unpack(kind + line[len(kind) :])
        return True
    return False


class CheckedJournal(Closable):
    """The journal of one kind of run: a private file, created if there is none, and locked against other processes.

    `head` is the entry of the first line, and `size` the size of the file in bytes. `take` is called with each entry after the
    head, up to the first damaged line; it raises ValueError, TypeError, KeyError or RecursionError for an invalid entry.
    `damaged` is True if there is a damaged line.

    An existing file is not changed before the first write, because it may be no journal. Raises InputError if it is no journal
    of this kind, or too large; OutputError if it cannot be written, is not private, or is locked by another process.
    """

    def __init__(self, path: Path, kind: bytes, take: Callable[[Any], None]) -> None:
        self.path = path
        self.head: Any = None
        self.damaged = False
        self._kind = kind
        self._lines = CheckedLines(kind)
        self._sound = 0  # bytes up to the first damaged line
        self._private = False
        self._synced = time.monotonic()
        with self._errors():
            self._file = self._open()
        with closing_on_error(self):
            self.size = os.fstat(self._file.fileno()).st_size
            if kind != RUN and self.size > LARGEST_JOURNAL_BYTES:
                raise InputError(
                    f"the journal {path} has {self.size} bytes; the limit is {LARGEST_JOURNAL_BYTES}. Move it away, or give"
                    " another path"
                )
            self._read(take)

    # -- opened and read ---------------------------------------------------------------------------------------------

    def _open(self) -> BinaryIO:
        while True:
            file = open_private(self.path, "a+b")
            with closing_on_error(file):
                self._lock(file)
                if self._is_there(file):
                    return file
            file.close()  # the process that had it open has just removed it

    def _lock(self, file: BinaryIO) -> None:
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OutputError(
                f"another process is writing the same output: it uses the journal {self.path}. Wait until it has ended, or"
                " write to another path"
            ) from None
        except OSError:  # this file system has no locks
            pass

    def _is_there(self, file: BinaryIO) -> bool:
        try:
            return os.path.samestat(os.lstat(self.path), os.fstat(file.fileno()))
        except FileNotFoundError:
            return False

    def _read(self, take: Callable[[Any], None]) -> None:
        with open(self._file.fileno(), "rb", closefd=False) as reader:
            reader.seek(0)
            for number, line in enumerate(reader):
                if number == 0:
                    self._check_kind(line)
                lines = copy(self._lines)
                try:
                    entry = lines.unpack(line)
                    if number == 0:
                        self.head = dict(entry)
                    else:
                        take(entry)
                except (ValueError, TypeError, KeyError, RecursionError):
                    self.damaged = True
                    return
                self._lines, self._sound = lines, self._sound + len(line)

    def _check_kind(self, line: bytes) -> None:
        """Raise InputError unless a journal of this kind begins with this line, complete or damaged, or the line is empty."""
        if not line.strip(b"\0"):
            return
        for kind in (self._kind, *_WRITERS):
            if line.startswith(kind[: len(line)]) or _has_damaged_kind(line, kind):
                if kind == self._kind:
                    return
                raise InputError(f"{self.path} is the journal of {_WRITERS[kind]}; move it away, or give another path")
        raise InputError(f"{self.path} is not a journal of vkssim; move it away, or give another path")

    # -- written -----------------------------------------------------------------------------------------------------

    def begin(self, head: Any) -> None:
        """Truncate the file, and write a new head. Raises OutputError."""
        self._lines, self._sound = CheckedLines(self._kind), 0
        self.go_on()
        self.add(head)
        self.sync()

    def go_on(self) -> None:
        """Truncate the file after the last good line. Raises OutputError."""
        with self._errors():
            self._make_private()
            os.ftruncate(self._file.fileno(), self._sound)
        self.size = self._sound

    def add(self, entry: Any) -> None:
        """Write an entry at once: a killed process does not lose it, only a power failure within a second can.

        If it cannot be written, the file is as it was before. Raises OutputError.
        """
        lines = copy(self._lines)
        data = lines.pack(entry)
        with self._errors():
            try:
                self._make_private()
                rest = memoryview(data)
                while rest:
                    rest = rest[os.write(self._file.fileno(), rest) :]
                if time.monotonic() - self._synced >= _SYNC_SECONDS:
                    self._sync()
            except BaseException:
                os.ftruncate(self._file.fileno(), self.size)
                raise
        self._lines, self.size = lines, self.size + len(data)

    def rewrite(self, head: Any, entries: Iterable[Any]) -> None:
        """Replace everything in one step. Raises OutputError."""
        lines = CheckedLines(self._kind)
        data = lines.pack(head, *entries)
        replace_file(data, self.path)
        with self._errors():
            replaced, self._file = self._file, self._open()
        replaced.close()
        self._lines, self._private, self.size = lines, False, len(data)

    def _make_private(self) -> None:
        """Give the file mode 0600, once it is known to be a journal: it may have been copied with another mode."""
        if not self._private and hasattr(os, "fchmod"):
            os.fchmod(self._file.fileno(), 0o600)
        self._private = True

    def sync(self) -> None:
        """Flush the lines and the name of the file to the disk. Raises OutputError."""
        with self._errors():
            self._sync()
        sync_folder(self.path.parent)

    def _sync(self) -> None:
        getattr(os, "fdatasync", os.fsync)(self._file.fileno())
        self._synced = time.monotonic()

    def remove(self) -> None:
        """Remove the file, but no other file that was put in its place. Raises OutputError."""
        with self._errors():
            if not self._is_there(self._file):
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
        self._file.close()
