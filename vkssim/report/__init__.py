"""Where scores go: the output forms of libvmaf's tools. Knows nothing of Vulkan."""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from ..errors import OptionError, OutputError
from ..limits import shown
from ..results import ScoreReport
from . import csv, json, sub, xml
from .numbers import NumberFormat

WRITERS = {"json": json.render, "xml": xml.render, "csv": csv.render, "sub": sub.render}
"""The text of a report by the name of its form."""


def render(report: ScoreReport, form: str, precision: str = "6") -> str:
    """A report as text. `precision` is a number of decimals, or `max` for numbers that read back to the same double."""
    if form not in WRITERS:
        raise OptionError(f"unknown output form {form!r}; there are {', '.join(WRITERS)}")
    return WRITERS[form](report, NumberFormat.parse(precision))


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
        raise OutputError(f"{shown(str(path))} names no file: {error}") from None
    if path.is_dir():
        raise OutputError(f"{path} is a folder; give the name of a file in it")
    if not folder.is_dir():
        raise OutputError(f"{path} cannot be written: there is no folder {folder}")
    if path.exists() and not os.access(path, os.W_OK):
        raise OutputError(f"{path} cannot be written: no permission")
    if path.exists() and not path.is_file():
        return  # a device or a pipe: writing to it is the only test
    try:
        with tempfile.NamedTemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}") from None


def write(content: str | bytes, path: Path) -> None:
    """Write a report, text as UTF-8: to a device or a pipe as it is, else as `replace` does. Raises OutputError."""
    data = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
    if not path.exists() or path.is_file():
        replace(data, path)
        return
    try:
        path.write_bytes(data)
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}") from None


def replace(data: bytes, path: Path) -> None:
    """Write an ordinary file in one step. A link of that name is replaced, never followed. Raises OutputError."""
    try:
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".vkssim-")
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
            os.chmod(temporary, _mode(path))
            os.replace(temporary, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}") from None


def _mode(path: Path) -> int:
    """That of the file which is there, else that of a new one."""
    there = path.lstat().st_mode if os.path.lexists(path) else 0
    return stat.S_IMODE(there) if stat.S_ISREG(there) else 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
