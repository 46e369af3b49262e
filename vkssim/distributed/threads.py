"""Run workers of one device on threads of this process."""

from __future__ import annotations

from concurrent.futures import Future
from functools import partial

from ..backends.failure_policy import BackendOpener, FailurePolicy
from ..backends.open import open_backend
from ..backends.shared import Share, SharedBackend
from ..utils.thread_pool import ThreadPool
from .open_sources import OpenPair
from .task import Done, Task, WorkerSpec
from .worker import Worker
from .worker_pool import FixedPool, WorkerHandle

_BATCHES_OF_A_WORKER = 2  # one is decoded while the device has the other


class ThreadHandle(WorkerHandle):
    """Hand tasks to a worker on a thread. Nothing ends that worker but the end of the process."""

    def __init__(self, spec: WorkerSpec, share: Share | None = None, clips: OpenPair | None = None) -> None:
        self.label = spec.label
        self._worker = Worker(spec, share, clips)
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
    """Hold workers of one device in this process: one, or as many as the video engines of a GPU keep busy.

    Several workers share a backend, because to open a device takes longer than to score a short clip. The times of stages are
    those of a backend, so that workers that measure them have one each. The first worker gets `clips` that are open already.
    """

    def __init__(self, spec: WorkerSpec, workers: int = 1, clips: OpenPair | None = None) -> None:
        self._shared: SharedBackend | None = None
        shares: list[Share | None] = [None] * workers
        if workers > 1 and not spec.profile:
            opener = partial(open_backend, spec.backend, device=spec.device, slots=_BATCHES_OF_A_WORKER * workers)
            self._shared = SharedBackend(BackendOpener(opener, FailurePolicy(losses=0)))
            shares = [Share(self._shared, number, workers) for number in range(workers)]
        super().__init__([ThreadHandle(spec, share, None if number else clips) for number, share in enumerate(shares)])

    def close(self) -> None:
        """See WorkerPool. All workers are told to stop before one of them is waited for."""
        for worker in self.workers():
            assert isinstance(worker, ThreadHandle)
            worker.stop()
        super().close()
        if self._shared is not None:
            self._shared.close()
