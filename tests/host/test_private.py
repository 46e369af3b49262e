"""Files that are the user's alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from vkssim.host.private import open_private, private_folder, replace_private


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A private one."""
    path = tmp_path / "file"
    replace_private(path, b"ours")
    return path


def test_what_is_made_is_private(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        private_folder(tmp_path / "new" / "folder")
        replace_private(tmp_path / "new" / "folder" / "file", b"data")
        with open_private(tmp_path / "journal", "a+b") as journal:
            journal.write(b"line\n")
    finally:
        os.umask(before)
    assert _mode(tmp_path / "new" / "folder") == 0o700
    assert _mode(tmp_path / "new" / "folder" / "file") == _mode(tmp_path / "journal") == 0o600
    with open_private(tmp_path / "journal", "a+b") as journal:
        journal.write(b"next\n")
        journal.seek(0)
        assert journal.read() == b"line\nnext\n"


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_what_others_may_write_is_refused(tmp_path: Path, file: Path, mode: int) -> None:
    file.chmod(mode)
    with pytest.raises(PermissionError, match=f"has mode {mode:o}"):
        open_private(file)
    with pytest.raises(PermissionError):
        open_private(file, "a+b")
    folder = tmp_path / "folder"
    folder.mkdir()
    folder.chmod(mode | 0o100)
    with pytest.raises(PermissionError):
        private_folder(folder)


def test_what_belongs_to_someone_else_is_refused(tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    user = os.geteuid() + 1  # only root could make such files
    monkeypatch.setattr(os, "geteuid", lambda: user)
    with pytest.raises(PermissionError, match="belongs to user"):
        open_private(file)
    with pytest.raises(PermissionError, match="belongs to user"):
        private_folder(tmp_path)


def test_links_and_pipes_are_refused(tmp_path: Path, file: Path) -> None:
    (tmp_path / "link").symlink_to(file)
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe"):
        with pytest.raises(OSError, match=name):
            open_private(tmp_path / name)
    (tmp_path / "folder").mkdir(mode=0o700)
    (tmp_path / "elsewhere").symlink_to("folder")
    with pytest.raises(PermissionError, match="no ordinary folder"):
        private_folder(tmp_path / "elsewhere")
    replace_private(tmp_path / "link", b"new")
    assert file.read_bytes() == b"ours", "a link is replaced, not followed"
    assert not (tmp_path / "link").is_symlink()
