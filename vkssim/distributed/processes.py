"""The engine of one machine: a process for each device."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import Connection

from ..interruption import SIGNALS
from .pool import Engine, Seat, WorkerDiedError
from .task import Done, Task, WorkerSpec
from .worker import Worker

_SPAWN = multiprocessing.get_context("spawn")  # a fork cannot use Vulkan
_worker: Worker | None = None


def _begin(spec: WorkerSpec, leash: Connection) -> None:
    global _worker
    for number in SIGNALS:  # a terminal sends them to all; the parent decides
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, args=[leash], daemon=True).start()
    _worker = Worker(spec)


def _end_with_parent(leash: Connection) -> None:
    leash.poll(None)  # nothing is ever sent: it is closed, by the parent or by its end
    os._exit(1)


@contextmanager
def _held_back() -> Iterator[None]:
    """Hold back the signals that end a run: a process that is started meanwhile does not hear them even before `_begin`."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows has none to speak of
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _do(task: Task) -> Done:
    assert _worker is not None
    return _worker.do(task)


class ProcessSeat(Seat):
    """A worker in a process of its own."""

    def __init__(self, spec: WorkerSpec) -> None:
        self.label = spec.label
        self._spec = spec
        self._worked = False
        self._open()

    def _open(self) -> None:
        held, self._leash = _SPAWN.Pipe(duplex=False)
        self._executor = ProcessPoolExecutor(1, _SPAWN, _begin, (self._spec, held))

    def submit(self, task: Task) -> Future[Done]:
        """See Seat."""
        outcome: Future[Done] = Future()
        try:
            with _held_back():
                inner = self._executor.submit(_do, task)
        except BrokenProcessPool as error:
            outcome.set_exception(self._died(error))
        else:
            inner.add_done_callback(lambda future: self._pass_on(future, outcome))
        return outcome

    def _pass_on(self, inner: Future[Done], outer: Future[Done]) -> None:
        if inner.cancelled():  # the seat is being closed
            outer.cancel()
            return
        error = inner.exception()
        if isinstance(error, BrokenProcessPool):
            outer.set_exception(self._died(error))
            return
        self._worked = True
        if error is not None:
            outer.set_exception(error)
        else:
            outer.set_result(inner.result())

    def _died(self, error: BrokenProcessPool) -> WorkerDiedError:
        hint = "" if self._worked else '; a script that starts processes does so under `if __name__ == "__main__":`'
        return WorkerDiedError(f"{error}{hint}")

    def renew(self) -> None:
        """See Seat."""
        self.close()
        self._open()

    def close(self) -> None:
        """See Seat."""
        self._leash.close()
        self._executor.shutdown(wait=True, cancel_futures=True)


class Processes(Engine):
    """A worker for each of `specs`; a device that is there twice has two workers."""

    def __init__(self, specs: Sequence[WorkerSpec]) -> None:
        self._seats = [ProcessSeat(spec) for spec in specs]

    def seats(self) -> Sequence[Seat]:
        """See Engine."""
        return self._seats

    def close(self) -> None:
        """See Engine."""
        for seat in self._seats:
            seat.close()
