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


def is_same_file(first: PathOrUrl, second: PathOrUrl) -> bool:
    """Return whether two names are of one file, which links, hard links and the case of letters may hide."""
    first, second = (os.fspath(name).removeprefix("file://") for name in (first, second))
    if is_url(first) or is_url(second):
        return first == second
    try:
        if os.path.exists(first) and os.path.exists(second):
            return os.path.samefile(first, second)
        return os.path.normcase(os.path.realpath(first)) == os.path.normcase(os.path.realpath(second))
    except (OSError, ValueError):  # no file can have such a name
        return False


def _without_query(url: PathOrUrl) -> str:
    return os.fspath(url).partition("?")[0]
