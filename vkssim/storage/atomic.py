"""Files that are there as a whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from ..errors import OutputError
from ..utils.interruption import unfinished
from ..utils.limits import abbreviated

UNFINISHED = ".vkssim-"
"""What the names of files begin with that are still being written."""


def write_file(content: str | bytes, path: Path) -> None:
    """Write a file; an ordinary file is the old one or the new one at any moment.

    Parameters
    ----------
    content : str or bytes
        What to write; text becomes UTF-8.
    path : pathlib.Path
        The file. A link of that name is replaced and not followed; a device or a pipe is written to as it is.

    Raises
    ------
    OutputError
        The file cannot be written.

    """
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

    Whatever happens meanwhile, the file is the old one or the new one. Where the system has files without a name, killing the
    process leaves nothing else behind either. Raises OutputError.
    """
    try:
        descriptor = _open_nameless(path.parent)
        if descriptor is None:
            _replace_by_name(data, path)
        else:
            with open(descriptor, "wb") as file:
                _write(file, data)
                os.fchmod(descriptor, _mode(path))
                beside = str(path.parent / f"{UNFINISHED}{secrets.token_hex(8)}")
                # With a descriptor Python calls linkat, which follows the link in /proc to the file; link would not.
                os.link(f"/proc/self/fd/{descriptor}", beside, src_dir_fd=descriptor, follow_symlinks=True)
                _rename(beside, path)
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}") from None
    sync_folder(path.parent)


def _open_nameless(folder: Path) -> int | None:
    """Return the descriptor of a new file in a folder that has no name there yet; None where the system has no such files."""
    if not hasattr(os, "O_TMPFILE") or not os.path.isdir("/proc/self/fd"):
        return None
    try:
        return os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o600)
    except OSError:  # the file system has none; or the folder cannot be written, which the other way says as well
        return None


def _replace_by_name(data: bytes, path: Path) -> None:
    """Write a file beside another, under a name of its own, and put it in the place of that."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=UNFINISHED)
    with _removed_on_failure(name):
        with open(descriptor, "wb") as file:
            _write(file, data)
        os.chmod(name, _mode(path))
    _rename(name, path)


def _write(file: BinaryIO, data: bytes) -> None:
    """Write a file, and have it on the disk."""
    file.write(data)
    file.flush()
    os.fsync(file.fileno())


def _rename(name: str, path: Path) -> None:
    """Give an unfinished file, which is finished now, its name; where that fails it is removed."""
    with _removed_on_failure(name):
        os.replace(name, path)


@contextmanager
def _removed_on_failure(name: str) -> Iterator[None]:
    """Remove an unfinished file where the block fails, or the process ends on the spot."""
    with unfinished(name):
        try:
            yield
        except BaseException:
            with suppress(OSError):
                os.unlink(name)
            raise


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on the disk, where the system can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _mode(path: Path) -> int:
    """Return the mode of the existing file, or the mode that a new file would get."""
    there = path.lstat().st_mode if os.path.lexists(path) else 0
    return stat.S_IMODE(there) if stat.S_ISREG(there) else 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def check_writable(path: Path) -> None:
    """Raise OutputError where a file of that name cannot be written; asked before the first frame is scored."""
    folder = path.parent
    try:
        path.lstat()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}") from None
    except ValueError as error:
        raise OutputError(f"{abbreviated(str(path))} names no file: {error}") from None
    if path.is_dir():
        raise OutputError(f"{path} is a folder; give the name of a file in it")
    if not folder.is_dir():
        raise OutputError(f"{path} cannot be written: there is no folder {folder}")
    if path.exists() and not os.access(path, os.W_OK):
        raise OutputError(f"{path} cannot be written: no permission")
    if path.exists() and not path.is_file():
        return  # a device or a pipe: writing to it is the only test
    try:
        with tempfile.TemporaryFile(dir=folder):  # has no name to be left behind where the system can do without
            pass
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}") from None
