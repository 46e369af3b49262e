"""Run the workers of each device of this machine in a process of its own."""

from __future__ import annotations

import atexit
import os
import signal
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import parent_process, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from queue import Empty, SimpleQueue
from typing import TypeVar
from weakref import WeakSet

from ..host.vectors import THREADS_VARIABLE
from ..utils.interruption import SIGNALS, interruptible
from ..utils.spawning import SPAWN
from ..utils.thread_pool import ThreadPool
from .ranges import Event
from .task import MAX_WORKERS, OnEvent, Task, TaskResult, WorkerDiedError, WorkerHandle, WorkerSpec
from .worker import Worker, engines_of, workers_on

START_TIMEOUT_S = 300.0
"""The longest time from the start of a process to its first message."""

SILENCE_TIMEOUT_S = 60.0
"""The longest time between two messages of a process that has a task. Then the process is killed."""

END_TIMEOUT_S = 10.0
"""The longest wait for a process that ends or was killed."""

_SIGN_INTERVAL_S = 1.0

Value = TypeVar("Value")


@dataclass(frozen=True)
class _Outcome:
    """The result of a task, or its error with the traceback as text, because pickle leaves tracebacks out."""

    result: TaskResult | Exception
    traceback: str = ""


@dataclass(frozen=True)
class _Engines:
    """The number of video engines of a device, which its process reports before it is told how many workers it has."""

    number: int


_Answer = tuple[int, Event] | _Outcome | _Engines
_Message = _Answer | None
"""An event with the number of its job, an outcome, the answer about the device, or a sign of life."""


# -- in the process of a worker ---------------------------------------------------------------------------------------


class _Line:
    """The connection of a worker to the process of the command. Several threads may send."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._sending = threading.Lock()

    def send(self, message: _Message) -> None:
        with self._sending:
            self.connection.send(message)


def _work(spec: WorkerSpec, connections: Sequence[Connection]) -> None:
    """Let each worker of a device do the tasks of its connection, one after the other, until the parent ends.

    If the number of workers depends on the device, the first connection carries the device's answer, and then the `spec` that
    the parent makes of it.
    """
    for number in SIGNALS:  # a terminal sends signals to all processes, and the parent decides what to do
        signal.signal(number, signal.SIG_IGN)
    if spec.threads is not None:
        os.environ[THREADS_VARIABLE] = str(spec.threads)
    lines = [*map(_Line, connections)]
    answering: list[_Line] = lines[:1]
    threading.Thread(target=_give_signs_of_life, args=[answering], daemon=True).start()
    if spec.decode is not None:
        with suppress(EOFError, OSError):  # the parent has ended
            lines[0].send(_Engines(engines_of(spec)))
            spec = lines[0].connection.recv()
    for line in lines[spec.workers :]:
        line.connection.close()
    answering += lines[1 : spec.workers]
    threads = [threading.Thread(target=_serve, args=pair) for pair in zip(workers_on(spec), lines, strict=False)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _serve(worker: Worker, line: _Line) -> None:
    try:
        with suppress(EOFError, OSError), worker:
            while True:
                task = line.connection.recv()
                try:
                    outcome = _Outcome(worker.do(task, lambda job, event: line.send((job, _sendable(event)))))
                except Exception as error:
                    outcome = _Outcome(_sendable(error), traceback.format_exc())
                line.send(outcome)
    except BaseException:  # the other workers would keep the process alive, and the parent would wait for an outcome
        traceback.print_exc()
        os._exit(1)


def _sendable(value: Value) -> Value | RuntimeError:
    """Return a value; in place of an error that cannot be read at the other end of a connection, its message."""
    if isinstance(value, Exception):
        try:
            ForkingPickler.loads(ForkingPickler.dumps(value))
        except Exception:  # such as errors of some libraries
            return RuntimeError(f"{type(value).__name__}: {value}")
    return value


def _give_signs_of_life(lines: Sequence[_Line]) -> None:
    """Send None to all connections once a second, and end the process as soon as the parent has ended."""
    parent = parent_process()
    assert parent is not None
    with suppress(OSError):
        while os.getppid() == parent.pid:  # a fork of the parent would keep the connections open
            for line in lines:
                line.send(None)
            time.sleep(_SIGN_INTERVAL_S)
    os._exit(1)


# -- in the process of the command ------------------------------------------------------------------------------------


class _Messages:
    """The messages of a process. A thread receives them, because one that never becomes complete would keep it waiting."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._queue: SimpleQueue[_Answer | Exception] = SimpleQueue()
        self._received = 0
        self._limit = START_TIMEOUT_S
        threading.Thread(target=self._receive, name="vkssim-messages", daemon=True).start()

    def _receive(self) -> None:
        """Receive messages until the process has ended, and count its signs of life."""
        try:
            with self._connection:
                while True:
                    message: _Message = self._connection.recv()
                    self._received += 1
                    if message is not None:
                        self._queue.put(message)
        except Exception as error:
            self._queue.put(error)

    def next(self) -> _Answer:
        """Return the next message. Raises WorkerDiedError after a long silence, EOFError or OSError after the end."""
        received, silent = self._received, 0.0
        while silent < self._limit:
            with suppress(Empty):
                message = self._queue.get(timeout=_SIGN_INTERVAL_S)
                self._limit = SILENCE_TIMEOUT_S
                if isinstance(message, Exception):
                    raise message
                return message
            if self._received == received:
                silent += _SIGN_INTERVAL_S  # a clock would go on while this process itself is stopped
            else:
                received, silent, self._limit = self._received, 0.0, SILENCE_TIMEOUT_S
        raise WorkerDiedError(f"it gave no sign of life for {self._limit:g} s")


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Block signals in this thread. A process that it starts has its mask, so no signal ends that process before `_work`."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # otherwise the start of a process does so, and unblocks the signals again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class WorkerProcess:
    """The process with the workers of a device. It starts at the latest with their first task, and again if it has ended."""

    def __init__(self, spec: WorkerSpec) -> None:
        self._spec = spec
        self._ending = threading.Lock()
        self._changing = threading.Lock()
        """The lock of the fields below."""
        self._process: BaseProcess | None = None
        self._connections: list[tuple[Connection, _Messages]] = []
        self._spare: list[Connection] = []
        """The connections of workers that there may be, until that is known."""
        self._closed = False

    def connect(self, worker: int) -> tuple[BaseProcess, Connection, _Messages]:
        """Return the process, with the connection and the messages of one of its workers. Raises OSError after `close`."""
        with self._changing:
            if self._process is None:
                self._start()
            if self._process is None:
                raise BrokenPipeError("the run has ended")
            return self._process, *self._connections[worker]

    def start(self) -> None:
        """Start the process, before there is a task."""
        with self._changing:
            self._start()

    def _start(self) -> None:
        is_settled = self._spec.decode is None
        pipes = [SPAWN.Pipe() for _ in range(self._spec.workers if is_settled else MAX_WORKERS)]
        with ExitStack() as stack:  # copies of the workers' ends in this process would keep them open
            for _, theirs in pipes:
                stack.enter_context(theirs)
            process = SPAWN.Process(target=_work, args=(self._spec, [theirs for _, theirs in pipes]), daemon=True)
            if not self._closed:
                stack.enter_context(_signals_blocked())
                process.start()
                self._process = process
        # All are received: signs of life for a worker without a task would fill its connection, and stop those for the others.
        received = len(pipes) if is_settled else 1
        self._connections = [(ours, _Messages(ours)) for ours, _ in pipes[:received]]
        self._spare = [ours for ours, _ in pipes[received:]]

    def engines(self) -> int:
        """Wait for the process to report its device, and return the number of video engines; 0 if it ends before."""
        try:
            _, _, messages = self.connect(0)
            with interruptible():
                answer = messages.next()
        except (WorkerDiedError, EOFError, OSError):  # the first task starts another process
            if self._process is not None:
                self.end(self._process, kill=True)
            return 0
        assert isinstance(answer, _Engines)
        return answer.number

    def settle(self, spec: WorkerSpec) -> list[ProcessHandle]:
        """Tell the process how many workers it has, and return them."""
        with self._changing:
            self._spec = spec
            spare, self._spare = self._spare, []
            if self._process is not None:
                with suppress(OSError):  # the first task notices that the process has ended
                    self._connections[0][0].send(spec)
                more = spec.workers - len(self._connections)
                self._connections += [(ours, _Messages(ours)) for ours in spare[:more]]
                spare = spare[more:]
            for connection in spare:
                connection.close()
        return [ProcessHandle(self, number, spec.label) for number in range(spec.workers)]

    def end(self, process: BaseProcess, *, kill: bool = False) -> int | None:
        """Wait until a process has ended that `connect` returned, and return its exit code. The next task starts a new one."""
        with self._ending:  # the system tells the exit code to one thread alone
            if not kill:
                process.join(END_TIMEOUT_S)
            process.kill()
            process.join(END_TIMEOUT_S)
            code = process.exitcode
        with self._changing:
            if self._process is process:
                self._process = None
        return code

    def close(self) -> None:
        """Kill the process."""
        with self._changing:
            self._closed = True
            if self._process is not None:
                self._process.kill()


class ProcessHandle(WorkerHandle):
    """One of the workers in the process of a device."""

    def __init__(self, process: WorkerProcess, number: int, label: str) -> None:
        self.label = label
        self._owner, self._number = process, number
        self._thread = ThreadPool(1, "vkssim-process")
        """The thread that sends tasks, and waits for their outcomes."""
        self._process: BaseProcess | None = None
        """The process that this worker is connected to."""
        self._worked = False
        """True if a task was done."""
        _handles.add(self)

    def submit(self, task: Task, on_event: OnEvent) -> Future[TaskResult]:
        """Have the process do a task."""
        return self._thread.submit(self._do, task, on_event)

    def _do(self, task: Task, on_event: OnEvent) -> TaskResult:
        try:
            self._connect()
            self._connection.send(task)
            while not isinstance(message := self._messages.next(), _Outcome):
                if not isinstance(message, _Engines):  # of a process that nobody has asked
                    on_event(*message)
        except WorkerDiedError:
            self._end(kill=True)
            raise
        except (EOFError, OSError) as error:
            code = self._end()
            hint = "" if self._worked else '; a script that starts processes does so under `if __name__ == "__main__":`'
            raise WorkerDiedError(str(error) if code is None else f"exit code {code}{hint}") from None

        self._worked = True
        if isinstance(message.result, Exception):
            raise message.result from _WorkerTracebackError(message.traceback)
        return message.result

    def _connect(self) -> None:
        """Connect to the process, unless it is the one that this worker is connected to."""
        process, self._connection, self._messages = self._owner.connect(self._number)
        self._process = process

    def _end(self, *, kill: bool = False) -> int | None:
        process, self._process = self._process, None
        return None if process is None else self._owner.end(process, kill=kill)

    def retire(self) -> None:
        """Leave the process to the other workers of the device."""

    def begin_to_close(self) -> None:
        """Kill the process. The driver takes up to a second to free what it had, so those of several devices end together."""
        self._owner.close()

    def close(self) -> None:
        """Kill the process, and wait for its end."""
        self._owner.close()
        if self._thread.close():  # a thread that does not end waits for the system, for example for a dead network share
            self._end(kill=True)


def handles_of(spec: WorkerSpec) -> list[ProcessHandle]:
    """Return the workers of a device, which share a process."""
    return WorkerProcess(spec).settle(spec)


class _WorkerTracebackError(Exception):
    """The traceback of an error in the process of a worker, as the cause of that error."""


_handles: WeakSet[ProcessHandle] = WeakSet()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_handles.clear)  # a child must not end the processes of its parent


@atexit.register  # after multiprocessing's own, so that it is called before that, which waits for processes indefinitely
def _close_all() -> None:
    for handle in list(_handles):
        handle.close()
