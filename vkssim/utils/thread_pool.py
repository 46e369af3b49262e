"""Run work that may never end on threads, and keep the resources of these threads open.

A thread cannot be killed. A thread that reads from a lost network share hangs until the share is back, and so does the caller
that waits for it. So the wait for threads has a time limit. After it, the threads are left behind, their resources stay open,
and the process does not wait for them at its end.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from ..host.closing import Closable as Closable  # also for those who may not import host
from ..host.closing import closing_on_error as closing_on_error

END_TIMEOUT_S = 30.0
"""How long `close` waits for threads that have no more work, in seconds."""

_MARK = "_vkssim_still_in_use"

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Call = tuple[Future[Any], Callable[[], Any]]


Resource = TypeVar("Resource", bound=Closable)


class ThreadPool:
    """A pool of up to `threads` threads. It works like concurrent.futures, except for `close`."""

    def __init__(self, threads: int, name: str) -> None:
        self._max_threads = threads
        self._name = name
        self._threads: list[threading.Thread] = []
        self._starting = threading.Lock()  # several threads may submit jobs
        self._jobs: SimpleQueue[Call | None] = SimpleQueue()
        self._ended: SimpleQueue[threading.Thread] = SimpleQueue()
        self._process = os.getpid()

    def submit(
        self, function: Callable[Arguments, Result], *arguments: Arguments.args, **options: Arguments.kwargs
    ) -> Future[Result]:
        """Let a thread call a function, and return the future of its result."""
        future: Future[Result] = Future()
        self._jobs.put((future, lambda: function(*arguments, **options)))
        with self._starting:
            if len(self._threads) < self._max_threads:
                thread = threading.Thread(target=self._work, name=f"{self._name}-{len(self._threads)}", daemon=True)
                self._threads.append(thread)
                thread.start()
        return future

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            _do(*job)
            del job  # otherwise an idle thread would keep the job's objects alive
        self._ended.put(threading.current_thread())

    def close(self, *, cancel: bool = True) -> bool:
        """Wait for all jobs, less those that have not begun if `cancel`; return False if a thread did not end in time.

        A forked process does not have the threads: it waits for nothing, and what they used may be in any state.
        """
        if os.getpid() != self._process:
            return False
        with suppress(Empty):
            while cancel and (job := self._jobs.get_nowait()) is not None:
                job[0].cancel()
        for _ in self._threads:
            self._jobs.put(None)
        until = time.monotonic() + END_TIMEOUT_S
        # Only a thread that ends is joined: if a signal handler raises within `Thread.join`, Python 3.11 and 3.12 take the
        # thread for ended (https://github.com/python/cpython/issues/90882).
        with suppress(Empty):
            while self._threads:
                thread = self._ended.get(timeout=max(0.0, until - time.monotonic()))
                thread.join()
                self._threads.remove(thread)
        return not self._threads


def run_in_thread(name: str, function: Callable[[], Result]) -> Future[Result]:
    """Call a function on a thread of its own, for which nothing waits at its end, and return the future of its result."""
    future: Future[Result] = Future()
    threading.Thread(target=_do, args=(future, function), name=name, daemon=True).start()
    return future


def _do(future: Future[Any], call: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = call()
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)


# -- resources of threads that are left behind ------------------------------------------------------------------------

_left_open: list[object] = []


def leave_open(resource: object) -> None:
    """Keep a resource open until the process ends, because a thread may still use it."""
    _left_open.append(resource)


def mark_in_use(error: BaseException) -> None:
    """Mark the error that ends a run: the run left a thread behind. See `close_at_end`."""
    setattr(error, _MARK, True)


def is_in_use(error: BaseException | None) -> bool:
    """Return True for the error of a run that left a thread behind."""
    return getattr(error, _MARK, False)


def close_at_end(stack: ExitStack, resource: Resource) -> Resource:
    """Let a stack close a resource, unless the error that unwinds the stack says that a thread still uses it. Return it."""

    def close(_kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None) -> None:
        if is_in_use(error):
            leave_open(resource)
        else:
            resource.close()

    stack.push(close)
    return resource
