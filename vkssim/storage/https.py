"""Options of https, and a check of every answer: it must have the requested range, from one version of the file."""

from __future__ import annotations

import errno
import re
from collections import OrderedDict
from typing import Any

from .location import redact

_RANGE = re.compile(r"bytes=(\d+)-(\d+)")
_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)")
_VERSION = ("ETag", "Last-Modified")
_SECONDS = 30  # timeout to connect, and between two reads


MAX_URLS = 1024
"""The number of files whose versions are known. The version of the file that was read least recently is forgotten first."""

_known: OrderedDict[str, dict[str, str]] = OrderedDict()
"""The versions of files by header, as their servers named them, by URL. Only the thread of fsspec's event loop uses it."""


def options() -> dict[str, Any]:
    """Return the options that check every answer before its body is read, and refuse redirects."""
    import aiohttp

    trace = aiohttp.TraceConfig()
    trace.on_request_end.append(_check)
    trace.on_request_redirect.append(_refuse_redirect)
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=_SECONDS, sock_read=_SECONDS)
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
    response, url = answer.response, str(answer.url)
    if response.status >= 400:
        return None
    requested = _RANGE.fullmatch(answer.headers.get("Range", ""))
    if requested is None:  # the server names the version of the whole file
        _known[url] = {name: response.headers[name] for name in _VERSION if name in response.headers}
        _versions_of(url)
        return None
    first, last = int(requested[1]), int(requested[2])
    if response.status != 206:
        return "the server does not support range requests, which vkssim needs"
    content = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
    length = response.content_length
    if content is None or int(content[1]) != first or int(content[2]) > last or length != int(content[2]) - first + 1:
        stated = response.headers.get("Content-Range", "none")
        return f"bytes {first}-{last} were requested, and the server sent a different range: Content-Range is {stated!r:.60}"
    versions = _versions_of(url)
    for name in _VERSION:
        found = response.headers.get(name)
        if found is not None and versions.setdefault(name, found) != found:
            return f"the file was changed on its server while it was read: its {name} differs"
    return None


def _versions_of(url: str) -> dict[str, str]:
    """Return the known versions of a file, which was read just now, and forget that of another file if there are too many."""
    versions = _known.setdefault(url, {})
    _known.move_to_end(url)
    if len(_known) > MAX_URLS:
        _known.popitem(last=False)
    return versions
