"""Inputs by URL, by way of fsspec: which names are URLs, and what is read of them, always a range of known length.

Whatever goes wrong is an OSError whose `strerror` says why, as of a local file; a library that is missing is an OptionError.
What fails for a moment is asked for again, see `retrying`.
"""

from __future__ import annotations

import errno
import hashlib
import io
import logging
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, BinaryIO

from ..errors import VkssimError
from ..utils.extras import need
from .https_answers import Versions, watch
from .retrying import retried

LIBRARIES = {"file": "fsspec", "gs": "gcsfs", "https": "aiohttp", "s3": "s3fs"}
"""The schemes that make a URL, and what opens each. Plain http is none: anybody on the way could change what is scored."""

STREAM_BLOCK = 1 << 22
"""Bytes fetched at a time of what is read from its beginning to its end; the next ones meanwhile."""

_DESCRIPTION_BLOCK = 1 << 16
_BLOCKS = 8  # kept of a file: the parts of a container are not quite in order
_BUFFER = 1 << 16
_SECONDS = 30  # that https may take to connect, or send nothing
_LONGEST_REASON = 200
_SLASHES = tuple(f"{scheme}://" for scheme in LIBRARIES)
_LOGGING = ("aiobotocore", "aiohttp", "botocore", "fsspec", "gcsfs", "s3fs")
_TAGS = ("ETag", "etag", "Last-Modified", "LastModified", "mtime", "created")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_USER = re.compile(r"(?<=://)[^/\s@]*@")
_QUERY = re.compile(r"\?(?!…)[^\s'\"]+")

_whole: dict[str, str] = {}
_versions = Versions()


def is_url(path: str | os.PathLike[str]) -> bool:
    """Return whether a name is a URL; all others are paths, whatever they look like."""
    return str(path).startswith(_SLASHES)


def has_other_scheme(path: str) -> bool:
    """Return whether a name looks like a URL of a scheme that is not read; a file may have such a name."""
    return _SCHEME.match(path) is not None and not is_url(path)


def other_scheme(path: str) -> str:
    """Return what to say of such a name."""
    schemes = ", ".join(_SLASHES)
    name = _QUERY.sub("", _USER.sub("…@", path))
    return (
        f"{name} is not read: vkssim reads files, and URLs by {schemes}, which need the extra [remote]"
        " (`pip install 'vkssim[remote]'`). Download the clip and give the file"
    )


def named(path: str | os.PathLike[str]) -> str:
    """Return a path or a URL as it may be shown and written: without user, password and query, which grant access.

    Of a query part of its digest stays, so that two of them are two. Within this process the name still opens the URL.
    """
    path = os.fspath(path)
    if not is_url(path):
        return path
    name = _USER.sub("…@", path)
    if path.startswith("https://"):  # no other has queries: a question mark is part of a name there
        name = _QUERY.sub(lambda query: f"?…{hashlib.sha256(query[0].encode()).hexdigest()[:8]}", name)
    if name != path:
        _whole[name] = path
    return name


def local_path(url: str) -> str | None:
    """Return the path of a file on this machine that a URL names, None for any other URL."""
    if not url.startswith("file://"):
        return None
    path: str = filesystem_of(url)[1]
    return path


def size(url: str) -> int:
    """Return bytes of a file. Raises OSError where it is no ordinary one, or nobody says."""
    return state(url)[0]


def state(url: str) -> tuple[int, str | None]:
    """Return bytes of a file, and what its server says of its version: the first there is of an ETag and a time of change."""
    with _os_errors():
        filesystem, path = _opened(url)
        info = retried(lambda: filesystem.info(path))
        if info.get("type", "file") != "file":
            raise OSError(errno.EISDIR, f"it is no ordinary file, but {info['type']}")
        if info.get("size") is None:
            raise OSError(errno.EIO, "the server does not say how long it is")
        return int(info["size"]), next((str(info[tag]) for tag in _TAGS if info.get(tag)), None)


def read(url: str, start: int, stop: int) -> bytes:
    """Return the bytes of a range, fewer where the file ends before. Raises OSError."""
    if start >= stop:
        return b""
    with _os_errors():
        filesystem, path = _opened(url)
        return bytes(retried(lambda: filesystem.cat_file(path, start=start, end=stop)))


def read_ranges(url: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
    """`read` of several ranges at once, where the server takes several requests at a time."""
    with _os_errors():
        filesystem, path = _opened(url)
        starts, stops = (list(places) for places in zip(*ranges, strict=True))
        parts: list[bytes] = retried(lambda: filesystem.cat_ranges([path] * len(ranges), starts, stops, on_error="raise"))
        return parts


def open_url(url: str) -> io.BufferedReader:
    """Return a file to be read in order, with some seeking: the next block is on its way while one is used. Raises OSError."""
    return _buffered(url, "background", STREAM_BLOCK)


def open_description(path: str) -> BinaryIO:
    """Return a local file, or one by URL of which only small parts here and there are read. Raises OSError."""
    return _buffered(path, "blockcache", _DESCRIPTION_BLOCK) if is_url(path) else open(path, "rb")


def _buffered(url: str, kind: str, block: int) -> io.BufferedReader:
    caching = need("fsspec.caching", "remote", "a URL")
    length = size(url)
    kept = caching.caches[kind](block, lambda start, stop: read(url, start, min(stop, length)), length, maxblocks=_BLOCKS)
    return io.BufferedReader(_UrlFile(kept, length), _BUFFER)


class _UrlFile(io.RawIOBase):
    """A file over one of fsspec's caches."""

    def __init__(self, kept: Any, length: int) -> None:
        self._kept = kept
        self._length = length
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._position = max(0, offset + (0, self._position, self._length)[whence])
        return self._position

    def readinto(self, buffer: Any) -> int:
        data = self._kept._fetch(self._position, min(self._position + len(buffer), self._length))
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)


# -- file systems -----------------------------------------------------------------------------------------------------


def filesystem_of(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, and what it calls the file. Raises OptionError where its library is not installed."""
    scheme = url.partition("://")[0]
    filesystem = _filesystem(scheme, os.getpid())
    return filesystem, filesystem._strip_protocol(url)


def _opened(url: str) -> tuple[Any, str]:
    return filesystem_of(_whole.get(url, url))


@cache
def _filesystem(scheme: str, _process: int) -> Any:
    """Return the file system of all threads; a forked child, which has not its threads, gets its own."""
    for library in _LOGGING:
        logging.getLogger(library).addHandler(logging.NullHandler())  # or they print tracebacks of what is an error here
    fsspec = need("fsspec", "remote", f"{scheme}://")
    need(LIBRARIES[scheme], "remote", f"{scheme}://")
    options = _https_options() if scheme == "https" else {}
    return fsspec.filesystem(scheme, skip_instance_cache=True, use_listings_cache=False, **options)


def _https_options() -> dict[str, Any]:
    """Return what keeps a server from sending vkssim elsewhere, or more than was asked for."""
    import aiohttp

    trace = watch(_versions)
    trace.on_request_redirect.append(_refuse_redirect)
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=_SECONDS, sock_read=_SECONDS)
    return {"client_kwargs": {"trace_configs": [trace], "timeout": timeout, "auto_decompress": False, "trust_env": True}}


async def _refuse_redirect(_session: Any, _context: Any, answer: Any) -> None:
    target = scrubbed(answer.response.headers.get("Location", "elsewhere"))
    answer.response.close()
    raise OSError(errno.EREMOTE, f"the server redirects to {target}, which nobody named")


# -- errors -----------------------------------------------------------------------------------------------------------


@contextmanager
def _os_errors() -> Iterator[None]:
    try:
        yield
    except VkssimError:
        raise
    except Exception as error:  # of whatever library the file system is made
        raise os_error(error) from None


def os_error(error: Exception) -> OSError:
    """Return an error of a file system as one of the system, whose `strerror` says why, without what grants access."""
    while isinstance(error, OSError) and isinstance(error.__cause__, Exception):  # a server's 403 is no missing file
        error = error.__cause__
    number = getattr(error, "errno", None)
    if isinstance(error, FileNotFoundError):
        return OSError(number or errno.ENOENT, "there is no such file")
    reason = error.strerror if isinstance(error, OSError) and error.strerror else f"{type(error).__name__}: {error}"
    return OSError(number or errno.EIO, scrubbed(" ".join(reason.split()))[:_LONGEST_REASON].strip(" :"))


def scrubbed(text: str) -> str:
    """Return a text without users, passwords and queries of the URLs in it."""
    return _QUERY.sub("?…", _USER.sub("…@", text))
