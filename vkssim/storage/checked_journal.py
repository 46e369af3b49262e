"""Journals of lines of JSON with checksums, so that damage is always found. A run continues only from such lines.

Each line begins with the CRC-32 of the kind of the lines and of all entries up to it. If a line is torn, altered, doubled,
missing or out of order, the checksums of this line and of all later lines do not match.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable
from copy import copy
from pathlib import Path
from typing import Any

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
        self._opening = kind
        self._sum = zlib.crc32(name.encode(), zlib.crc32(kind))

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


def is_damaged_head(line: bytes, kind: bytes) -> bool:
    """Return True for a first line in which only the kind was altered: the checksum proves that vkssim wrote it."""
    try:
        CheckedLines(kind).unpack(kind + line[len(kind) :])
    except ValueError:
        return False
    return True


_WRITERS = {RUN: "`vkssim score`", BATCH: "`vkssim batch`", SEARCH: "`vkssim search`"}


class CheckedJournal(JournalFile):
    """The journal of one kind of run. An empty file is made if there is none.

    `head` is the entry of the first line. `take` is called with each entry after it, up to the first damaged line; `damaged` is
    True if there is a damaged line.

    `take` raises ValueError, TypeError, KeyError or RecursionError for an invalid entry.

    Raises InputError for a file of more than `most_bytes`, and for a file that is not a journal of this kind, and the errors of
    JournalFile.
    """

    def __init__(self, path: Path, kind: bytes, take: Callable[[Any], None], most_bytes: int | None = None) -> None:
        super().__init__(path)
        self.damaged = False
        self.head: Any = None
        self._kind = kind
        self._on_entry = take
        self._lines = CheckedLines(kind)
        self._sound = 0  # bytes up to the first damaged line
        try:
            if most_bytes is not None and self.size > most_bytes:
                raise InputError(
                    f"the journal {path} has {self.size} bytes; the limit is {most_bytes}. Move it away, or give another"
                    " `output`"
                )
            self._read()
        except BaseException:
            self.close()
            raise

    def _read(self) -> None:
        for number, line in enumerate(self.lines()):
            if number == 0:
                found = self._recognized(line)
                if found not in (self._kind, None):
                    raise InputError(f"{self.path} is the journal of {_WRITERS[found]}; move it away, or give another `output`")
            lines = copy(self._lines)
            try:
                entry = lines.unpack(line)
                if number == 0:
                    self.head = dict(entry)
                else:
                    self._on_entry(entry)
            except (ValueError, TypeError, KeyError, RecursionError):
                self.damaged = True
                return
            self._lines, self._sound = lines, self._sound + len(line)

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

    def begin(self, head: Any) -> None:
        """Truncate the file, and write a new head. Raises OutputError."""
        self.cut(0)
        self._lines = CheckedLines(self._kind)
        self.add(head)
        self.sync()

    def go_on(self) -> None:
        """Truncate the file after the last good line. Raises OutputError."""
        self.cut(self._sound)

    def add(self, entry: Any) -> None:
        """Write an entry at once, so that a killed process does not lose it. Raises OutputError."""
        lines = copy(self._lines)
        self.append(lines.pack(entry))
        self._lines = lines

    def rewrite(self, head: Any, entries: Iterable[Any]) -> None:
        """Replace everything in one step. Raises OutputError."""
        lines = CheckedLines(self._kind)
        self.replace(lines.pack(head, *entries))
        self._lines = lines
