"""Runs the worker of one device on a thread of this process."""

from __future__ import annotations

from concurrent.futures import Future

from ..utils.thread_pool import ThreadPool
from .task import Done, Task, WorkerSpec
from .worker import Worker
from .worker_pool import FixedPool, WorkerHandle


class ThreadHandle(WorkerHandle):
    """Hands tasks to a worker on a thread. Nothing ends that worker but the end of the process."""

    def __init__(self, spec: WorkerSpec) -> None:
        self.label = spec.label
        self._worker = Worker(spec)
        self._thread = ThreadPool(1, "vkssim-worker")

    def submit(self, task: Task) -> Future[Done]:
        """See WorkerHandle."""
        return self._thread.submit(self._worker.do, task)

    def close(self) -> None:
        """See WorkerHandle."""
        self._worker.stop()
        self._thread.close()
        self._worker.close()


class LocalPool(FixedPool):
    """Holds one worker, in this process."""

    def __init__(self, spec: WorkerSpec) -> None:
        super().__init__([ThreadHandle(spec)])
