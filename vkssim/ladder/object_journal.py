"""Keep the journal of a batch whose results go to a URL, as an object for every finished pair."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Self

from ..errors import InputError
from ..storage.checked_lines import BATCH, pack_record, unpack_record
from ..storage.folder import Folder
from .journal import Record, as_record

_NAME = re.compile(r"([0-9a-f]{64})\.json")
_READ_AT_ONCE = 32


class ObjectJournal:
    """Keep records as `Journal` does, but in a folder, each in a file named by its key.

    No lock keeps two processes from using one folder. In that case both score the pairs, and their records are the same.

    `tell` gets notes for the user about damaged records, whose pairs are scored again. Raises InputError if something else has
    the name of a record, OutputError if it cannot be read.
    """

    def __init__(self, folder: Folder, tell: Callable[[str], None] = lambda _text: None) -> None:
        self._folder = folder
        names = sorted(name for name in folder.names() if name.endswith(".json"))
        for name in names:
            if _NAME.fullmatch(name) is None:
                raise InputError(f"{folder.path(name)} is not a record of a batch; move it away, or give another -o")
        with ThreadPoolExecutor(_READ_AT_ONCE) as pool:
            found = list(zip(names, pool.map(self._read, names), strict=True))
        self.records = {record["key"]: record for _, record in found if record is not None}
        damaged = [name for name, record in found if record is None]
        if damaged:
            tell(f"{len(damaged)} records in {folder} are damaged; their pairs are scored again")

    def _read(self, name: str) -> Record | None:
        """Return the record of an object; None if `add` did not write it."""
        try:
            record = as_record(unpack_record(BATCH, self._folder.read(name) or b"", name))
        except (ValueError, RecursionError, KeyError, TypeError):
            return None
        return record if self._name(record) == name else None

    def _name(self, record: Record) -> str:
        return f"{record['key']}.json"

    def add(self, record: Record) -> None:
        """Write a record at once. Raises OutputError."""
        name = self._name(record)
        self._folder.write(name, pack_record(BATCH, record, name))
        self.records[record["key"]] = record

    def close(self) -> None:
        """Do nothing, because no file is open."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
