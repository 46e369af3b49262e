"""Journals as files: private, locked, whole up to the last line that was written."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from vkssim.errors import OutputError
from vkssim.storage.journal_file import JournalFile

from ..support.commands import python_process

LINE = b"a line\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "scores.json.journal"


def test_private_whatever_the_mask_says(path: Path) -> None:
    before = os.umask(0)
    try:
        with JournalFile(path):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
    finally:
        os.umask(before)


@pytest.mark.parametrize("write", [lambda file: file.append(LINE), lambda file: file.cut(0)], ids=["append", "cut"])
def test_a_file_that_others_could_read_is_private_once_it_is_written(path: Path, write: Callable[[JournalFile], None]) -> None:
    """Not before: it may turn out to be somebody's diary."""
    path.write_bytes(LINE)
    path.chmod(0o644)
    with JournalFile(path) as file:
        assert list(file.lines()) == [LINE]
        assert stat.S_IMODE(path.stat().st_mode) == 0o644
        write(file)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_that_was_put_in_its_place_is_not_removed(path: Path) -> None:
    with JournalFile(path) as file:
        file.append(LINE)
        path.rename(path.with_name("moved"))
        path.write_bytes(b"somebody's own")
        file.remove()
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
            mine.write_bytes(LINE)
        path.symlink_to(mine)
    with pytest.raises(OutputError, match=r"scores\.json\.journal"):
        JournalFile(path)
    assert not mine.exists() or mine.read_bytes() == LINE


def test_files_of_others_are_left_alone(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(LINE)
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    with pytest.raises(OutputError, match="belongs to user"):
        JournalFile(path)


def test_another_process_is_told(path: Path) -> None:
    opened = f"from pathlib import Path; from vkssim.storage.journal_file import JournalFile; JournalFile(Path({str(path)!r}))"
    with JournalFile(path):
        process = python_process("-c", opened)
        assert process.returncode == 1
        assert b"another process is writing the same output" in process.stderr
    assert python_process("-c", opened).returncode == 0


def test_a_file_that_its_owner_removes_meanwhile_is_made_anew(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    locks = JournalFile._lock

    def remove_first(self: JournalFile, descriptor: int) -> None:
        monkeypatch.setattr(JournalFile, "_lock", locks)
        path.unlink()
        locks(self, descriptor)

    monkeypatch.setattr(JournalFile, "_lock", remove_first)
    with JournalFile(path) as file:
        file.append(LINE)
        assert path.read_bytes() == LINE


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

    with JournalFile(path) as file:
        file.append(LINE)
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", little)
            with pytest.raises(OutputError, match="cannot be written: No space left on device"):
                file.append(LINE)
        assert path.read_bytes() == LINE
        file.append(LINE)
    assert path.read_bytes() == 2 * LINE
