"""What input files are known by, so that scores of others are not taken for theirs."""

from __future__ import annotations

import os
from collections.abc import Sequence

from .errors import InputError
from .frames import remote
from .frames.sequence import sequence

FileState = tuple[str, int | None, int | str | None]
"""Absolute path or URL, size, and time of change in ns or what a server says of the version; None where nothing is known."""


def input_states(path: str) -> list[FileState]:
    """The state of a file, or of each picture of a sequence."""
    return [_state(file) for file in _files(path)]


def _files(path: str) -> Sequence[str]:
    try:
        pictures = sequence(path)
    except (InputError, OSError, ValueError):
        pictures = None
    return [path] if pictures is None else pictures.files


def _state(path: str) -> FileState:
    if remote.is_url(path):
        try:
            return path, *remote.state(path)
        except OSError:
            return path, None, None
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return os.path.abspath(path), None, None
    return os.path.abspath(path), found.st_size, found.st_mtime_ns
