"""The journal of a batch: a JSON line for every row that is done, so that a run cut off goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from ..errors import InputError
from ..journal_file import JournalFile
from ..limits import LARGEST_JOURNAL_BYTES

Record = Mapping[str, Any]
"""What is known of a row that was scored, as JSON has it; `key` says of which."""


class Journal:
    """Opens a journal, or begins one; use with `with`.

    `records` are the records by key, the latest of each. A last line that was cut off while it was written is dropped. Raises
    InputError where the file is no journal, OutputError where it cannot be written or another process has it.
    """

    def __init__(self, path: Path) -> None:
        self.records: dict[str, Record] = {}
        self._file = JournalFile(path)
        try:
            self._read()
        except BaseException:
            self._file.close()
            raise

    def _read(self) -> None:
        if self._file.size > LARGEST_JOURNAL_BYTES:
            raise InputError(
                f"the journal {self._file.path} has {self._file.size} bytes; {LARGEST_JOURNAL_BYTES} are the most there can be."
                " Move it away, or give another -o"
            )
        whole = 0
        for number, line in enumerate(self._file.lines(), 1):
            if not line.endswith(b"\n"):
                self._file.cut(whole)
                break
            whole += len(line)
            try:
                record = json.loads(line)
                self.records[record["key"]] = record
            except (ValueError, RecursionError, KeyError, TypeError):
                raise InputError(
                    f"{self._file.path}, line {number} is no record of a batch; move that file away, or give another -o"
                ) from None

    def add(self, record: Record) -> None:
        """Write a record at once. Raises OutputError."""
        self._file.add(json.dumps(record, allow_nan=False).encode() + b"\n")
        self.records[record["key"]] = record

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
