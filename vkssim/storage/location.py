"""Work with paths and URLs of files, and with names relative to them."""

from __future__ import annotations

import os
from pathlib import Path

from .remote import is_url

PathOrUrl = str | os.PathLike[str]
"""A local path, or a URL as text."""


def parent_of(path: PathOrUrl) -> PathOrUrl:
    """Return the folder of a file."""
    return _without_query(path).rpartition("/")[0] if is_url(path) else Path(path).parent


def join(folder: PathOrUrl, name: str) -> str:
    """Return the path or URL of a name relative to a folder. A name relative to a URL always stays on that server."""
    return f"{os.fspath(folder).rstrip('/')}/{name}" if is_url(folder) else str(Path(folder) / name)


def suffix_of(path: PathOrUrl) -> str:
    """Return the file name's ending, in lower-case letters and with its dot."""
    return Path(_without_query(path) if is_url(path) else path).suffix.lower()


def _without_query(url: PathOrUrl) -> str:
    return os.fspath(url).partition("?")[0]
