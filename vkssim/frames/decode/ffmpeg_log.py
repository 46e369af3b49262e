"""Listen to FFmpeg's own messages: its decoders report much damage nowhere else.

PyAV hands messages to Python by a callback that FFmpeg calls from any thread, frame threads included. So the callback is set
only while something is decoded here, and the one of before is restored afterwards. It takes the GIL for every message, before
it looks at the level, so that frame threads of any decoder of the process wait for the GIL. PyAV frees a decoder while it holds
the GIL, and FFmpeg then waits for the threads: both wait for ever. So the threads are stopped first, by `park` and `parked`.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

_HARMLESS = ("Unknown HEVC profile", "packed B-frames", "store B-frames")
"""Parts of messages about what is unusual, and no damage."""

_CONCEALING = "concealing "
"""What error concealment says of itself, at a level of which much else is harmless."""

_TELLING = ("Skipping invalid undecodable NALU",)
"""Parts of warnings that mean damage, as every error does."""

Message = tuple[int, str, str]
"""Level, name of who says it, text."""


class _Listener:
    """Collect the messages of all threads while anybody listens, and count the worrying ones of each decoder."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # reentrant, since a decoder that is freed meanwhile calls `leave`
        self._listeners = 0
        self._worrying: Counter[str] = Counter()
        self._messages: list[Message] = []
        self._capture: Any = None
        self._before: tuple[int | None, bool] = None, True

    def begin(self) -> None:
        from av import logging

        with self._lock:
            self._listeners += 1
            if self._listeners > 1:
                return
            self._before = logging.get_level(), logging.get_skip_repeated()
            self._capture = logging.Capture(local=False)
            self._messages = self._capture.__enter__()
            logging.set_skip_repeated(False)
            logging.set_level(logging.INFO)

    def end(self) -> None:
        with self._lock:
            self._listeners -= 1
            if not self._listeners:
                self._stop()

    def stop(self) -> None:
        """Listen no more, whoever still does: in a fork, and when the interpreter ends."""
        if self._listeners:
            self._listeners = 0
            self._stop()

    def worrying(self, decoder: str) -> int:
        if self._messages:
            with self._lock:
                heard = self._messages[:]
                self._worrying.update(name for level, name, text in heard if is_worrying(level, text))
                del self._messages[: len(heard)]  # when they are counted; other threads may add messages meanwhile
        return self._worrying[decoder]

    def _stop(self) -> None:
        from av import logging

        level, skip_repeated = self._before
        logging.set_level(level)
        logging.set_skip_repeated(skip_repeated)
        self._capture.__exit__(None, None, None)
        self._messages = []


_listener = _Listener()


def listen() -> None:
    """Begin to listen; each call is answered by one of `leave`."""
    _listener.begin()


def leave() -> None:
    """Listen no more, where nobody else does."""
    _listener.end()


@contextmanager
def parked(*codecs: Any) -> Iterator[None]:
    """Stop the threads of decoders at the end of the block, after which they may be freed."""
    process = os.getpid()
    try:
        yield
    finally:
        park(codecs, process)


def park(codecs: Iterable[Any], process: int) -> None:
    """Stop the threads of decoders of a process; in a fork of it there are none, and FFmpeg would wait for them for ever."""
    if os.getpid() == process:
        for codec in codecs:
            codec.flush_buffers()  # without the GIL, unlike freeing


def worrying_messages(decoder: str) -> int:
    """Return how many messages decoders of that name gave so far that may mean damage, but for those heard by `hearing`."""
    return _listener.worrying(decoder)


@contextmanager
def hearing() -> Iterator[list[Message]]:
    """Give the messages of this thread, which is the one that decodes where a decoder has no threads of its own."""
    from av.logging import Capture

    with Capture() as messages:
        yield messages


def is_worrying(level: int, text: str) -> bool:
    """Return whether a message may mean damage."""
    from av import logging

    return text.startswith(_CONCEALING) or (level <= logging.WARNING and not any(part in text for part in _HARMLESS))


def is_damage(level: int, text: str) -> bool:
    """Return whether a message means damage: errors, and what conceals them."""
    from av import logging

    is_serious = level <= logging.ERROR or any(part in text for part in _TELLING)
    return is_worrying(level, text) and (is_serious or text.startswith(_CONCEALING))


def _in_child() -> None:
    global _listener
    before, _listener = _listener, _Listener()
    before.stop()


atexit.register(lambda: _listener.stop())
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
