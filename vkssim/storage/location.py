"""Paths and URLs of files, and names relative to them."""

from __future__ import annotations

import os
from pathlib import Path

from .remote import is_url

PathOrUrl = str | os.PathLike[str]
"""A local path, or a URL as text."""


def parent_of(path: PathOrUrl) -> PathOrUrl:
    """Return the folder that it is in."""
    return _without_query(path).rpartition("/")[0] if is_url(path) else Path(path).parent


def join(folder: PathOrUrl, name: str) -> str:
    """Return a name relative to a folder. What is relative to a URL stays on its server, whatever it looks like."""
    return f"{os.fspath(folder).rstrip('/')}/{name}" if is_url(folder) else str(Path(folder) / name)


def suffix_of(path: PathOrUrl) -> str:
    """Return the ending of its name, in small letters and with its dot."""
    return Path(_without_query(path) if is_url(path) else path).suffix.lower()


def _without_query(url: PathOrUrl) -> str:
    return os.fspath(url).partition("?")[0]
