"""The engine of one device: a worker in this process."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future

from ..utils.thread_pool import ThreadPool
from .task import Done, Task, WorkerSpec
from .worker import Worker
from .worker_pool import Engine, Seat


class ThreadSeat(Seat):
    """A worker on a thread of this process, which does not survive what ends it."""

    def __init__(self, spec: WorkerSpec) -> None:
        self.label = spec.label
        self._worker = Worker(spec)
        self._thread = ThreadPool(1, "vkssim-worker")

    def submit(self, task: Task) -> Future[Done]:
        """See Seat."""
        return self._thread.submit(self._worker.do, task)

    def renew(self) -> None:
        """See Seat; never asked for, since the pool would have ended with the worker."""

    def close(self) -> None:
        """See Seat."""
        self._worker.stop()
        self._thread.close()
        self._worker.close()


class Alone(Engine):
    """One worker, here."""

    def __init__(self, spec: WorkerSpec) -> None:
        self._seat = ThreadSeat(spec)

    def seats(self) -> Sequence[Seat]:
        """See Engine."""
        return [self._seat]

    def close(self) -> None:
        """See Engine."""
        self._seat.close()
