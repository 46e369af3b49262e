"""Hand tasks to the workers of a pool, and to another worker if one fails."""

from __future__ import annotations

import logging
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from queue import Empty, SimpleQueue

from ..backends.failures import FailurePolicy
from ..errors import (
    DecoderBusyError,
    DeviceError,
    DeviceLostError,
    DeviceMemoryError,
    DeviceTimeoutError,
    InputError,
    NoDeviceError,
    RangeError,
    VkssimError,
    WorkerLostError,
)
from ..storage.location import redact_url
from ..utils.interruption import interruptible
from ..utils.wording import counted
from .options import Clips, ScoreOptions
from .ranges import Event, RangeBegun
from .task import Task, TaskResult, WorkerDiedError, WorkerHandle, WorkerPool

MAX_ATTEMPTS = 4
"""How often a task is tried, how often in a row a worker may fail, and how many tasks in a row may be given up."""

_POLL_INTERVAL_S = 0.5

_log = logging.getLogger("vkssim")
_log.addHandler(logging.NullHandler())  # without a handler, Python prints warnings on standard error


@dataclass(frozen=True)
class TaskKey:
    """The number of a group of jobs, and the index of a range."""

    group: int
    index: int


MakeTask = Callable[[int | None], Task]
"""A function that gets the largest number of frames of a batch, and returns a task with the work that is left at that time."""

OnTaskEvent = Callable[[TaskKey, int, Event], None]
"""A function that gets each event of a task, with the number of its job."""

OnRetry = Callable[[TaskKey, DeviceError, int | None], None]
"""A function that gets the error of a device that is used again for a task, and the new largest number of frames of a batch."""


@dataclass(eq=False)
class _PendingTask:
    """A task without an outcome."""

    key: TaskKey
    make: MakeTask
    can_retry: bool
    """True if its clips can be read a second time."""
    policy: FailurePolicy
    """The decision about failures of its device."""
    clip: str = ""
    tried_by: set[WorkerHandle] = field(default_factory=set)
    """The workers that should not try it, unless no other worker is left."""
    attempts: int = 0
    """The number of failed attempts."""
    unreadable: bool = False
    """True if a worker on another machine could not read the clips."""
    dropped: bool = False
    """True if the outcome is no longer needed."""


class Scheduler:
    """The tasks that wait and run. Outcomes are returned as soon as they arrive. Only the scheduler tries work again.

    A worker goes on with the group of its last task, so that several pairs are scored side by side and few clips are opened.

    A task whose worker died or lost its device goes to another worker, until it was tried MAX_ATTEMPTS times. If there is no
    other worker, or memory runs out, the `FailurePolicy` of the task decides. `warn` gets warnings about workers that fail.
    """

    def __init__(
        self,
        pool: WorkerPool,
        warn: Callable[[str], None],
        on_event: OnTaskEvent = lambda _key, _job, _event: None,
        on_retry: OnRetry = lambda _key, _error, _batch: None,
    ) -> None:
        self._pool = pool
        self._on_warning = warn
        self._on_event = on_event
        self._on_retry = on_retry
        self._queue: deque[_PendingTask] = deque()
        self._running: dict[Future[TaskResult], tuple[_PendingTask, WorkerHandle]] = {}
        # A signal that ends `concurrent.futures.wait` may leave futures locked, and threads that set them waiting forever.
        self._steps: SimpleQueue[Future[TaskResult] | tuple[_PendingTask, int, Event]] = SimpleQueue()
        self._thread = threading.get_ident()
        self._event_error: Exception | None = None
        """The error of `on_event`, which ends the run."""
        self._workers: list[WorkerHandle] = []
        self._groups: dict[WorkerHandle, int] = {}
        """The group of the last task of each worker."""
        self._failures: Counter[WorkerHandle] = Counter()
        """The consecutive failures of each worker."""
        self._retired: set[WorkerHandle] = set()
        self._busy_decoders: set[str] = set()
        """The warnings about busy decoders, each of which is given once."""
        self._given_up = 0
        """The number of consecutive tasks that were given up."""
        self._last_error: VkssimError = NoDeviceError("no worker is left")

    @property
    def workers(self) -> int:
        """Return the number of workers at the last `update_workers`."""
        return len(self._workers)

    def update_workers(self) -> None:
        """Update the list of workers. Raises DeviceError if there is none."""
        self._workers = [worker for worker in self._pool.workers() if worker not in self._retired]
        if not self._workers:
            raise self._last_error

    @property
    def needs_work(self) -> bool:
        """Return True if too few tasks wait for the workers: one for each, and one whose clips are opened ahead."""
        return len(self._queue) <= len(self._workers)

    def put(self, key: TaskKey, make: MakeTask, *, can_retry: bool = True, batch: int | None = None) -> None:
        """Add a task under a key that no other task has, with batches of `batch` frames at most."""
        self._queue.append(_PendingTask(key, make, can_retry, FailurePolicy(batch)))

    def drop(self, group: int) -> None:
        """Forget the tasks of a group."""
        self._queue = deque(pending for pending in self._queue if pending.key.group != group)
        for pending, _ in self._running.values():
            pending.dropped = pending.dropped or pending.key.group == group

    def next_outcome(self) -> tuple[TaskKey, TaskResult | Exception]:
        """Hand out tasks until one has an outcome: return its key, and its result or the error that prevented it.

        Raises DeviceError if no worker is left, WorkerLostError if several tasks in a row were given up, Interruption for a
        signal, and the errors of `on_event`.
        """
        while True:
            self.update_workers()
            for worker, pending in self._assignments():
                task = self._task_for(worker, pending)
                future = worker.submit(task, partial(self._take_event, pending))
                if self._event_error is not None:
                    raise self._event_error from None
                self._running[future] = pending, worker
                future.add_done_callback(self._steps.put)

            try:
                with interruptible():
                    step = self._steps.get(timeout=_POLL_INTERVAL_S)
            except Empty:
                continue
            if isinstance(step, tuple):
                self._pass_on(*step)
                continue
            pending, worker = self._running.pop(step)
            outcome = self._handle_outcome(step, pending, worker)
            if outcome is not None and not pending.dropped:
                return pending.key, outcome

    # -- handing out -------------------------------------------------------------------------------------------------

    def _assignments(self) -> Iterator[tuple[WorkerHandle, _PendingTask]]:
        """Yield idle workers with their next tasks. A worker without a next task closes its clips."""
        busy = {worker for _, worker in self._running.values()}
        for worker in [worker for worker in self._workers if worker not in busy]:
            waiting = [pending for pending in self._queue if self._may_try(worker, pending)]
            if waiting:
                best = self._best(worker, waiting)
                self._queue.remove(best)
                self._groups[worker] = best.key.group
                yield worker, best
            elif self._groups.pop(worker, None) is not None:
                worker.close_idle_clips()

    def _best(self, worker: WorkerHandle, waiting: Sequence[_PendingTask]) -> _PendingTask:
        """Return the task that suits a worker best.

        A task of the worker's last group comes first, because its clips may still be open; then a task of the group that the
        fewest workers have; then the first task.
        """
        own, running = self._groups.get(worker), Counter(pending.key.group for pending, _ in self._running.values())
        return min(waiting, key=lambda pending: (pending.key.group != own, running[pending.key.group]))

    def _may_try(self, worker: WorkerHandle, pending: _PendingTask) -> bool:
        """Return True if the worker has not tried a task yet, or if all workers have."""
        return worker not in pending.tried_by or pending.tried_by.issuperset(self._workers)

    def _task_for(self, worker: WorkerHandle, pending: _PendingTask) -> Task:
        pending.tried_by.add(worker)
        task = replace(pending.make(pending.policy.batch), next_clips=self._next_clips(worker, pending))
        pending.clip = task.clips.distorted
        return task

    def _next_clips(self, worker: WorkerHandle, pending: _PendingTask) -> tuple[Clips, ScoreOptions] | None:
        """Return the clips of another group if a worker will probably go on with them after a task."""
        waiting = [candidate for candidate in self._queue if self._may_try(worker, candidate)]
        if not waiting or any(candidate.key.group == pending.key.group for candidate in waiting):
            return None
        task = self._best(worker, waiting).make(None)
        return (task.clips, task.options) if len(task.parts) == 1 else None

    # -- events and outcomes -----------------------------------------------------------------------------------------

    def _take_event(self, pending: _PendingTask, job: int, event: Event) -> None:
        """Take an event from the thread of a worker, which may be that of the caller."""
        if threading.get_ident() != self._thread:
            self._steps.put((pending, job, event))
            return
        try:
            self._pass_on(pending, job, event)
        except Exception as error:
            self._event_error = error
            raise

    def _pass_on(self, pending: _PendingTask, job: int, event: Event) -> None:
        if isinstance(event, RangeBegun):
            pending.policy.batch = event.batch
        if not pending.dropped:
            self._on_event(pending.key, job, event)

    def _handle_outcome(
        self, future: Future[TaskResult], pending: _PendingTask, worker: WorkerHandle
    ) -> TaskResult | Exception | None:
        """Return the outcome of an attempt; None if another attempt decides."""
        try:
            result = future.result()
        except WorkerDiedError as error:
            return self._retry_elsewhere(pending, worker, f"a worker on {worker.label} ended unexpectedly ({error})")
        except (DeviceLostError, DeviceTimeoutError, DeviceMemoryError) as error:
            self._last_error = error
            if len(self._workers) > 1 and not isinstance(error, DeviceMemoryError):
                return self._retry_elsewhere(pending, worker, str(error))
            if pending.dropped or not (pending.can_retry and pending.policy.allows_another_try(error)):
                return error
            _log.warning("%s; %s tries its task again", error, worker.label)
            self._on_retry(pending.key, error, pending.policy.batch)
            pending.tried_by.discard(worker)
        except RangeError as error:
            return error
        except DecoderBusyError as error:  # the other workers of the device go on
            self._last_error = error
            self._retire_for_decoder(worker, str(error))
            pending.tried_by.discard(worker)
        except DeviceError as error:
            self._last_error = error
            self._retire(worker, str(error))
        except InputError as error:  # a node may lack a share that the other nodes have
            elsewhere = {candidate for candidate in self._workers if candidate.host != worker.host}
            if pending.unreadable or not elsewhere:
                return error
            pending.unreadable = True
            pending.tried_by.update(set(self._workers) - elsewhere)
        except Exception as error:
            return error
        else:
            self._failures[worker] = self._given_up = 0
            return result
        self._requeue(pending)
        return None

    def _retry_elsewhere(self, pending: _PendingTask, worker: WorkerHandle, why: str) -> VkssimError | None:
        """Return the error for a task that has failed too often; None if it is tried again."""
        if pending.dropped:
            return None

        pending.attempts += 1
        if pending.attempts < MAX_ATTEMPTS:
            self._failures[worker] += 1
            self._warn(f"{why}; its task is tried again")
            if self._failures[worker] >= MAX_ATTEMPTS:
                self._retire(worker, why)
            self._requeue(pending)
            return None

        self._failures.clear()  # the task was the cause, not the workers
        self._given_up += 1
        clip, attempts = redact_url(pending.clip), counted(pending.attempts, "time")
        lost = WorkerLostError(f"{clip} was tried {attempts} and given up: {why}")
        _log.warning("%s", lost)
        if self._given_up >= MAX_ATTEMPTS:
            raise lost
        return lost

    def _requeue(self, pending: _PendingTask) -> None:
        if not pending.dropped:
            self._queue.appendleft(pending)

    def _retire(self, worker: WorkerHandle, why: str) -> None:
        self._retired.add(worker)
        self._warn(f"{worker.label} is no longer used: {why}")

    def _retire_for_decoder(self, worker: WorkerHandle, why: str) -> None:
        """Close a worker whose clips would occupy the decoder as well, unless it is the last worker."""
        if len(self._workers) > 1:
            self._retired.add(worker)
            self._workers.remove(worker)
            worker.retire()
        if why not in self._busy_decoders:
            self._busy_decoders.add(why)
            self._warn(why)

    def _warn(self, text: str) -> None:
        _log.warning("%s", text)
        self._on_warning(text)
