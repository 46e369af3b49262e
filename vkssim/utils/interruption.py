"""Note signals that end a run at any time, and act on them only when no work is lost.

An exception from a signal handler may appear anywhere: in an import, in a lock, or in the middle of a file. So the command line
installs the handlers of this module, which only note the signal. The run ends at the next `check`, or at once while it waits in
`interruptible`. A second signal changes nothing, and a third ends the process at once. A signal that comes when only the output
is left to be written stops nothing.

Without a call of `listen`, as in the process of a program that uses the library, this module does nothing.
"""

from __future__ import annotations

import math
import os
import signal
import stat
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Any, TypeVar

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""The signals that end a run. Windows has no SIGHUP."""

_PATIENCE = 3  # the process ends at once at this signal

_POLL_INTERVAL_S = 0.5
"""The longest wait in one call, in seconds. Python runs handlers between two bytecodes: if a signal comes just before the main
thread begins to wait in the system, its handler runs only when that wait ends."""

Thing = TypeVar("Thing")


class Interruption(KeyboardInterrupt):
    """A signal that ends the run; `signal` is its number. Code that handles Ctrl-C also handles it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.signal = number


class _Signals:
    """The signal that has come so far, and whether the process may act on it at once."""

    def __init__(self) -> None:
        self.listening = False
        self.first: int | None = None
        self.count = 0
        self.already_reported = False
        self.waiting = False

    def come(self, number: int, _frame: FrameType | None) -> None:
        self.count += 1
        if self.count >= _PATIENCE:
            _end(number)
        if self.first is not None:
            return
        self.first = number
        if number == getattr(signal, "SIGHUP", None):
            _leave_terminal()
        if self.waiting:
            self.waiting, self.already_reported = False, True
            raise Interruption(number)


_signals = _Signals()
_unfinished: set[str] = set()


def listen() -> dict[int, object]:
    """Install the handlers, except for ignored signals (see `nohup`); return the earlier handlers. Main thread only."""
    global _signals
    _signals = _Signals()
    _signals.listening = True
    before: dict[int, object] = {}
    for number in SIGNALS:
        handler = signal.getsignal(number)
        if handler not in (signal.SIG_IGN, None):
            before[number] = handler
            signal.signal(number, _signals.come)
    return before


def ignore() -> None:
    """Ignore all signals, such as at the end of the interpreter, which would restore the system's handling of them."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def listening() -> Iterator[None]:
    """Call `listen` for the duration of the block, in the main thread; do nothing if the handlers are already installed."""
    if _signals.listening or not _in_main_thread():
        yield
        return
    before = listen()
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        _signals.listening = False


def check() -> None:
    """Raise Interruption if a signal came: once in the main thread, at every call in other threads."""
    if _signals.first is None or not _signals.listening:
        return
    if _in_main_thread():
        if _signals.already_reported:
            return
        _signals.already_reported = True
    raise Interruption(_signals.first)


@contextmanager
def interruptible() -> Iterator[None]:
    """Call `check`, and raise Interruption as soon as a signal comes. Use it to wait in the main thread."""
    if not _signals.listening or not _in_main_thread():
        yield
        return
    _signals.waiting = _signals.first is None
    try:
        check()
        yield
    finally:
        _signals.waiting = False


def take(queue: SimpleQueue[Thing], timeout_s: float = math.inf) -> Thing:
    """Return the next entry of a queue; raise Empty if none comes in time, and Interruption as soon as a signal comes.

    Such a queue has no lock in Python, so a handler may raise at any time while it waits.
    """
    until = time.monotonic() + timeout_s
    while True:
        left = until - time.monotonic()
        try:
            with interruptible():
                return queue.get(timeout=max(0.0, min(left, _POLL_INTERVAL_S)))
        except Empty:
            if left <= 0:
                raise


def wait_for(future: Future[Any], timeout_s: float = math.inf) -> bool:
    """Return whether a future is done in time. Raise Interruption as soon as a signal comes.

    The wait is not that of the future: a handler that raises within it can leave the lock of its condition released, and then
    a RuntimeError hides the signal.
    """
    done: SimpleQueue[None] = SimpleQueue()
    future.add_done_callback(lambda _: done.put(None))
    with suppress(Empty):
        take(done, timeout_s)
    return future.done()


def result_of(future: Future[Thing]) -> Thing:
    """Return the result of a future, however long that takes. Raise Interruption as soon as a signal comes."""
    wait_for(future)
    return future.result()


@contextmanager
def unfinished(path: str) -> Iterator[None]:
    """Remove a file if the process ends at once while the block runs."""
    _unfinished.add(path)
    try:
        yield
    finally:
        _unfinished.discard(path)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _end(number: int) -> None:
    for path in tuple(_unfinished):  # other threads go on
        with suppress(OSError):
            os.unlink(path)
    os._exit(128 + number)


def _leave_terminal() -> None:
    """Stop writing to a terminal that is gone: writing fails, and its error would hide the reason for which the run ends."""
    for descriptor in (1, 2):
        with suppress(OSError):
            if stat.S_ISCHR(os.fstat(descriptor).st_mode) and not os.isatty(descriptor):
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, descriptor)
                os.close(null)
