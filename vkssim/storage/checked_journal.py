"""Journals of lines of JSON with checksums, so that damage is always found. A run continues only from such lines.

Each line begins with the CRC-32 of the kind of the lines and of all entries up to it. If a line is torn, altered, doubled,
missing or out of order, the checksums of this line and of all later lines do not match.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Generic, TypeVar

from ..errors import InputError
from .journal_file import JournalFile

RUN = b"vkssim run 1 "
"""The kind of the journal of a run of `vkssim score`."""

BATCH = b"vkssim batch 1 "
"""The kind of the journal of a batch."""

SEARCH = b"vkssim search 1 "
"""The kind of the journal of a search."""


class CheckedLines:
    """A sequence of lines, into which entries are packed, or from which they are unpacked.

    `kind` opens the first line and identifies the purpose of the lines. `name` binds the lines to a name, if that matters:
    lines under a different name do not match.
    """

    def __init__(self, kind: bytes, name: str = "") -> None:
        self._kind = kind
        self._first = True
        self._sum = zlib.crc32(name.encode(), zlib.crc32(kind))

    def pack(self, *entries: Any) -> bytes:
        """Return the next lines, one for each entry. An entry is any value that JSON can express."""
        lines = []
        for entry in entries:
            text = json.dumps(entry, separators=(",", ":")).encode()
            self._sum = zlib.crc32(text, self._sum)
            lines.append(self._opening() + b"%08x %s\n" % (self._sum, text))
            self._first = False
        return b"".join(lines)

    def unpack(self, line: bytes) -> Any:
        """Return the entry of the next line. Raises ValueError if the line differs from the one that `pack` wrote."""
        rest = line.removeprefix(self._opening())
        text = rest[9:-1]
        total = zlib.crc32(text, self._sum)
        if self._opening() + b"%08x %s\n" % (total, text) != line:
            raise ValueError("the line is torn, altered or out of place")
        entry = json.loads(text)
        self._sum, self._first = total, False
        return entry

    def copy(self) -> CheckedLines:
        """Return an independent copy, which continues at the same line."""
        other = CheckedLines(self._kind)
        other._first, other._sum = self._first, self._sum
        return other

    def _opening(self) -> bytes:
        return self._kind if self._first else b""


def is_damaged_head(line: bytes, kind: bytes) -> bool:
    """Return True for a first line in which only the kind was altered: the checksum proves that vkssim wrote it."""
    try:
        CheckedLines(kind).unpack(kind + line[len(kind) :])
    except ValueError:
        return False
    return True


def pack_record(kind: bytes, entry: Any, name: str) -> bytes:
    """Return the content of a file with one entry, bound to a name."""
    return CheckedLines(kind, name).pack(entry)


def unpack_record(kind: bytes, data: bytes, name: str) -> Any:
    """Return the entry of a file. Raises ValueError if `pack_record` did not write it for this kind and this name."""
    return CheckedLines(kind, name).unpack(data)


_WRITERS = {RUN: "`vkssim score`", BATCH: "`vkssim batch`", SEARCH: "`vkssim search`"}

Entry = TypeVar("Entry")


class CheckedJournal(Generic[Entry]):
    """The journal of one kind of run. An empty file is made if there is none.

    `head` is the entry of the first line. `entries` are the entries after it, read by `parse`, up to the first damaged line;
    `damaged` is True if there is a damaged line.

    `parse` raises ValueError, TypeError, KeyError or RecursionError for an invalid entry.

    Raises InputError for a file of more than `most_bytes`, and for a file that is not a journal of this kind. Raises
    OutputError if the file cannot be written or another process has locked it.
    """

    def __init__(self, path: Path, kind: bytes, parse: Callable[[Any], Entry], most_bytes: int | None = None) -> None:
        self.path = path
        self.damaged = False
        self.head: Any = None
        self.entries: list[Entry] = []
        self._kind = kind
        self._parse = parse
        self._lines = CheckedLines(kind)
        self._size = 0
        self._file = JournalFile(path)
        try:
            if most_bytes is not None and self._file.size > most_bytes:
                raise InputError(
                    f"the journal {path} has {self._file.size} bytes; the limit is {most_bytes}. Move it away, or"
                    " give another `output`"
                )
            self._read()
        except BaseException:
            self._file.close()
            raise

    def _read(self) -> None:
        for number, line in enumerate(self._file.lines()):
            if number == 0:
                found = self._recognized(line)
                if found not in (self._kind, None):
                    raise InputError(f"{self.path} is the journal of {_WRITERS[found]}; move it away, or give another `output`")
            lines = self._lines.copy()
            try:
                entry = lines.unpack(line)
                if number == 0:
                    self.head = dict(entry)
                else:
                    self.entries.append(self._parse(entry))
            except (ValueError, TypeError, KeyError, RecursionError):
                self.damaged = True
                return
            self._lines, self._size = lines, self._size + len(line)

    def _recognized(self, line: bytes) -> bytes | None:
        """Return the kind of the journal that begins with this line, complete or damaged; None for an empty line.

        Raises InputError if no journal begins with this line.
        """
        if not line.strip(b"\0"):
            return None
        for kind in (self._kind, *_WRITERS):
            if line.startswith(kind[: len(line)]) or is_damaged_head(line, kind):
                return kind
        raise InputError(f"{self.path} is not a journal of vkssim; move it away, or give another `output`")

    def begin(self, head: Any, entries: Sequence[Any] = ()) -> None:
        """Truncate the file, and write a new head and the given entries. Raises OutputError."""
        self._file.cut(0)
        self.entries, self._lines = [], CheckedLines(self._kind)
        self.add([head, *entries])
        self._file.sync()

    def go_on(self) -> None:
        """Truncate the file after the last good line. Raises OutputError."""
        self._file.cut(self._size)

    def add(self, entries: Sequence[Any]) -> None:
        """Write entries at once, so that a killed process loses none of them. Raises OutputError."""
        lines = self._lines.copy()
        self._file.add(lines.pack(*entries))
        self._lines = lines

    def rewrite(self, head: Any, entries: Iterable[Any]) -> None:
        """Replace everything in one step. Raises OutputError."""
        lines = CheckedLines(self._kind)
        self._file.replace(b"".join(lines.pack(entry) for entry in chain([head], entries)))
        self._lines = lines

    @property
    def size(self) -> int:
        """Return the size of the file in bytes."""
        return self._file.size

    def sync(self) -> None:
        """Flush everything to the disk. Raises OutputError."""
        self._file.sync()

    def remove(self) -> None:
        """Remove the file. Raises OutputError."""
        self._file.remove()

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        self._file.close()
