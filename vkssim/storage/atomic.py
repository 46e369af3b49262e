"""Files that are there as a whole or not at all."""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from ..errors import OutputError
from ..utils.interruption import unfinished

UNFINISHED = ".vkssim-"
"""What the names of files begin with that are still being written."""


def write_file(content: str | bytes, path: Path) -> None:
    """Write a file, text as UTF-8: to a device or a pipe as it is, else as `replace_file` does. Raises OutputError."""
    data = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
    if not path.exists() or path.is_file():
        replace_file(data, path)
        return
    try:
        path.write_bytes(data)
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}") from None


def replace_file(data: bytes, path: Path) -> None:
    """Write an ordinary file in one step, and have it on the disk; a link of that name is replaced, never followed.

    Whatever happens meanwhile, the file is the old one or the new one. Raises OutputError.
    """
    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=UNFINISHED)
        with unfinished(name):
            try:
                with open(descriptor, "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(descriptor)
                os.chmod(name, _mode(path))
                os.replace(name, path)
            except BaseException:
                with suppress(OSError):
                    os.unlink(name)
                raise
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}") from None
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on the disk, where the system can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _mode(path: Path) -> int:
    """That of the file which is there, else that of a new one."""
    there = path.lstat().st_mode if os.path.lexists(path) else 0
    return stat.S_IMODE(there) if stat.S_ISREG(there) else 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
