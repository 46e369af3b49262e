"""Read files by URL, through fsspec, in ranges of known length.

Every failure is an OSError whose `strerror` gives the reason, as for a local file; a missing library is an OptionError. A
request that fails for a moment is repeated. Every answer by https is checked: it must have the requested range, from one
version of the file.
"""

from __future__ import annotations

import errno
import io
import logging
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from typing import Any, TypeVar

from ..errors import VkssimError
from ..utils.interruption import check
from ..utils.version import require_extra
from .location import LIBRARIES, redact, whole_url

STREAM_BLOCK = 1 << 22
"""Bytes per request for a file that is read in order; the next block is fetched meanwhile."""

_BLOCKS = 8  # cached for each file: the data of a container is not strictly in order
_BUFFER = 1 << 16
_LONGEST_REASON = 200
_LOGGING = ("aiobotocore", "aiohttp", "botocore", "fsspec", "gcsfs", "s3fs")
_TAGS = ("ETag", "etag", "Last-Modified", "LastModified", "mtime", "created")


def size(url: str) -> int:
    """Return the size of a file in bytes. Raises OSError if it is not an ordinary file, or if its size is unknown."""
    return state(url)[0]


def state(url: str) -> tuple[int, str | None]:
    """Return the size of a file in bytes, and its version: the first of an ETag and a change time that the server gives."""
    with _os_errors():
        filesystem, path = filesystem_of(url)
        info = retried(lambda: filesystem.info(path))
        if info.get("type", "file") != "file":
            raise OSError(errno.EISDIR, f"it is not an ordinary file but a {info['type']}")
        if info.get("size") is None:
            raise OSError(errno.EIO, "the server does not give its size")
        return int(info["size"]), next((str(info[tag]) for tag in _TAGS if info.get(tag)), None)


def read(url: str, start: int, stop: int) -> bytes:
    """Return the bytes of a range; fewer if the file ends before. Raises OSError."""
    if start >= stop:
        return b""
    with _os_errors():
        filesystem, path = filesystem_of(url)
        return bytes(retried(lambda: filesystem.cat_file(path, start=start, end=stop)))


def read_ranges(url: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
    """Return the bytes of several ranges, requested in parallel if the server allows it; see `read`."""
    with _os_errors():
        filesystem, path = filesystem_of(url)
        starts, stops = (list(places) for places in zip(*ranges, strict=True))
        parts: list[bytes] = retried(lambda: filesystem.cat_ranges([path] * len(ranges), starts, stops, on_error="raise"))
        return parts


def open_url(url: str) -> io.BufferedReader:
    """Return a file for reading in order, with some seeking. The next block is fetched while one is used. Raises OSError."""
    caching = require_extra("fsspec.caching", "remote", "a URL")
    length = size(url)
    kept = caching.caches["background"](
        STREAM_BLOCK, lambda start, stop: read(url, start, min(stop, length)), length, maxblocks=_BLOCKS
    )
    return io.BufferedReader(_UrlFile(kept, length), _BUFFER)


class _UrlFile(io.RawIOBase):
    """A cache of fsspec as a file."""

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
    """Return the file system of a URL, and its name for the file. Raises OptionError if its library is not installed."""
    whole = whole_url(url)
    filesystem = _filesystem(whole.partition("://")[0], os.getpid())
    return filesystem, filesystem._strip_protocol(whole)


@cache
def _filesystem(scheme: str, _process: int) -> Any:
    """Return the file system that all threads share. A forked child gets its own, because threads do not survive a fork."""
    for library in _LOGGING:
        # Otherwise they print tracebacks of errors that vkssim reports itself.
        logging.getLogger(library).addHandler(logging.NullHandler())
    fsspec = require_extra("fsspec", "remote", f"{scheme}://")
    require_extra(LIBRARIES[scheme], "remote", f"{scheme}://")
    options = https_options() if scheme == "https" else {}
    return fsspec.filesystem(scheme, skip_instance_cache=True, use_listings_cache=False, **options)


# -- https ------------------------------------------------------------------------------------------------------------

_RANGE = re.compile(r"bytes=(\d+)-(\d+)")
_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)")
_VERSION = ("ETag", "Last-Modified")
_TIMEOUT_S = 30  # to connect, and between two reads
_MAX_URLS = 1024  # whose versions are known


def https_options() -> dict[str, Any]:
    """Return the options that check every answer before its body is read, and refuse redirects."""
    import aiohttp

    trace = aiohttp.TraceConfig()
    trace.on_request_end.append(_check)
    trace.on_request_redirect.append(_refuse_redirect)
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=_TIMEOUT_S, sock_read=_TIMEOUT_S)
    return {"client_kwargs": {"trace_configs": [trace], "timeout": timeout, "auto_decompress": False, "trust_env": True}}


async def _check(_session: Any, _context: Any, answer: Any) -> None:
    problem = _problem(answer)
    if problem is not None:
        answer.response.close()
        raise OSError(errno.EIO, problem)


async def _refuse_redirect(_session: Any, _context: Any, answer: Any) -> None:
    target = redact(answer.response.headers.get("Location", "elsewhere"))
    answer.response.close()
    raise OSError(errno.EREMOTE, f"the server redirects to {target}, which is not an input")


def _problem(answer: Any) -> str | None:
    """Return the reason for which an answer cannot be used: it must have the requested range, of the known version."""
    response = answer.response
    if response.status >= 400:
        return None
    requested = _RANGE.fullmatch(answer.headers.get("Range", ""))
    versions = _versions(str(answer.url))
    if requested is None:  # the server names the version of the whole file
        versions.clear()
        versions.update({name: response.headers[name] for name in _VERSION if name in response.headers})
        return None
    first, last = int(requested[1]), int(requested[2])
    if response.status != 206:
        return "the server does not support range requests, which vkssim needs"
    content = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
    length = response.content_length
    if content is None or int(content[1]) != first or int(content[2]) > last or length != int(content[2]) - first + 1:
        stated = response.headers.get("Content-Range", "none")
        return f"bytes {first}-{last} were requested, and the server sent a different range: Content-Range is {stated!r:.60}"
    for name in _VERSION:
        found = response.headers.get(name)
        if found is not None and versions.setdefault(name, found) != found:
            return f"the file was changed on its server while it was read: its {name} differs"
    return None


@lru_cache(_MAX_URLS)
def _versions(_url: str) -> dict[str, str]:
    """Return the version of a file as its server named it, by header; `_problem` fills it."""
    return {}


# -- errors -----------------------------------------------------------------------------------------------------------


@contextmanager
def _os_errors() -> Iterator[None]:
    try:
        yield
    except VkssimError:
        raise
    except Exception as error:  # each library of a file system has its own errors
        raise os_error(error) from None


def os_error(error: Exception) -> OSError:
    """Return an error of a file system as an OSError, whose `strerror` gives the reason without any credentials."""
    # A 403 of a server does not mean a missing file.
    while isinstance(error, OSError) and isinstance(error.__cause__, Exception):
        error = error.__cause__
    number = getattr(error, "errno", None)
    if isinstance(error, FileNotFoundError):
        return OSError(number or errno.ENOENT, "no such file")
    reason = error.strerror if isinstance(error, OSError) and error.strerror else f"{type(error).__name__}: {error}"
    return OSError(number or errno.EIO, redact(" ".join(reason.split()))[:_LONGEST_REASON].strip(" :"))


_PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Pauses in seconds between one try and the next. There is one try more than pauses."""

_TRANSIENT_STATUSES = (429, 500, 502, 503, 504)
_TRANSIENT_ERRORS = ("ClientConnectionError", "ClientPayloadError")  # of aiohttp, which need not be installed
_CHECK_INTERVAL_S = 0.1

Result = TypeVar("Result")


def retried(ask: Callable[[], Result]) -> Result:
    """Return the result of `ask`. If it fails for a moment, call it again after a pause, a few times.

    Raises the error of the last try. Any other error is raised at once.
    """
    for pause in _PAUSES:
        try:
            return ask()
        except Exception as error:
            if not is_transient(error):
                raise
        _wait(pause)
    return ask()


def is_transient(error: BaseException | None) -> bool:
    """Return whether the same request may succeed later: after an overload, a lost connection, or a timeout."""
    while error is not None:
        if getattr(error, "status", None) in _TRANSIENT_STATUSES or isinstance(error, ConnectionError | TimeoutError):
            return True
        if any(kind.__name__ in _TRANSIENT_ERRORS for kind in type(error).__mro__):
            return all(kind.__name__ != "ClientConnectorCertificateError" for kind in type(error).__mro__)
        error = error.__cause__
    return False


def _wait(seconds: float) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        check()
        time.sleep(min(left, _CHECK_INTERVAL_S))
