"""The engine of one device: a worker in this process."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future

from ..utils.thread_pool import ThreadPool
from .task import Done, Task, WorkerSpec
from .worker import Worker
from .worker_pool import WorkerHandle, WorkerPool


class ThreadHandle(WorkerHandle):
    """A worker on a thread of this process, which does not survive what ends it."""

    def __init__(self, spec: WorkerSpec) -> None:
        self.label = spec.label
        self._worker = Worker(spec)
        self._thread = ThreadPool(1, "vkssim-worker")

    def submit(self, task: Task) -> Future[Done]:
        """See WorkerHandle."""
        return self._thread.submit(self._worker.do, task)

    def renew(self) -> None:
        """See WorkerHandle; never asked for, since the pool would have ended with the worker."""

    def close(self) -> None:
        """See WorkerHandle."""
        self._worker.stop()
        self._thread.close()
        self._worker.close()


class LocalPool(WorkerPool):
    """One worker, here."""

    def __init__(self, spec: WorkerSpec) -> None:
        self._worker = ThreadHandle(spec)

    def workers(self) -> Sequence[WorkerHandle]:
        """See WorkerPool."""
        return [self._worker]

    def close(self) -> None:
        """See WorkerPool."""
        self._worker.close()
