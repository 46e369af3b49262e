"""Paths and URLs of files: which names are URLs, how URLs are shown, and names relative to a folder."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

PathOrUrl = str | os.PathLike[str]
"""A local path, or a URL as text."""

LIBRARIES = {"file": "fsspec", "gs": "gcsfs", "https": "aiohttp", "s3": "s3fs"}
"""The schemes that make a URL, and the file system of each. Plain http is left out: the network could change the video."""

_SLASHES = tuple(f"{scheme}://" for scheme in LIBRARIES)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)(://|::)")
"""The start of a URL, or of a chain of them as fsspec has: ``zip://clip.mp4::s3://bucket/clips.zip``."""

_USER = re.compile(r"(?<=://)[^/\s@]*@")
_QUERY = re.compile(r"\?(?!…)[^\s'\"]+")

_whole: dict[str, str] = {}
"""The URLs that `redact_url` has shortened, by their short form."""


def is_url(path: PathOrUrl) -> bool:
    """Return whether a name is a URL. All other names are paths, even if they look like URLs."""
    return str(path).startswith(_SLASHES)


def as_path(location: PathOrUrl) -> str:
    """Return the path that a ``file://`` URL has; any other path or URL as it is."""
    return os.fspath(location).removeprefix("file://")


def unsupported_url(path: PathOrUrl) -> str | None:
    """Return the message about a URL that is not supported; None for a supported one, and for every other name.

    A local file can have such a name.
    """
    path = os.fspath(path)
    scheme = _SCHEME.match(path)
    if scheme is None or is_url(path):
        return None
    name, schemes = _QUERY.sub("", _USER.sub("…@", path)), ", ".join(_SLASHES)
    kind = "a chain of URLs" if "::" in path else f"a URL by {scheme[1]}://"
    return (
        f"{name} is {kind}, which is not supported: vkssim reads files, and URLs by {schemes}, which need the extra [remote]"
        " (`pip install 'vkssim[remote]'`). Download the file and give its path"
    )


def redact_url(path: PathOrUrl) -> str:
    """Return a path or a URL in the form that may be shown: without user, password and query, which grant access.

    A part of the query's digest replaces the query, so that two queries stay different. Within this process, the name still
    opens the URL.
    """
    path = os.fspath(path)
    if not is_url(path):
        return path
    name = _USER.sub("…@", path)
    if path.startswith("https://"):  # other schemes have no queries: there, a question mark is part of the name
        name = _QUERY.sub(lambda query: f"?…{hashlib.sha256(query[0].encode()).hexdigest()[:8]}", name)
    if name != path:
        _whole[name] = path
    return name


def whole_url(url: str) -> str:
    """Return the URL that `redact_url` showed in this form, with its user, password and query."""
    return _whole.get(url, url)


def redact(text: str) -> str:
    """Return a text in which URLs have no users, passwords and queries."""
    return _QUERY.sub("?…", _USER.sub("…@", text))


def parent_of(path: PathOrUrl) -> PathOrUrl:
    """Return the folder of a file."""
    return os.fspath(path).partition("?")[0].rpartition("/")[0] if is_url(path) else Path(path).parent


def join(folder: PathOrUrl, name: str) -> str:
    """Return the path or URL of a name relative to a folder. A name relative to a URL always stays on that server."""
    return f"{os.fspath(folder).rstrip('/')}/{name}" if is_url(folder) else str(Path(folder) / name)


def suffix_of(path: PathOrUrl) -> str:
    """Return the file name's ending, in lower-case letters and with its dot."""
    return Path(os.fspath(path).partition("?")[0] if is_url(path) else path).suffix.lower()


def is_same_file(first: PathOrUrl, second: PathOrUrl) -> bool:
    """Return whether two names are of one file, which may have links, hard links, and names in other letter case."""
    first, second = as_path(first), as_path(second)
    if is_url(first) or is_url(second):
        return first == second
    try:
        if os.path.exists(first) and os.path.exists(second):
            return os.path.samefile(first, second)
        return os.path.normcase(os.path.realpath(first)) == os.path.normcase(os.path.realpath(second))
    except (OSError, ValueError):  # no file can have such a name
        return False
