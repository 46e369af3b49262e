"""Write files that exist complete or not at all."""

from __future__ import annotations

import os
import secrets
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

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
    """Write an ordinary file in one step, as `write_file` does, and flush it to the disk.

    If the system supports files without a name, a killed process leaves no other file behind. Raises OutputError.
    """
    try:
        descriptor, name = _open_unfinished(path.parent)
        beside = name or str(path.parent / f"{UNFINISHED}{secrets.token_hex(8)}")
        with _removed_on_failure(beside), open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
            if name is None:
                # With a descriptor, Python calls linkat, which follows the link in /proc to the file. link() would not follow
                # it.
                os.link(f"/proc/self/fd/{descriptor}", beside, src_dir_fd=descriptor, follow_symlinks=True)
        give_name(beside, path)
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}") from None
    sync_folder(path.parent)


def _open_unfinished(folder: Path) -> tuple[int, str | None]:
    """Return the descriptor of a new file in a folder, and its name; None if the system supports files without one."""
    if hasattr(os, "O_TMPFILE") and os.path.isdir("/proc/self/fd"):
        with suppress(OSError):  # no such files here, or no permission, which mkstemp reports
            return os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o600), None
    return tempfile.mkstemp(dir=folder, prefix=UNFINISHED)


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
    if stat.S_ISREG(there):
        return stat.S_IMODE(there)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


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
