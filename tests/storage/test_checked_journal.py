"""Journals: no entry is read that was not written there, and the file is private, locked, and whole up to its last line."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from vkssim.errors import InputError, OutputError
from vkssim.storage.checked_journal import BATCH, RUN, CheckedJournal, CheckedLines, journal_path

from ..support.commands import python_process

HEAD = {"of": "a run"}
ENTRIES = [[0, None, [0.5]], {"key": "a"}, "text", 1.0]


def _flipped_bits(data: bytes) -> Iterator[bytes]:
    """Yield the data with one bit flipped, for each bit in turn."""
    for bit in range(8 * len(data)):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        yield bytes(damaged)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "o.json.journal"


def _opened(path: Path, kind: bytes = RUN, entries: list[Any] | None = None) -> CheckedJournal:
    return CheckedJournal(path, kind, ([] if entries is None else entries).append)


@pytest.mark.parametrize("letter", ["o", "é", "𝄞"])
def test_results_of_the_longest_names_have_journals(tmp_path: Path, letter: str) -> None:
    """Each has its own, whose name ends as usual."""
    start = letter * (250 // len(letter.encode()))
    results = [tmp_path / f"{start}{ending}" for ending in (".csv", ".xml")]
    journals = [journal_path(path) for path in results]
    for result, journal in zip(results, journals, strict=True):
        result.touch()
        _written(journal)
        assert journal.name.startswith(start[:50])
        assert journal.name.endswith(".journal")
    assert len(set(journals)) == 2
    assert journal_path(tmp_path / ("o" * 247)).name == "o" * 247 + ".journal", "no other name is needed"


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
    for bit, data in [(8 * len(whole), whole), *enumerate(_flipped_bits(whole))]:
        path.write_bytes(data)
        entries: list[Any] = []
        with _opened(path, kind, entries) as journal:
            good = sum(end < bit // 8 for end in ends)
            assert journal.damaged == (data != whole)
            assert ([journal.head] if journal.head else []) + entries == [HEAD, *ENTRIES][:good]


def test_a_record_is_for_one_kind() -> None:
    data = CheckedLines(BATCH).pack(ENTRIES)
    assert CheckedLines(BATCH).unpack(data) == ENTRIES
    others = [(RUN, data), (BATCH, data * 2), (BATCH, b"")]
    for kind, other in others + [(BATCH, damaged) for damaged in _flipped_bits(data)]:
        with pytest.raises(ValueError, match="torn, altered or out of place"):
            CheckedLines(kind).unpack(other)


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


# -- the file ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("write", [lambda journal: journal.begin(HEAD), CheckedJournal.go_on], ids=["begin", "go on"])
def test_a_file_that_others_could_read_is_private_once_it_is_written(
    path: Path, write: Callable[[CheckedJournal], None]
) -> None:
    """Not before: it may turn out to be somebody's diary."""
    _written(path)
    path.chmod(0o644)
    with _opened(path) as journal:
        assert stat.S_IMODE(path.stat().st_mode) == 0o644
        write(journal)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_that_was_put_in_its_place_is_not_removed(path: Path) -> None:
    with _opened(path) as journal:
        journal.begin(HEAD)
        path.rename(path.with_name("moved"))
        path.write_bytes(b"somebody's own")
        journal.remove()
    assert path.read_bytes() == b"somebody's own"


@pytest.mark.parametrize("kind", ["link", "dangling link", "pipe", "folder"])
def test_what_is_no_file_is_left_alone(tmp_path: Path, path: Path, kind: str) -> None:
    mine = tmp_path / "mine"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        if kind == "link":
            mine.write_bytes(b"mine")
        path.symlink_to(mine)
    with pytest.raises(OutputError, match=r"o\.json\.journal"):
        _opened(path)
    assert not mine.exists() or mine.read_bytes() == b"mine"


def test_another_process_is_told(path: Path) -> None:
    opened = (
        f"from pathlib import Path; from vkssim.storage.checked_journal import *; CheckedJournal(Path({str(path)!r}), RUN, id)"
    )
    mask = os.umask(0)
    try:
        with _opened(path):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            process = python_process("-c", opened)
            assert process.returncode == 1
            assert b"another process is writing the same output" in process.stderr
    finally:
        os.umask(mask)
    assert python_process("-c", opened).returncode == 0


def test_a_file_that_its_owner_removes_meanwhile_is_made_anew(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = CheckedJournal._lock

    def remove_first(self: CheckedJournal, file: BinaryIO) -> None:
        monkeypatch.setattr(CheckedJournal, "_lock", lock)
        path.unlink()
        lock(self, file)

    monkeypatch.setattr(CheckedJournal, "_lock", remove_first)
    with _opened(path) as journal:
        journal.begin(HEAD)
        assert path.read_bytes() == CheckedLines(RUN).pack(HEAD)


def test_what_cannot_be_written_whole_is_not_there(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full after three bytes."""
    write = os.write
    room = [3]

    def little(descriptor: int, data: bytes) -> int:
        if not room[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = write(descriptor, data[: room[0]])
        room[0] -= written
        return written

    with _opened(path) as journal:
        journal.begin(HEAD)
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", little)
            with pytest.raises(OutputError, match="cannot be written: No space left on device"):
                journal.add(ENTRIES)
        assert path.read_bytes() == CheckedLines(RUN).pack(HEAD)
        journal.add(ENTRIES)
    assert path.read_bytes() == CheckedLines(RUN).pack(HEAD, ENTRIES)
