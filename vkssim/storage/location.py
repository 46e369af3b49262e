"""Places of files: local paths and URLs, of which names relative to them are made."""

from __future__ import annotations

import os
from pathlib import Path

from .remote import is_url

Place = str | os.PathLike[str]
"""A local path, or a URL as text."""


def parent_of(place: Place) -> Place:
    """Return the folder that it is in."""
    return _without_query(place).rpartition("/")[0] if is_url(place) else Path(place).parent


def join(folder: Place, name: str) -> str:
    """Return a name relative to a folder. What is relative to a URL stays on its server, whatever it looks like."""
    return f"{os.fspath(folder).rstrip('/')}/{name}" if is_url(folder) else str(Path(folder) / name)


def suffix_of(place: Place) -> str:
    """Return the ending of its name, in small letters and with its dot."""
    return Path(_without_query(place) if is_url(place) else place).suffix.lower()


def _without_query(url: Place) -> str:
    return os.fspath(url).partition("?")[0]
