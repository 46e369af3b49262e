"""Run workers of one device on threads of this process."""

from __future__ import annotations

from concurrent.futures import Future

from ..utils.thread_pool import ThreadPool
from .task import Done, Task, WorkerSpec
from .worker import Worker
from .worker_pool import FixedPool, WorkerHandle


class ThreadHandle(WorkerHandle):
    """Hand tasks to a worker on a thread. Nothing ends that worker but the end of the process."""

    def __init__(self, spec: WorkerSpec) -> None:
        self.label = spec.label
        self._worker = Worker(spec)
        self._thread = ThreadPool(1, "vkssim-worker")

    def submit(self, task: Task) -> Future[Done]:
        """See WorkerHandle."""
        return self._thread.submit(self._worker.do, task)

    def stop(self) -> None:
        """Tell the worker to stop, and do not wait for that."""
        self._worker.stop()

    def close(self) -> None:
        """See WorkerHandle."""
        self.stop()
        self._thread.close()
        self._worker.close()


class LocalPool(FixedPool):
    """Hold workers of one device in this process: one, or as many as the video engines of a GPU keep busy."""

    def __init__(self, spec: WorkerSpec, workers: int = 1) -> None:
        super().__init__([ThreadHandle(spec) for _ in range(workers)])

    def close(self) -> None:
        """See WorkerPool. All workers are told to stop before one of them is waited for."""
        for worker in self.workers():
            assert isinstance(worker, ThreadHandle)
            worker.stop()
        super().close()
