"""Where scores go: the output forms of libvmaf's tools. Knows nothing of Vulkan."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from ..errors import OptionError, OutputError
from ..storage.atomic import write_file as write
from ..utils.limits import shown
from . import csv, json, sub, xml
from .numbers import NumberFormat
from .results import ScoreReport

__all__ = ["WRITERS", "check_writable", "render", "write"]

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
        with tempfile.TemporaryFile(dir=folder):  # has no name to be left behind where the system can do without
            pass
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}") from None
