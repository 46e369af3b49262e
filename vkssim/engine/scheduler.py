"""Hand tasks to the workers of a pool, and to another worker if one fails."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from queue import Empty, SimpleQueue
from statistics import fmean

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
from .task import ClipsOpened, Task, TaskEvent, TaskResult, WorkerDiedError, WorkerHandle, WorkerPool

MAX_ATTEMPTS = 4
"""How often a task is tried, how often in a row a worker may fail, and how many tasks in a row may be given up."""

_POLL_INTERVAL_S = 0.5
_LATE = 2.0  # multiple of the mean duration of a task, after which an idle worker tries it as well
_MIN_DURATIONS, _MAX_DURATIONS = 3, 100
# The time after which a task counts as late while fewer durations are known. Then only workers of other machines try it.
_SECONDS_UNTIL_LATE = 60.0


@dataclass(frozen=True)
class TaskKey:
    """The number of a group of jobs, and the index of a range."""

    group: int
    index: int


MakeTask = Callable[[int | None], Task]
"""A function that gets the largest number of frames of a batch, and returns a task with the work that is left at that time."""

OnEvent = Callable[[TaskKey, int, Event], None]
"""A function that gets each event of a task, with the number of its job."""

OnRetry = Callable[[TaskKey, DeviceError, int | None], None]
"""A function that gets the error of a device that is used again for a task, and the new largest number of frames of a batch."""


@dataclass(eq=False)
class _PendingTask:
    """A task without an outcome.

    `policy` decides about failures of its device. `again` says that its clips can be read a second time. `tried_by` are the
    workers that have tried it, and `workers` those that are trying it now, the latest since `started`. `attempts` is the number
    of failed attempts. `division` is the task while a worker that has opened its clips divides them, so that its outcome will
    probably be ranges. `unreadable` says that a worker on another machine could not read the clips. `done` says that nobody
    needs the outcome any more.
    """

    key: TaskKey
    make: MakeTask
    again: bool
    policy: FailurePolicy
    clip: str = ""
    tried_by: set[WorkerHandle] = field(default_factory=set)
    workers: set[WorkerHandle] = field(default_factory=set)
    started: float = 0.0
    attempts: int = 0
    division: Task | None = None
    unreadable: bool = False
    done: bool = False


_Step = tuple[_PendingTask, int, TaskEvent]


class Scheduler:
    """The tasks that wait and run. Their outcomes are returned as soon as they are known. Only the scheduler tries work again.

    A worker goes on with the group of its last task, so that several pairs are scored side by side and few clips are opened.
    While clips of a hardware decoder are divided, idle workers open them as well, and wait for their ranges.

    A task whose worker died or lost its device goes to another worker, until it was tried MAX_ATTEMPTS times. If there
    is no other worker, or memory runs out, the `FailurePolicy` of the task decides. If no task waits, an idle worker also
    tries a task that takes much longer than usual on another device, and the first result counts. `tell` gets warnings about
    workers that fail.
    """

    def __init__(
        self,
        pool: WorkerPool,
        tell: Callable[[str], None],
        on_event: OnEvent = lambda _key, _job, _event: None,
        on_retry: OnRetry = lambda _key, _error, _batch: None,
    ) -> None:
        self._pool = pool
        self._tell = tell
        self._on_event = on_event
        self._on_retry = on_retry
        self._queue: deque[_PendingTask] = deque()
        self._running: dict[Future[TaskResult], tuple[_PendingTask, WorkerHandle]] = {}
        # A signal that ends `concurrent.futures.wait` may leave futures locked, and the threads that set them wait for ever.
        self._finished: SimpleQueue[Future[TaskResult] | _Step] = SimpleQueue()
        self._thread = threading.get_ident()
        self._failures: Counter[WorkerHandle] = Counter()  # consecutive failures
        self._groups: dict[WorkerHandle, int] = {}  # the group of the last task of each worker
        self._retired: set[WorkerHandle] = set()
        self._busy_decoders: set[str] = set()  # messages that were passed on, because many workers have the same one
        self._given_up = 0  # consecutive tasks
        self._durations: deque[float] = deque(maxlen=_MAX_DURATIONS)
        self._last_error: VkssimError = NoDeviceError("no worker is left")
        self._workers: list[WorkerHandle] = []

    @property
    def workers(self) -> int:
        """Return the number of workers that the last `update_workers` found."""
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

    def put(self, key: TaskKey, make: MakeTask, *, again: bool = True, batch: int | None = None) -> None:
        """Add a task under a key that no other task has, with batches of `batch` frames at most."""
        self._queue.append(_PendingTask(key, make, again, FailurePolicy(batch)))

    def drop(self, group: int) -> None:
        """Forget the tasks of a group."""
        self._queue = deque(pending for pending in self._queue if pending.key.group != group)
        for pending, _ in self._running.values():
            pending.done = pending.done or pending.key.group == group

    def take(self) -> tuple[TaskKey, TaskResult | Exception]:
        """Wait for the next outcome, and return it with its key: the result of a task, or the error that prevented it.

        Raises DeviceError if no worker is left, WorkerLostError if several tasks in a row were given up, Interruption for a
        signal, and what `on_event` raises.
        """
        while True:
            self.update_workers()
            self._hand_out()
            try:
                with interruptible():
                    step = self._finished.get(timeout=_POLL_INTERVAL_S)
            except Empty:
                continue
            if isinstance(step, tuple):
                self._pass_on(*step)
                continue
            pending, worker = self._running.pop(step)
            pending.workers.discard(worker)
            outcome = self._outcome(step, pending, worker)
            if isinstance(outcome, Exception) and pending.workers:  # the other worker decides
                continue
            if outcome is not None and not pending.done:
                pending.done = True
                return pending.key, outcome

    def _hand_out(self) -> None:
        busy = {worker for _, worker in self._running.values()}
        for worker in [worker for worker in self._workers if worker not in busy]:
            pending = self._next_for(worker)
            if pending is not None:
                self._hand_to(worker, pending)
            elif not self._wait_for_division(worker) and worker in self._groups:
                del self._groups[worker]
                worker.rest()

    def _wait_for_division(self, worker: WorkerHandle) -> bool:
        """Return whether clips are being divided. The worker opens those that the fewest workers have."""
        divisions = self._divisions()
        if divisions and self._groups.get(worker) not in divisions:
            workers = Counter(self._groups.values())
            self._groups[worker] = group = min(divisions, key=lambda group: workers[group])
            worker.open_ahead(divisions[group])
        return bool(divisions)

    def _divisions(self) -> dict[int, Task]:
        """Return the divisions that run, by their groups."""
        return {pending.key.group: pending.division for pending, _ in self._running.values() if pending.division is not None}

    def _hand_to(self, worker: WorkerHandle, pending: _PendingTask) -> None:
        pending.tried_by.add(worker)
        pending.workers.add(worker)
        pending.started = time.monotonic()
        alone = not worker.shares_decoder or len(self._workers) == 1
        task = replace(pending.make(pending.policy.batch), alone=alone, then=self._after(pending, worker))
        pending.clip, pending.division = task.clips.distorted, None
        future = worker.submit(task, partial(self._take_event, pending))
        self._running[future] = pending, worker
        future.add_done_callback(self._finished.put)

    def _after(self, pending: _PendingTask, worker: WorkerHandle) -> tuple[Clips, ScoreOptions] | None:
        """Return the clips of another group if a worker will probably go on with them after a task."""
        waiting = [other for other in self._queue if self._may_try(other, worker)]
        if not waiting or any(other.key.group == pending.key.group for other in waiting):
            return None
        task = self._best(waiting, worker).make(None)
        return (task.clips, task.options) if len(task.parts) == 1 and not task.pipes else None

    def _take_event(self, pending: _PendingTask, job: int, event: TaskEvent) -> None:
        """Take an event from the thread of a worker, which may be that of the caller."""
        if threading.get_ident() == self._thread:
            self._pass_on(pending, job, event)
        else:
            self._finished.put((pending, job, event))

    def _pass_on(self, pending: _PendingTask, job: int, event: TaskEvent) -> None:
        if isinstance(event, ClipsOpened):
            pending.division = event.task
            return
        if isinstance(event, RangeBegun):
            pending.policy.batch = event.batch
            pending.division = None  # the worker scores all of the clips
        if not pending.done:
            self._on_event(pending.key, job, event)

    def _next_for(self, worker: WorkerHandle) -> _PendingTask | None:
        """Return the waiting task that suits the worker best, or else the running task that is late by the most.

        A task of the worker's last group comes first, because its clips may still be open; then a task of the group that the
        fewest workers have; then the first task. None if there is no such task, or if the worker waits for the ranges of its
        group.
        """
        if self._groups.get(worker) in self._divisions():
            return None
        allowed = [pending for pending in self._queue if self._may_try(pending, worker)]
        if allowed:
            best = self._best(allowed, worker)
            self._queue.remove(best)
            self._groups[worker] = best.key.group
            return best
        if worker.shares_decoder:  # it would not be quicker on the same GPU
            return None
        known = len(self._durations) >= _MIN_DURATIONS
        since = time.monotonic() - (_LATE * fmean(self._durations) if known else _SECONDS_UNTIL_LATE)
        late = [
            pending
            for pending, other in self._running.values()
            if pending.started < since and not pending.done and (known or other.host != worker.host)
            if len(pending.workers) == 1 and pending.attempts + 1 < MAX_ATTEMPTS and self._may_try(pending, worker)
        ]
        return min(late, key=lambda pending: pending.started, default=None)

    def _best(self, waiting: Sequence[_PendingTask], worker: WorkerHandle) -> _PendingTask:
        own, running = self._groups.get(worker), Counter(pending.key.group for pending, _ in self._running.values())
        return min(waiting, key=lambda pending: (pending.key.group != own, running[pending.key.group]))

    def _may_try(self, pending: _PendingTask, worker: WorkerHandle) -> bool:
        """Return True if the worker has not tried a task yet, or if all workers have, so that no other is better."""
        return worker not in pending.tried_by or pending.tried_by.issuperset(self._workers)

    def _outcome(
        self, future: Future[TaskResult], pending: _PendingTask, worker: WorkerHandle
    ) -> TaskResult | Exception | None:
        """Return the outcome of an attempt; None if another attempt decides."""
        try:
            done = future.result()
        except WorkerDiedError as error:
            return self._failed(pending, worker, f"a worker on {worker.label} ended unexpectedly ({error})")
        except (DeviceLostError, DeviceTimeoutError, DeviceMemoryError) as error:
            self._last_error = error
            if len(self._workers) > 1 and not isinstance(error, DeviceMemoryError):
                return self._failed(pending, worker, str(error))
            if pending.done or not (pending.again and pending.policy.allows_another_try(error)):
                return error
            self._on_retry(pending.key, error, pending.policy.batch)
            pending.tried_by.discard(worker)
        except RangeError as error:
            return error
        except DecoderBusyError as error:  # the other workers of the device go on
            self._last_error = error
            if len(self._workers) > 1:
                self._retired.add(worker)
                self._workers.remove(worker)
                worker.close()  # clips that it keeps open occupy the decoder, too
            pending.tried_by.discard(worker)
            if str(error) not in self._busy_decoders:
                self._busy_decoders.add(str(error))
                self._tell(str(error))
        except DeviceError as error:
            self._last_error = error
            self._retire(worker, str(error))
        except InputError as error:  # a node may lack a share that the others have
            elsewhere = {other for other in self._workers if other.host != worker.host}
            if pending.unreadable or not elsewhere:
                return error
            pending.unreadable = True
            pending.tried_by.update(set(self._workers) - elsewhere)
        except Exception as error:
            return error
        else:
            self._failures[worker] = self._given_up = 0
            if not done.ranges:
                self._durations.append(done.seconds)
            return done
        self._requeue(pending)
        return None

    def _failed(self, pending: _PendingTask, worker: WorkerHandle, why: str) -> VkssimError | None:
        """Return the error for a task that has failed too often; None if it is tried again or another worker still tries it."""
        pending.attempts += 1
        if pending.done or pending.workers:
            return None
        if pending.attempts < MAX_ATTEMPTS:
            self._failures[worker] += 1
            self._tell(f"{why}; its task is tried again")
            if self._failures[worker] >= MAX_ATTEMPTS:
                self._retire(worker, why)
            self._requeue(pending)
            return None
        self._failures.clear()  # the task was the cause, not the workers
        self._given_up += 1
        clip, attempts = redact_url(pending.clip), counted(pending.attempts, "time")
        lost = WorkerLostError(f"{clip} was tried {attempts} and given up: {why}")
        if self._given_up >= MAX_ATTEMPTS:
            raise lost
        return lost

    def _requeue(self, pending: _PendingTask) -> None:
        if not (pending.done or pending.workers):
            self._queue.appendleft(pending)

    def _retire(self, worker: WorkerHandle, why: str) -> None:
        self._retired.add(worker)
        self._tell(f"{worker.label} is no longer used: {why}")
