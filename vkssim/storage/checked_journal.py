"""Read a journal of checked lines up to the first damage, and append entries behind the last good line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Generic, TypeVar

from ..errors import InputError
from .checked_lines import BATCH, RUN, SEARCH, CheckedLines, is_damaged_head
from .journal_file import JournalFile

_WRITERS = {RUN: "`vkssim score`", BATCH: "`vkssim batch`", SEARCH: "`vkssim search`"}

Entry = TypeVar("Entry")


class CheckedJournal(Generic[Entry]):
    """Open the journal of one kind of run, or make an empty file for it.

    `head` is the entry of the first line. `entries` are the entries behind it, read by `parse`, up to the first damaged line;
    `damaged` is True if there is a damaged line.

    `parse` raises ValueError, TypeError, KeyError or RecursionError for an invalid entry.

    Raises InputError for a file of more than `most_bytes`, and for a file that is not a journal of this kind. Raises
    OutputError if the file cannot be written or another process has locked it.
    """

    def __init__(
        self,
        path: Path,
        kind: bytes,
        parse: Callable[[Any], Entry],
        most_bytes: int | None = None,
    ) -> None:
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
        """Truncate the file behind the last good line. Raises OutputError."""
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
