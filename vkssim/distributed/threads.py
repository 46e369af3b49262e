"""Run workers of one device on threads of this process."""

from __future__ import annotations

from concurrent.futures import Future
from functools import partial

from ..backends.failure_policy import BackendOpener, FailurePolicy
from ..backends.open import open_backend
from ..backends.shared import Share, SharedBackend
from ..scoring.options import Clips, ScoreOptions
from ..scoring.session import frame_metrics
from ..utils.thread_pool import ThreadPool, run_in_thread
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

    def open_ahead(self, clips: Clips, options: ScoreOptions) -> None:
        """Have the worker open the clips of its tasks before it gets one."""
        self._thread.submit(self._worker.open_ahead, clips, options)

    def submit(self, task: Task) -> Future[Done]:
        """See WorkerHandle."""
        return self._thread.submit(self._worker.do, task)

    def begin_to_close(self) -> None:
        """Have the worker stop and close its clips, and do not wait for that."""
        self._worker.stop()
        self._thread.submit(self._worker.close)

    def close(self) -> None:
        """See WorkerHandle."""
        self.begin_to_close()
        self._thread.close(cancel=False)
        self._worker.close()  # if the thread did not end


class LocalPool(FixedPool):
    """Hold workers of one device in this process: one, or as many as the video engines of a GPU keep busy.

    Several workers share a backend, because to open a device takes longer than to score a short clip. The times of stages are
    those of a backend, so that workers that measure them have one each. The first worker gets `clips` that are open already.
    While it divides them, the others open them as well, and another thread opens the backend.
    """

    def __init__(self, spec: WorkerSpec, workers: int = 1, clips: OpenPair | None = None) -> None:
        self._shared: SharedBackend | None = None
        shares: list[Share | None] = [None] * workers
        if workers > 1 and not spec.profile:
            opener = partial(open_backend, spec.backend, device=spec.device, slots=_BATCHES_OF_A_WORKER * workers)
            self._shared = SharedBackend(BackendOpener(opener, FailurePolicy(losses=0)))
            shares = [Share(self._shared, number, workers) for number in range(workers)]
        handles = [ThreadHandle(spec, share, None if number else clips) for number, share in enumerate(shares)]
        super().__init__(handles)
        if clips is None:
            return
        for handle in handles[1:]:
            handle.open_ahead(*clips.key)
        if self._shared is not None:
            planes = frame_metrics(clips.sources, clips.key[1]).planes
            run_in_thread("vkssim-open", partial(self._shared.open_ahead, planes))

    def close(self) -> None:
        """See WorkerPool. The workers close their clips side by side, which takes a hardware decoder some 0.02 s."""
        for worker in self.workers():
            assert isinstance(worker, ThreadHandle)
            worker.begin_to_close()
        super().close()
        if self._shared is not None:
            self._shared.close()
