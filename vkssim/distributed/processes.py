"""The engine of one machine: a process for each device."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from weakref import WeakSet

from ..utils.interruption import SIGNALS
from .task import Done, Task, WorkerSpec
from .worker import Worker
from .worker_pool import WorkerDiedError, WorkerHandle, WorkerPool

SECONDS_TO_BEGIN = 300.0
"""How long a process that was started may take until its first sign of life."""

SECONDS_OF_SILENCE = 60.0
"""How long a process that has a task may give no further sign of life, until it counts as dead and is killed."""

SECONDS_TO_END = 10.0
"""How long a process that was told to end may take, until it is killed; and how long killing is waited for."""

_SECONDS_BETWEEN_SIGNS = 1.0
_LONGEST_LOOK = 2.0  # a command that was stopped itself has not waited longer

_Outcome = tuple[Done | Exception, str]
"""What came of a task; of an error also where it came from, which does not travel with it."""

_SPAWN = multiprocessing.get_context("spawn")  # a fork cannot use Vulkan


# -- in the process of a worker ---------------------------------------------------------------------------------------


def _work(spec: WorkerSpec, tasks: Connection, life: Connection) -> None:
    """Do one task after the other, until the parent ends or has enough."""
    for number in SIGNALS:  # a terminal sends them to all; the parent decides
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_stay_in_touch, args=[life], daemon=True).start()
    with suppress(EOFError, OSError), Worker(spec) as worker:
        while True:
            outcome = _outcome(worker, tasks.recv())
            try:
                tasks.send(outcome)
            except OSError:
                return
            except Exception:  # an error of some library, which cannot travel
                tasks.send((RuntimeError(f"{type(outcome[0]).__name__}: {outcome[0]}"), outcome[1]))


def _outcome(worker: Worker, task: Task) -> _Outcome:
    try:
        return worker.do(task), ""
    except Exception as error:
        return error, traceback.format_exc()


def _stay_in_touch(life: Connection) -> None:
    """Give the parent signs of life until it closes the connection or ends; then end on the spot."""
    with suppress(OSError):
        life.send_bytes(b".")
        while not life.poll(_SECONDS_BETWEEN_SIGNS):  # the parent sends nothing
            life.send_bytes(b".")
    os._exit(1)


# -- in the process of the command ------------------------------------------------------------------------------------


class _Process:
    """The process of a worker, from its start to its end. `worked` says whether it, or one before it, ever did a task."""

    def __init__(self, spec: WorkerSpec, *, worked: bool) -> None:
        self._tasks, tasks = _SPAWN.Pipe()
        self._life, life = _SPAWN.Pipe()
        self._process = _SPAWN.Process(target=_work, args=(spec, tasks, life), daemon=True)
        with _held_back():
            self._process.start()
        tasks.close()  # or its end would not be seen
        life.close()
        self.worked = worked
        self._waiting: Future[Done] | None = None
        self._lock = threading.Lock()
        self._patience = SECONDS_TO_BEGIN
        self._silent = 0.0
        self._looked = time.monotonic()
        self._killed = False
        self._listener = threading.Thread(target=self._listen, name="vkssim-listen", daemon=True)
        self._listener.start()

    def submit(self, task: Task) -> Future[Done]:
        """Have it do a task. The future raises WorkerDiedError where the process ends first."""
        outcome: Future[Done] = Future()
        self._silent, self._looked = 0.0, time.monotonic()
        with self._lock:
            self._waiting = outcome
        try:
            self._tasks.send(task)
        except OSError:
            self._settle(self._death())
        return outcome

    def _listen(self) -> None:
        """On a thread of its own: take what comes of tasks, until the process has ended."""
        while True:
            try:
                outcome, where = self._tasks.recv()
            except (EOFError, OSError):
                self._process.join(SECONDS_TO_END)
                self._settle(self._death())
                return
            except Exception as error:  # of an outcome that cannot be put together again here
                outcome, where = error, ""
            if where:
                outcome.__cause__ = _WorkerTracebackError(where)
            self.worked = True
            self._settle(outcome)

    def _settle(self, outcome: Done | Exception) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, None
        if waiting is None:
            return
        if isinstance(outcome, Exception):
            waiting.set_exception(outcome)
        else:
            waiting.set_result(outcome)

    def _death(self) -> WorkerDiedError:
        if self._killed:
            return WorkerDiedError(f"it gave no sign of life for {self._patience:g} s")
        hint = "" if self.worked else '; a script that starts processes does so under `if __name__ == "__main__":`'
        return WorkerDiedError(f"exit code {self._process.exitcode}{hint}")

    def look(self) -> None:
        """Kill it where it has a task and gives no sign of life; to be called again and again.

        Only the time between two calls counts, so that nothing is killed because the command itself was stopped.
        """
        now = time.monotonic()
        self._silent += min(now - self._looked, _LONGEST_LOOK)
        self._looked = now
        with suppress(OSError, EOFError):
            while self._life.poll():
                self._life.recv_bytes()
                self._silent, self._patience = 0.0, SECONDS_OF_SILENCE
        if self._waiting is not None and self._silent > self._patience:
            self._killed = True
            self._process.kill()

    def let_go(self) -> None:
        """Tell it to end, and do not wait for that."""
        self._life.close()

    def close(self) -> None:
        """End it: where it does not end by itself, because it was stopped for instance, it is killed."""
        self.let_go()
        if not wait([self._process.sentinel], SECONDS_TO_END):
            self._process.kill()
        self._listener.join(SECONDS_TO_END)  # it ends with the process
        if not self._listener.is_alive():  # else the system itself holds it up, as a dead network share does
            self._tasks.close()


class _WorkerTracebackError(Exception):
    """Where in the process of a worker an error came from."""


@contextmanager
def _held_back() -> Iterator[None]:
    """Hold back the signals that end a run: a process that is started meanwhile does not hear them even before `_work`."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows has none to speak of
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class ProcessHandle(WorkerHandle):
    """A worker in a process of its own, which starts with its first task."""

    def __init__(self, spec: WorkerSpec) -> None:
        self.label = spec.label
        self._spec = spec
        self._worked = False
        self._process: _Process | None = None
        _workers.add(self)

    def submit(self, task: Task) -> Future[Done]:
        """See WorkerHandle."""
        if self._process is None:
            self._process = _Process(self._spec, worked=self._worked)
        return self._process.submit(task)

    def look(self) -> None:
        """Kill a process that has a task and gives no sign of life; its task fails with WorkerDiedError then."""
        if self._process is not None:
            self._process.look()

    def renew(self) -> None:
        """See WorkerHandle."""
        self.close()

    def let_go(self) -> None:
        """Tell the worker to end, and do not wait for that."""
        if self._process is not None:
            self._process.let_go()

    def close(self) -> None:
        """See WorkerHandle."""
        process, self._process = self._process, None
        if process is not None:
            self._worked = process.worked
            process.close()


_workers: WeakSet[ProcessHandle] = WeakSet()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_workers.clear)  # they are the parent's


@atexit.register  # later than multiprocessing's own, so that it is called before that, which waits for processes without bound
def _close_workers() -> None:
    for worker in list(_workers):
        worker.let_go()
    for worker in list(_workers):
        worker.close()


class ProcessPool(WorkerPool):
    """A worker for each of `specs`; a device that is there twice has two workers."""

    def __init__(self, specs: Sequence[WorkerSpec]) -> None:
        self._workers = [ProcessHandle(spec) for spec in specs]

    def workers(self) -> Sequence[WorkerHandle]:
        """See WorkerPool."""
        for worker in self._workers:
            worker.look()
        return self._workers

    def close(self) -> None:
        """See WorkerPool."""
        for worker in self._workers:
            worker.let_go()
        for worker in self._workers:
            worker.close()
