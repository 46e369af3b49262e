"""Run a worker for each device of this machine, in a process of its own."""

from __future__ import annotations

import atexit
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import parent_process, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from typing import TypeVar
from weakref import WeakSet

from ..utils.interruption import SIGNALS
from ..utils.spawning import SPAWN
from ..utils.thread_pool import ThreadPool
from .task import Task, TaskEvent, TaskResult, Tell, WorkerDiedError, WorkerHandle, WorkerSpec
from .worker import Worker

SECONDS_TO_BEGIN = 300.0
"""The longest time in seconds from the start of a process to its first sign of life."""

SECONDS_OF_SILENCE = 60.0
"""The longest time in seconds between two signs of life of a process that has a task. Then the process is killed."""

SECONDS_TO_END = 10.0
"""The longest wait in seconds for a process that ends or was killed."""

_SECONDS_BETWEEN_SIGNS = 1.0

Value = TypeVar("Value")


@dataclass(frozen=True)
class _Outcome:
    """The result of a task, or its error with the traceback as text, because pickle leaves tracebacks out."""

    done: TaskResult | Exception
    traceback: str = ""


_Message = tuple[int, TaskEvent] | _Outcome | None
"""An event with the number of its job, an outcome, or a sign of life."""


# -- in the process of a worker ---------------------------------------------------------------------------------------


def _work(spec: WorkerSpec, connection: Connection) -> None:
    """Do one task after the other, until the parent ends."""
    for number in SIGNALS:  # a terminal sends signals to all processes, and the parent decides what to do
        signal.signal(number, signal.SIG_IGN)
    sending = threading.Lock()

    def send(message: _Message) -> None:
        with sending:
            connection.send(message)

    threading.Thread(target=_give_signs_of_life, args=[send], daemon=True).start()
    with suppress(EOFError, OSError), Worker(spec) as worker:
        while True:
            task = connection.recv()
            try:
                outcome = _Outcome(worker.do(task, lambda job, event: send((job, _sendable(event)))))
            except Exception as error:
                outcome = _Outcome(_sendable(error), traceback.format_exc())
            send(outcome)


def _sendable(value: Value) -> Value | RuntimeError:
    """Return a value; in place of an error that cannot be read at the other end of a connection, its message."""
    if isinstance(value, Exception):
        try:
            ForkingPickler.loads(ForkingPickler.dumps(value))
        except Exception:  # such as errors of some libraries
            return RuntimeError(f"{type(value).__name__}: {value}")
    return value


def _give_signs_of_life(send: Callable[[None], None]) -> None:
    """Send None once a second, and end the process as soon as the parent has ended."""
    parent = parent_process()
    assert parent is not None
    with suppress(OSError):
        while os.getppid() == parent.pid:  # a fork of the parent would keep the connection open
            send(None)
            time.sleep(_SECONDS_BETWEEN_SIGNS)
    os._exit(1)


# -- in the process of the command ------------------------------------------------------------------------------------


class ProcessHandle(WorkerHandle):
    """A worker in a process of its own. The process starts with the first task, and again if it has ended."""

    def __init__(self, spec: WorkerSpec) -> None:
        self.label = spec.label
        self._spec = spec
        self._thread = ThreadPool(1, "vkssim-process")  # only this thread uses the connection
        self._changing = threading.Lock()  # guards `_process` and `_closed`
        self._process: BaseProcess | None = None
        self._closed = False
        self._worked = False
        self._turns = 0  # beginnings and ends of messages: an odd number while one arrives
        self._ended = threading.Event()  # set at the end of each process
        _handles.add(self)

    def submit(self, task: Task, tell: Tell) -> Future[TaskResult]:
        """See WorkerHandle."""
        return self._thread.submit(self._do, task, tell)

    def _do(self, task: Task, tell: Tell) -> TaskResult:
        try:
            if self._process is None:
                self._start()
            self._connection.send(task)
            outcome = self._answer(tell)
        except (EOFError, OSError) as error:
            code = self._end()
            hint = "" if self._worked else '; a script that starts processes does so under `if __name__ == "__main__":`'
            raise WorkerDiedError(str(error) if code is None else f"exit code {code}{hint}") from None
        self._worked = True
        if isinstance(outcome.done, Exception):
            raise outcome.done from _WorkerTracebackError(outcome.traceback)
        return outcome.done

    def _start(self) -> None:
        if hasattr(signal, "pthread_sigmask"):  # the process has the mask of this thread, so no signal ends it before `_work`
            resource_tracker.ensure_running()  # otherwise `start` does so, and unblocks the signals again
            signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        self._connection, connection = SPAWN.Pipe()
        with self._changing, connection:  # a copy of the worker's end in this process would keep it open
            process = SPAWN.Process(target=_work, args=(self._spec, connection), daemon=True)
            if not self._closed:
                process.start()
                self._process, self._ended = process, threading.Event()
                threading.Thread(target=self._watch, args=[self._ended], name="vkssim-watch", daemon=True).start()
        self._limit = SECONDS_TO_BEGIN

    def _answer(self, tell: Tell) -> _Outcome:
        """Tell of the events of a task, and return its outcome. Raises WorkerDiedError if there is no sign of life."""
        silent = 0.0
        while silent <= self._limit:
            if not self._connection.poll(_SECONDS_BETWEEN_SIGNS):
                silent += _SECONDS_BETWEEN_SIGNS  # a clock would go on while this process itself is stopped
                continue
            message = self._receive()
            if isinstance(message, _Outcome):
                return message
            if message is not None:
                tell(*message)
            silent, self._limit = 0.0, SECONDS_OF_SILENCE
        self._end(kill=True)
        raise WorkerDiedError(f"it gave no sign of life for {self._limit:g} s")

    def _receive(self) -> _Message:
        """Receive a message that has begun to arrive. `_watch` kills the process if the rest of it does not arrive in time."""
        self._turns += 1
        try:
            message: _Message = self._connection.recv()
        finally:
            self._turns += 1
        return message

    def _watch(self, ended: threading.Event) -> None:
        """Kill the process if a message that has begun to arrive is not complete in time."""
        seen, silent = 0, 0.0
        while not ended.wait(_SECONDS_BETWEEN_SIGNS):
            turn = self._turns
            silent = silent + _SECONDS_BETWEEN_SIGNS if turn == seen and turn % 2 else 0.0
            seen = turn
            if silent >= SECONDS_OF_SILENCE:
                self._kill()

    def _kill(self) -> None:
        with self._changing:
            if self._process is not None:
                self._process.kill()

    def _end(self, *, kill: bool = False) -> int | None:
        """Wait until the process has ended, and return its exit code. The next task starts a new process."""
        process = self._process
        if process is None:
            return None
        if not kill:
            process.join(SECONDS_TO_END)
        process.kill()
        process.join(SECONDS_TO_END)
        with self._changing:
            self._process = None
        self._ended.set()
        self._connection.close()
        return process.exitcode

    def close(self) -> None:
        """See WorkerHandle."""
        self._closed = True
        self._kill()
        if self._thread.close():  # a thread that does not end waits for the system, for example for a dead network share
            self._end(kill=True)


class _WorkerTracebackError(Exception):
    """The traceback of an error in the process of a worker, as the cause of that error."""


_handles: WeakSet[ProcessHandle] = WeakSet()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_handles.clear)  # a child must not end the processes of its parent


@atexit.register  # after multiprocessing's own, so that it is called before that, which waits for processes without bound
def _close_all() -> None:
    for handle in list(_handles):
        handle.close()
