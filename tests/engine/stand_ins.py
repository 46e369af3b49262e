"""What processes of workers do in tests. Each of them imports this module, so it imports no more than they need."""

from __future__ import annotations

import os
import signal
import struct
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection

from vkssim.engine import processes
from vkssim.engine.options import Clips, ScoreOptions
from vkssim.engine.processes import _Outcome, _work
from vkssim.engine.task import OnEvent, Part, Task, TaskResult, WorkerSpec
from vkssim.engine.worker import Worker
from vkssim.errors import InputError

from ..support.waiting import PATIENCE

CPU = WorkerSpec("cpu", None, "cpu", "cpu")
TASK = Task((Part(0, Clips("a", "b")),), ScoreOptions(("float_ssim",)))


def signalled_in_the_middle(number: signal.Signals, _spec: WorkerSpec, connections: Sequence[Connection]) -> None:
    """In place of a worker: end, or stand still, while what came of a task is on its way."""
    connection = connections[0]
    connection.recv()
    connection.send(None)
    os.write(connection.fileno(), struct.pack("!i", 1_000_000) + b"the first bytes")
    os.kill(os.getpid(), number)


MESSAGES = 200


def talkative(_spec: WorkerSpec, connections: Sequence[Connection]) -> None:
    """In place of a worker: send many messages for each task."""
    (connection,) = connections
    with suppress(EOFError):
        while True:
            connection.recv()
            for _ in range(MESSAGES):
                connection.send(None)
            connection.send(_Outcome(InputError("the end")))


class _CodedError(Exception):
    """Is pickled with one argument, and cannot be made of one."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{text} ({code})")


CODED = replace(TASK, batch=1)


def failing(spec: WorkerSpec, connections: Sequence[Connection]) -> None:
    """Do tasks as a worker whose clips fail with an error that cannot be pickled or, if the task is CODED, unpickled."""

    class LibraryError(Exception):
        pass

    def fail(self: Worker, task: Task, on_event: OnEvent) -> TaskResult:
        raise _CodedError(7, "of some library") if task == CODED else LibraryError("of some library")

    Worker.do = fail  # type: ignore[method-assign]
    _work(spec, connections)


def meeting(spec: WorkerSpec, connections: Sequence[Connection]) -> None:
    """Do tasks as workers that wait for each other, and return the number of their process as the frames of the result.

    A task of single frames is begun, and never ends.
    """
    barrier = threading.Barrier(2, timeout=PATIENCE)

    def meet(self: Worker, task: Task, on_event: OnEvent) -> TaskResult:
        barrier.wait()
        if task.batch == 1:
            on_event(0, InputError("begun"))
            threading.Event().wait()
        return TaskResult(frames=os.getpid())

    Worker.do = meet  # type: ignore[method-assign]
    _work(spec, connections)


def signing(seconds: float, spec: WorkerSpec, connections: Sequence[Connection]) -> None:
    """Do tasks of that length, with a sign of life every 2 ms."""
    processes._SIGN_INTERVAL_S = 0.002

    def wait(self: Worker, task: Task, on_event: OnEvent) -> TaskResult:
        threading.Event().wait(seconds)
        return TaskResult(frames=1)

    Worker.do = wait  # type: ignore[method-assign]
    _work(spec, connections)
