"""Keep the journal of a batch: a record of every finished pair, so that an interrupted run can continue."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from ..storage.checked_journal import CheckedJournal
from ..storage.checked_lines import BATCH
from ..utils.limits import LARGEST_JOURNAL_BYTES

Record = Mapping[str, Any]
"""The facts about a pair that was scored, as values of JSON; `key` identifies the pair."""


class Journal:
    """Open the journal of a batch, or begin one; use with `with`.

    `records` are the latest records by key. `tell` gets notes for the user about damaged records: they and all records behind
    them are dropped, and their pairs are scored again. Raises InputError if the file is not such a journal, OutputError if it
    cannot be written or another process has locked it.
    """

    def __init__(self, path: Path, tell: Callable[[str], None] = lambda _text: None) -> None:
        self._journal = CheckedJournal(path, BATCH, as_record, most_bytes=LARGEST_JOURNAL_BYTES)
        self._begun = self._journal.head is not None
        self.records: dict[str, Record] = {record["key"]: record for record in self._journal.entries}
        if self._journal.damaged:
            tell(f"{path} is damaged behind {len(self._journal.entries)} records; the pairs behind them are scored again")
        try:
            if self._begun:
                self._journal.go_on()
        except BaseException:
            self._journal.close()
            raise

    def add(self, record: Record) -> None:
        """Write a record at once. Raises OutputError."""
        if self._begun:
            self._journal.add([record])
        else:
            self._journal.begin({}, [record])
            self._begun = True
        self.records[record["key"]] = record

    def close(self) -> None:
        """Close the file."""
        self._journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def as_record(entry: Any) -> Record:
    """Return an entry of a journal as a record. Raises TypeError or KeyError if it is not a record."""
    record: Record = entry
    if not (isinstance(record["key"], str) and isinstance(record["error"], dict | None)):
        raise TypeError("a record must have the key of its pair, and its error or null")
    return record
