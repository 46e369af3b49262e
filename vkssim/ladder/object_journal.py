"""The journal of a batch whose results go to a URL: an object for every row that is done."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Self

from ..errors import InputError
from ..folder import Folder
from .journal import Record

_ENDING = ".json"
_READ_AT_ONCE = 32


class ObjectJournal:
    """As `Journal`, but a folder of records, each in a file named by its key. Nothing keeps two processes from one folder: both
    then score, and their records are the same.

    Raises InputError where something in the folder is no record, OutputError where it cannot be read.
    """

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        names = sorted(name for name in folder.names() if name.endswith(_ENDING))
        with ThreadPoolExecutor(_READ_AT_ONCE) as pool:
            self.records = {record["key"]: record for record in pool.map(self._read, names)}

    def _read(self, name: str) -> Record:
        try:
            record: Record = json.loads(self._folder.read(name) or b"")
            if f"{record['key']}{_ENDING}" != name:
                raise ValueError
        except (ValueError, RecursionError, KeyError, TypeError):
            raise InputError(f"{self._folder.path(name)} is no record of a batch; remove it, or give another -o") from None
        return record

    def add(self, record: Record) -> None:
        """Write a record at once. Raises OutputError."""
        self._folder.write(f"{record['key']}{_ENDING}", json.dumps(record, allow_nan=False).encode())
        self.records[record["key"]] = record

    def close(self) -> None:
        """Nothing is open."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
