"""The journal of a batch: a JSON line for every row that is done, so that a run cut off goes on where it was."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from ..errors import InputError, OutputError
from ..limits import LARGEST_JOURNAL_BYTES

Record = Mapping[str, Any]
"""What is known of a row that was scored, as JSON has it; `key` says of which."""


def journal_path(results: Path) -> Path:
    """Where the journal of a file of results is."""
    return results.with_name(results.name + ".journal")


class Journal:
    """Opens a journal, or begins one; use with `with`.

    `records` are the records by key, the latest of each. A last line that was cut off while it was written is dropped. Raises
    InputError where the file is no journal, OutputError where it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.records: dict[str, Record] = {}
        try:
            self._file = open(path, "a+b")  # noqa: SIM115 - closed by close
        except OSError as error:
            raise OutputError(f"the journal {path} cannot be written: {error.strerror}") from None
        try:
            self._read()
        except BaseException:
            self._file.close()
            raise

    def _read(self) -> None:
        state = os.fstat(self._file.fileno())
        if not stat.S_ISREG(state.st_mode) or state.st_size > LARGEST_JOURNAL_BYTES:
            raise InputError(
                f"the journal {self._path} is no ordinary file of at most {LARGEST_JOURNAL_BYTES} bytes; move it away, or give"
                " another -o"
            )
        self._file.seek(0)
        whole = 0
        for number, line in enumerate(self._file, 1):
            if not line.endswith(b"\n"):
                self._file.truncate(whole)
                break
            whole += len(line)
            try:
                record = json.loads(line)
                self.records[record["key"]] = record
            except (ValueError, RecursionError, KeyError, TypeError):
                raise InputError(
                    f"{self._path}, line {number} is no record of a batch; move that file away, or give another -o"
                ) from None
        self._file.seek(0, os.SEEK_END)

    def add(self, record: Record) -> None:
        """Write a record at once. Raises OutputError."""
        self.records[record["key"]] = record
        try:
            self._file.write(json.dumps(record, allow_nan=False).encode() + b"\n")
            self._file.flush()
        except OSError as error:
            raise OutputError(f"the journal {self._path} cannot be written: {error.strerror}") from None

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
