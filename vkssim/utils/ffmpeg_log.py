"""Listen to FFmpeg's messages, because its decoders report most damage in no other way.

PyAV passes messages to Python through a callback that FFmpeg calls from any thread, including frame threads. So the callback is
set only while a decoder needs it, and the previous callback is restored afterwards. It takes the GIL for each message, even if
that is below the level, so a frame thread may wait for the GIL. PyAV frees a decoder while it holds the GIL, and FFmpeg then
waits for the threads: a deadlock. So `park` and `parked` stop the threads first.

A message comes with its level, the name of its decoder and its text. Messages that a decoder logs in the thread that called it
are collected there, by `hearing`. Threads of FFmpeg or of a driver belong to no caller, so decoders that may have any get a
`Channel`.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

_HARMLESS = ("Unknown profile bitstream", "packed B-frames")
"""Parts of messages about something unusual that is no damage."""

_CONCEALING = "concealing "
"""The start of the messages of error concealment. Other messages of their level are mostly harmless."""

_SERIOUS = ("Skipping invalid undecodable NALU",)
"""Parts of warnings that mean damage. Every error means damage."""

Message = tuple[int, str, str]
"""Level, name of the sender, text."""

_STEP = 8  # between two of FFmpeg's levels

_HARDWARE = _STEP - 1
"""The number of the channels of all hardware decoders, which log nearly everything in the thread that calls them."""


@dataclass(eq=False)
class Channel:
    """The messages of the threads of one decoder. FFmpeg adds `number` to the level of each message of this decoder."""

    decoder: str
    """FFmpeg's name of the decoder."""
    number: int
    """A number below the step between two levels. Decoders that are not ours, such as those that probe a file, have 0."""
    messages: list[tuple[int, str]] = field(default_factory=list)
    """Level and text of the messages since the last `take`."""

    @property
    def options(self) -> dict[str, str]:
        """Return the options of the decoder. Its threads have them as well."""
        return {"log_level_offset": str(self.number)}

    def take(self) -> list[tuple[int, str]]:
        """Return the new messages, without those in `hearing` blocks."""
        _listener.distribute()
        taken, self.messages = self.messages, []
        return taken


class _Listener:
    """A collector of the messages of all threads, which passes each on to the channels of its decoder."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # reentrant, because a decoder that is freed meanwhile calls `leave`
        self._listeners = 0
        self._channels: list[Channel] = []
        self._messages: list[Message] = []
        self._capture: Any = None
        self._before: tuple[int | None, bool] = None, True

    def listen(self) -> None:
        """Start to listen. Each call needs one call of `leave`."""
        from av import logging

        with self._lock:
            self._listeners += 1
            if self._listeners > 1:
                return
            self._before = logging.get_level(), logging.get_skip_repeated()
            self._capture = logging.Capture(local=False)
            self._messages = self._capture.__enter__()
            logging.set_skip_repeated(False)
            logging.set_level(logging.INFO + _STEP - 1)

    def open_channel(self, decoder: str, *, hardware: bool = False) -> Channel | None:
        """Return a new channel for a decoder of that name, which `leave` closes; None if all numbers are in use.

        Decoders with threads have a number of their own, so that damage of one clip is not reported for another.
        """
        with self._lock:
            used = {channel.number for channel in self._channels if channel.decoder == decoder}
            number = _HARDWARE if hardware else next((number for number in range(1, _HARDWARE) if number not in used), None)
            if number is None:
                return None
            channel = Channel(decoder, number)
            self._channels.append(channel)
            return channel

    def leave(self, channel: Channel | None = None) -> None:
        """Close a channel, if one is given, and stop to listen unless other decoders still listen."""
        with self._lock:
            if channel in self._channels:  # not after `stop`
                self._channels.remove(channel)
            self._listeners -= 1
            if not self._listeners:
                self._stop()

    def stop(self) -> None:
        """Stop for all listeners: at the end of the interpreter, and in a fork, which has no thread to release the lock."""
        if self._listeners:
            self._stop()
        self._lock, self._listeners = threading.RLock(), 0
        self._channels.clear()

    def distribute(self) -> None:
        """Pass the new messages on to their channels."""
        if not self._messages:
            return

        with self._lock:
            messages = self._messages[:]
            del self._messages[: len(messages)]  # other threads may have added messages
            for level, name, text in messages:
                for channel in self._channels:
                    if (channel.decoder, channel.number) == (name, level % _STEP):
                        channel.messages.append((level, text))

    def _stop(self) -> None:
        from av import logging

        level, skip_repeated = self._before
        logging.set_level(level)
        logging.set_skip_repeated(skip_repeated)
        self._capture.__exit__(None, None, None)
        self._messages = []


_listener = _Listener()
listen, leave, open_channel = _listener.listen, _listener.leave, _listener.open_channel


@contextmanager
def parked(*codecs: Any) -> Iterator[None]:
    """Call `park` at the end of the block, so that the decoders can be freed."""
    process = os.getpid()
    try:
        yield
    finally:
        park(codecs, process)


def park(codecs: Iterable[Any], process: int) -> None:
    """Stop the threads of decoders of a process. A fork has no such threads, and FFmpeg would wait for them forever."""
    if os.getpid() == process:
        for codec in codecs:
            codec.flush_buffers()  # without the GIL, unlike freeing


@contextmanager
def hearing() -> Iterator[list[Message]]:
    """Collect the messages of this thread, which are all messages of a decoder without threads, and of a demuxer."""
    from av.logging import Capture

    with Capture() as messages:
        yield messages


def is_worrying(level: int, text: str) -> bool:
    """Return whether a message may mean damage."""
    from av import logging

    is_warning = level < logging.WARNING + _STEP  # it may have the number of a channel
    return text.startswith(_CONCEALING) or (is_warning and not any(words in text for words in _HARMLESS))


def is_damage(level: int, text: str) -> bool:
    """Return whether a message means damage: an error, or its concealment."""
    from av import logging

    is_serious = level < logging.ERROR + _STEP or any(words in text for words in _SERIOUS)
    return is_worrying(level, text) and (is_serious or text.startswith(_CONCEALING))


atexit.register(_listener.stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_listener.stop)
