"""Checked lines: whatever is done to them, no entry is read that was not written there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vkssim.errors import InputError
from vkssim.storage.checked_journal import BATCH, RUN, CheckedJournal, CheckedLines

from ..support.damage import flipped_bits

HEAD = {"of": "a run"}
ENTRIES = [[0, None, [0.5]], {"key": "a"}, "text", 1.0]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "o.json.journal"


def _opened(path: Path, kind: bytes = RUN, entries: list[Any] | None = None) -> CheckedJournal:
    return CheckedJournal(path, kind, ([] if entries is None else entries).append)


def _written(path: Path, kind: bytes = RUN) -> bytes:
    with _opened(path, kind) as journal:
        journal.begin(HEAD)
        for entry in ENTRIES:
            journal.add(entry)
    return path.read_bytes()


@pytest.mark.parametrize("kind", [RUN, BATCH])
def test_any_bit_that_is_another_is_found(path: Path, kind: bytes) -> None:
    """All entries before the line with that bit are read, and the file is still recognised as a journal."""
    whole = _written(path, kind)
    ends = [end for end, byte in enumerate(whole) if byte == ord("\n")]
    for bit, data in [(8 * len(whole), whole), *enumerate(flipped_bits(whole))]:
        path.write_bytes(data)
        entries: list[Any] = []
        with _opened(path, kind, entries) as journal:
            good = sum(end < bit // 8 for end in ends)
            assert journal.damaged == (data != whole)
            assert ([journal.head] if journal.head else []) + entries == [HEAD, *ENTRIES][:good]


def test_it_goes_on_behind_the_last_good_line(path: Path) -> None:
    whole = _written(path)
    lines = whole.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:3]) + lines[4])
    entries: list[Any] = []
    with _opened(path, entries=entries) as journal:
        assert entries == ENTRIES[:2]
        journal.go_on()
        for entry in ENTRIES[2:]:
            journal.add(entry)
    assert path.read_bytes() == whole


def test_a_record_is_for_one_name_and_kind() -> None:
    data = CheckedLines(BATCH, "a").pack(ENTRIES)
    assert CheckedLines(BATCH, "a").unpack(data) == ENTRIES
    others = [(BATCH, data, "b"), (RUN, data, "a"), (BATCH, data * 2, "a"), (BATCH, b"", "a")]
    for kind, other, name in others + [(BATCH, damaged, "a") for damaged in flipped_bits(data)]:
        with pytest.raises(ValueError, match="torn, altered or out of place"):
            CheckedLines(kind, name).unpack(other)


def test_another_kind_of_run_keeps_its_journal(path: Path) -> None:
    before = _written(path, BATCH)
    with pytest.raises(InputError, match=r"is the journal of `vkssim batch`; move it away"):
        _opened(path, RUN)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "data", [b"my diary\n", b'{"key": "my diary", "error": null}\n', b"[]\n", b"\0\0\0my diary\n", b"{" * 9999]
)
def test_another_file_is_left_alone(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    for kind in (RUN, BATCH):
        with pytest.raises(InputError, match="is not a journal of vkssim; move it away"):
            _opened(path, kind)
    assert path.read_bytes() == data
