"""Checked lines: whatever is done to them, no entry is read that was not written there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vkssim.errors import InputError
from vkssim.storage.checked_journal import BATCH, RUN, CheckedJournal, pack_record, unpack_record

from ..support.damage import flipped_bits

HEAD = {"of": "a run"}
ENTRIES = [[0, None, [0.5]], {"key": "a"}, "text", 1.0]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "o.json.journal"


def _opened(path: Path, kind: bytes = RUN) -> CheckedJournal[Any]:
    return CheckedJournal(path, kind, lambda entry: entry)


def _written(path: Path, kind: bytes = RUN) -> bytes:
    with_entries = _opened(path, kind)
    with_entries.begin(HEAD, ENTRIES[:1])
    with_entries.add(ENTRIES[1:3])
    with_entries.add(ENTRIES[3:])
    with_entries.close()
    return path.read_bytes()


def test_entries_come_back(path: Path) -> None:
    _written(path)
    journal = _opened(path)
    journal.close()
    assert (journal.head, journal.entries) == (HEAD, ENTRIES)
    assert not journal.damaged


@pytest.mark.parametrize("kind", [RUN, BATCH])
def test_any_bit_that_is_another_is_found(path: Path, kind: bytes) -> None:
    """All entries before the line with that bit are read, and the file is still recognised as a journal."""
    whole = _written(path, kind)
    ends = [end for end, byte in enumerate(whole) if byte == ord("\n")]
    for bit, damaged in enumerate(flipped_bits(whole)):
        path.write_bytes(damaged)
        journal = _opened(path, kind)
        good = sum(end < bit // 8 for end in ends)
        assert journal.damaged
        assert ([journal.head] if journal.head else []) + journal.entries == [HEAD, *ENTRIES][:good]
        journal.close()


def test_it_goes_on_behind_the_last_good_line(path: Path) -> None:
    whole = _written(path)
    lines = whole.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:3]) + lines[4])
    journal = _opened(path)
    assert journal.entries == ENTRIES[:2]
    journal.go_on()
    journal.add(ENTRIES[2:])
    journal.close()
    assert path.read_bytes() == whole


def test_a_record_is_for_one_name_and_kind() -> None:
    data = pack_record(BATCH, ENTRIES, "a")
    assert unpack_record(BATCH, data, "a") == ENTRIES
    for kind, other, name in ((BATCH, data, "b"), (RUN, data, "a"), (BATCH, data * 2, "a"), (BATCH, b"", "a")):
        with pytest.raises(ValueError, match="torn, altered or out of place"):
            unpack_record(kind, other, name)
    for damaged in flipped_bits(data):
        with pytest.raises(ValueError, match="torn, altered or out of place"):
            unpack_record(BATCH, damaged, "a")


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
