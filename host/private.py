"""Read and write private files of the user: nobody else can write or read them.

The module checks POSIX owners and modes. On Windows it checks neither, because a user's own folders are private there.
"""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Literal

_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
# Without O_NONBLOCK, open would wait for a planted pipe.
_SAFE_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def private_folder(folder: Path) -> None:
    """Make a folder of mode 0700 if there is none.

    Raises PermissionError if it is a link, belongs to another user, or others may write there. Raises OSError if it cannot be
    made.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    check_private(folder, folder.lstat(), folder=True)


def open_private(path: Path, mode: Literal["rb", "a+b"] = "rb") -> BinaryIO:
    """Open a private file: with "rb" to read it, with "a+b" to read it and to append, which creates a missing file.

    A new file has mode 0600. An existing file keeps its mode, because it may belong to another program. Its folder is not
    checked. Raises PermissionError if it is no ordinary file, belongs to another user, or others may write it. Raises OSError
    if it is a link or cannot be opened.
    """
    file = open(path, mode, opener=lambda name, flags: os.open(name, flags | _SAFE_FLAGS, 0o600))  # noqa: SIM115
    try:
        check_private(path, os.fstat(file.fileno()))
    except BaseException:
        file.close()
        raise
    return file


def replace_private(path: Path, data: bytes | memoryview) -> None:
    """Write a file of mode 0600 in one step; a link of that name is replaced, not followed. Raises OSError.

    Unlike `vkssim.storage.atomic`, which writes results, this does not wait for the disk: the files only save time.
    """
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def load(path: Path, max_bytes: int) -> bytes:
    """Return the content of a private file in a private folder; empty if there is none or it is larger than `max_bytes`."""
    try:
        private_folder(path.parent)
        with open_private(path) as file:
            data = file.read(max_bytes + 1)
    except OSError:
        return b""
    return data if len(data) <= max_bytes else b""


def store(path: Path, data: bytes) -> bool:
    """Write a file for `load`. Return False if it cannot be written."""
    try:
        private_folder(path.parent)
        replace_private(path, data)
    except OSError:
        return False
    return True


def check_private(path: Path, status: os.stat_result, *, folder: bool = False) -> None:
    """Raise PermissionError if a file or folder is no ordinary one, belongs to another user, or others may write it."""
    if not (stat.S_ISDIR if folder else stat.S_ISREG)(status.st_mode):
        raise PermissionError(f"{path} is no ordinary {'folder' if folder else 'file'}")
    if not hasattr(os, "geteuid"):
        return
    if status.st_uid != os.geteuid():
        raise PermissionError(f"{path} belongs to user {status.st_uid}, not to user {os.geteuid()}")
    if status.st_mode & _WRITABLE_BY_OTHERS:
        raise PermissionError(f"{path} has mode {stat.S_IMODE(status.st_mode):o}: others may write it; chmod go-w {path}")
