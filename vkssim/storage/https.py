"""Check every answer by https: it must have the range that was requested, from one version of the file."""

from __future__ import annotations

import errno
import re
import threading
from typing import Any

_RANGE = re.compile(r"bytes=(\d+)-(\d+)")
_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)")
_VERSION = ("ETag", "Last-Modified")


class Versions:
    """Hold, for each URL, the version that its server named with the file's size. All ranges must be of this version."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[tuple[str, str], str] = {}

    def note(self, url: str, headers: Any) -> None:
        """Store the version that a server names for a whole file."""
        with self._lock:
            for name in _VERSION:
                self._known.pop((url, name), None)
                if name in headers:
                    self._known[url, name] = headers[name]

    def changed(self, url: str, headers: Any) -> str | None:
        """Return the header in which an answer with a range names another version; None if the version is the same."""
        with self._lock:
            for name in _VERSION:
                found = headers.get(name)
                if found is not None and self._known.setdefault((url, name), found) != found:
                    return name
        return None


def watch(versions: Versions) -> Any:
    """Return the trace of aiohttp that checks every answer before its body is read."""
    import aiohttp

    async def check(_session: Any, _context: Any, answer: Any) -> None:
        problem = _problem(versions, answer)
        if problem is not None:
            answer.response.close()
            raise OSError(errno.EIO, problem)

    trace = aiohttp.TraceConfig()
    trace.on_request_end.append(check)
    return trace


def _problem(versions: Versions, answer: Any) -> str | None:
    response, url = answer.response, str(answer.url)
    if response.status >= 400:
        return None
    asked = _RANGE.fullmatch(answer.headers.get("Range", ""))
    if asked is None:
        versions.note(url, response.headers)
        return None
    first, last = int(asked[1]), int(asked[2])
    if response.status != 206:
        return "the server does not support range requests, which vkssim needs"
    given = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
    length = response.content_length
    if given is None or int(given[1]) != first or int(given[2]) > last or length != int(given[2]) - first + 1:
        said = response.headers.get("Content-Range", "none")
        return f"the server was asked for bytes {first}-{last} and sent others: its Content-Range is {said!r:.60}"
    changed = versions.changed(url, response.headers)
    if changed is not None:
        return f"the file was changed on its server while it was read: its {changed} differs"
    return None
