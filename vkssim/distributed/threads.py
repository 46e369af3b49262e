"""Run workers of one device in this process: one in the thread of the caller, or several on threads."""

from __future__ import annotations

from concurrent.futures import Future
from functools import partial

from ..backends.device_cache import DeviceCache
from ..backends.open import open_backend
from ..backends.shared import Share, SharedBackend
from ..scoring.run import frame_metrics
from ..utils.thread_pool import ThreadPool, run_in_thread
from .open_sources import OpenPair
from .task import Done, FixedPool, Task, Tell, WorkerHandle, WorkerSpec
from .worker import Worker, slots_for

_BATCHES_OF_A_WORKER = 2  # one is decoded while the device has the other


class InlineHandle(WorkerHandle):
    """Do tasks in the thread of the caller."""

    def __init__(self, spec: WorkerSpec, share: Share | None = None, in_step: int = 1) -> None:
        self.label = spec.label
        self._worker = Worker(spec, share, in_step=in_step)

    def submit(self, task: Task, tell: Tell) -> Future[Done]:
        """See WorkerHandle."""
        future: Future[Done] = Future()
        raised: list[Exception] = []

        def pass_on(job: int, event: object) -> None:
            try:
                tell(job, event)  # type: ignore[arg-type]
            except Exception as error:
                raised.append(error)
                raise

        try:
            future.set_result(self._worker.do(task, pass_on))
        except Exception as error:
            if raised:
                raise raised[0] from None
            future.set_exception(error)
        return future

    def close(self) -> None:
        """See WorkerHandle."""
        self._worker.close()


class ThreadHandle(WorkerHandle):
    """Hand tasks to a worker on a thread. Nothing ends that worker but the end of the process."""

    shares_decoder = True

    def __init__(self, worker: Worker, label: str) -> None:
        self.label = label
        self.worker = worker
        self.thread = ThreadPool(1, "vkssim-worker")

    def submit(self, task: Task, tell: Tell) -> Future[Done]:
        """See WorkerHandle."""
        return self.thread.submit(self.worker.do, task, tell)

    def begin_to_close(self) -> None:
        """Have the worker stop and close its clips, and do not wait for that."""
        self.worker.stop()
        self.thread.submit(self.worker.close)

    def close(self) -> None:
        """See WorkerHandle."""
        self.begin_to_close()
        self.thread.close(cancel=False)
        self.worker.close()  # if the thread did not end


class KeptBackend:
    """A backend of one device for the workers of a pool, which the next pool of the process finds open."""

    def __init__(self, spec: WorkerSpec, slots: int) -> None:
        self._key = spec.backend, spec.device, slots, spec.profile
        opener = partial(open_backend, spec.backend, device=spec.device, slots=slots, profile=spec.profile)
        self.shared = kept.take(self._key) or SharedBackend(opener)

    def close(self, *, failed: bool) -> None:
        """Keep the backend for the next pool, or close it if it may still be at work for a run that failed."""
        shared = self.shared
        if shared.reusable and not failed:
            shared.begin_again()
            kept.put(self._key, shared)
        else:
            shared.close()


kept: DeviceCache[SharedBackend] = DeviceCache(most=1)
"""The backend of the last pool that ended well."""


class LocalPool(FixedPool):
    """One worker in the thread of the caller, which scores up to `in_step` pairs of a reference at a time."""

    def __init__(self, spec: WorkerSpec, in_step: int = 1) -> None:
        self._backend = KeptBackend(spec, slots_for(in_step))
        super().__init__([InlineHandle(spec, Share(self._backend.shared), in_step)])

    def close(self, *, failed: bool = False) -> None:
        """See WorkerPool."""
        super().close()
        self._backend.close(failed=failed)


class EnginesPool(FixedPool):
    """As many workers of one GPU as its video engines keep busy, on threads of this process.

    They share a backend, because to open a device takes longer than to score a short clip. The times of stages are those of a
    backend, so that workers that measure them have one each. While the first worker divides clips, the others open them as
    well, and another thread opens the backend.
    """

    by_hardware = True

    def __init__(self, spec: WorkerSpec, workers: int) -> None:
        self._backend: KeptBackend | None = None
        self._ahead = False
        shares: list[Share | None] = [None] * workers
        if not spec.profile:
            self._backend = KeptBackend(spec, _BATCHES_OF_A_WORKER * workers)
            shares = [Share(self._backend.shared, number, workers) for number in range(workers)]
        self._handles = [ThreadHandle(Worker(spec, share, self._open_ahead), spec.label) for share in shares]
        super().__init__(self._handles)

    def _open_ahead(self, clips: OpenPair) -> None:
        if self._ahead:
            return
        self._ahead = True
        for handle in self._handles[1:]:
            handle.thread.submit(handle.worker.open_ahead, *clips.key)
        if self._backend is not None:
            planes = frame_metrics(clips.sources, clips.key[1]).planes
            run_in_thread("vkssim-open", partial(self._backend.shared.open_ahead, planes))

    def close(self, *, failed: bool = False) -> None:
        """See WorkerPool. The workers close their clips side by side, which takes a hardware decoder some 0.02 s."""
        for handle in self._handles:
            handle.begin_to_close()
        super().close()
        if self._backend is not None:
            self._backend.close(failed=failed)
