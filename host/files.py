"""Small private files of the cache folder."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path


def replace_private(path: Path, data: bytes) -> bool:
    """Write a file that its owner alone can read, in one step, its folder made where it is missing; False where it cannot be
    written. Nothing half written is left behind.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = tempfile.NamedTemporaryFile(dir=path.parent, delete=False)  # noqa: SIM115 - closed below
    except OSError:
        return False
    try:
        with temporary:
            temporary.write(data)
        os.replace(temporary.name, path)
    except OSError:
        Path(temporary.name).unlink(missing_ok=True)
        return False
    return True


def read_private(path: Path, most: int) -> bytes | None:
    """What is in a file of at most `most` bytes that nobody else could have written; None for any other, or none."""
    try:
        with open(path, "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_size > most:
                return None
            if hasattr(os, "geteuid") and (found.st_uid != os.geteuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)):
                return None
            return file.read(most)
    except OSError:
        return None
