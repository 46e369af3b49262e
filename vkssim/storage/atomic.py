"""Write files that exist complete or not at all."""

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
"""The start of the names of files that are still being written."""


def write_file(content: str | bytes, path: Path) -> None:
    """Write a file. At any moment, an ordinary file has its old or its new content.

    Parameters
    ----------
    content : str or bytes
        The content; text is encoded as UTF-8.
    path : pathlib.Path
        The file. A link of that name is replaced, not followed. A device or a pipe is written to directly.

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
    """Write an ordinary file in one step, and flush it to the disk. A link of that name is replaced, never followed.

    At any moment, the file has its old or its new content. Where the system supports files without a name, a killed process
    leaves no other file behind either. Raises OutputError.
    """
    try:
        descriptor = _open_nameless(path.parent)
        if descriptor is None:
            _replace_by_name(data, path)
        else:
            with open(descriptor, "wb") as file:
                _write(file, data)
                os.fchmod(descriptor, _mode(path))  # before it has a name, which a killed process would leave behind
                beside = str(path.parent / f"{UNFINISHED}{secrets.token_hex(8)}")
                # With a descriptor, Python calls linkat, which follows the link in /proc to the file. link() would not follow
                # it.
                os.link(f"/proc/self/fd/{descriptor}", beside, src_dir_fd=descriptor, follow_symlinks=True)
                with _removed_on_failure(beside):
                    os.replace(beside, path)
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}") from None
    sync_folder(path.parent)


def _open_nameless(folder: Path) -> int | None:
    """Return the descriptor of a new file without a name in a folder; None if the system has no such files."""
    if not hasattr(os, "O_TMPFILE") or not os.path.isdir("/proc/self/fd"):
        return None
    try:
        return os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o600)
    except OSError:  # no such files here, or no permission; _replace_by_name reports the latter
        return None


def _replace_by_name(data: bytes, path: Path) -> None:
    """Write a temporary file beside the target, and rename it to the target."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=UNFINISHED)
    with _removed_on_failure(name), open(descriptor, "wb") as file:
        _write(file, data)
    give_name(name, path)


def _write(file: BinaryIO, data: bytes) -> None:
    """Write data to a file, and flush it to the disk."""
    file.write(data)
    file.flush()
    os.fsync(file.fileno())


def give_name(name: str, path: Path) -> None:
    """Rename a finished temporary file, which gets the mode of the file that it replaces; remove it if that fails.

    Raises OSError.
    """
    with _removed_on_failure(name):
        os.chmod(name, _mode(path))
        os.replace(name, path)


@contextmanager
def _removed_on_failure(name: str) -> Iterator[None]:
    """Remove an unfinished file if the block fails, or if the process ends at once."""
    with unfinished(name):
        try:
            yield
        except BaseException:
            with suppress(OSError):
                os.unlink(name)
            raise


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk, if the system supports it."""
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
    """Raise OutputError if a file of that name cannot be written. It is called before the first frame is scored."""
    folder = path.parent
    try:
        path.lstat()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}") from None
    except ValueError as error:
        raise OutputError(f"{abbreviated(str(path))} is not a possible file name: {error}") from None
    if path.is_dir():
        raise OutputError(f"{path} is a folder; give the name of a file in it")
    if not folder.is_dir():
        raise OutputError(f"{path} cannot be written: the folder {folder} does not exist")
    if path.exists() and not os.access(path, os.W_OK):
        raise OutputError(f"{path} cannot be written: permission denied")
    if path.exists() and not path.is_file():
        return  # a device or a pipe can be tested only by writing to it
    try:
        # The file has no name if the system supports that, so a killed process leaves nothing.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}") from None
