"""Hands tasks to workers, and to another one where a worker fails. What runs the workers is an engine's business."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from statistics import mean

from ..errors import (
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
from ..storage.remote import named
from ..utils.interruption import at_once
from ..utils.wording import counted
from .task import Done, Task
from .worker_pool import Engine, Seat, WorkerDiedError

MOST_ATTEMPTS = 4
"""At a task; of a worker, one after the other; and tasks given up in a row, until nothing is believed any more."""

_SECONDS_BETWEEN_LOOKS = 0.5
_LATE = 2.0  # times the mean duration of a task, from where on an idle worker tries it as well
_LEAST_DURATIONS, _MOST_DURATIONS = 3, 100
_SECONDS_UNTIL_LATE = 60.0  # while fewer durations are known; for idle workers of other machines, whom it costs nothing


@dataclass(frozen=True)
class TaskKey:
    """What a task is known by: the number of its job and of its part."""

    job: int
    place: int


@dataclass(eq=False)
class _Errand:
    """A task on its way: which workers have tried it and which are at it, since when, and how often it failed."""

    key: TaskKey
    task: Task
    tried_by: set[Seat] = field(default_factory=set)
    seats: set[Seat] = field(default_factory=set)
    started: float = 0.0
    attempts: int = 0
    doubted: bool = False
    done: bool = False


class Pool:
    """Takes tasks in the order in which they come, and gives their outcomes in the order in which they are there.

    A task whose worker died or lost its device goes to another worker, MOST_ATTEMPTS times in all. When there is nothing left
    to hand out, what takes much longer than usual is tried by an idle worker as well, and the first to be done counts. `tell`
    hears what the user should know of workers that fail.
    """

    def __init__(self, engine: Engine, tell: Callable[[str], None]) -> None:
        self._engine = engine
        self._tell = tell
        self._queue: deque[_Errand] = deque()
        self._running: dict[Future[Done], tuple[_Errand, Seat]] = {}
        # A signal that ends `concurrent.futures.wait` may leave futures locked, and whoever sets them waiting for ever.
        self._finished: SimpleQueue[Future[Done]] = SimpleQueue()
        self._failures: Counter[Seat] = Counter()  # one after the other
        self._retired: set[Seat] = set()
        self._given_up = 0  # tasks, one after the other
        self._durations: deque[float] = deque(maxlen=_MOST_DURATIONS)
        self._last_error: VkssimError = NoDeviceError("no worker is left")
        self._seats: list[Seat] = []

    @property
    def seats(self) -> int:
        """How many workers there were at the last look."""
        return len(self._seats)

    def look(self) -> None:
        """See which workers there are. Raises DeviceError where there is none."""
        self._seats = [seat for seat in self._engine.seats() if seat not in self._retired]
        if not self._seats:
            raise self._last_error

    @property
    def hungry(self) -> bool:
        """True where there are fewer tasks than would keep all workers busy."""
        return len(self._queue) < max(1, len(self._seats))

    def put(self, key: TaskKey, task: Task) -> None:
        """Add a task, by a key of its own."""
        self._queue.append(_Errand(key, task))

    def drop(self, job: int) -> None:
        """Want nothing more of a job's tasks."""
        self._queue = deque(errand for errand in self._queue if errand.key.job != job)
        for errand, _ in self._running.values():
            errand.done = errand.done or errand.key.job == job

    def take(self) -> tuple[TaskKey, Done | Exception]:
        """Wait for the next outcome: what came of a task, or why nothing did.

        Raises DeviceError where no worker is left, WorkerLostError where none gets anything done, Interruption for a signal.
        """
        while True:
            self.look()
            self._hand_out()
            try:
                with at_once():
                    future = self._finished.get(timeout=_SECONDS_BETWEEN_LOOKS)
            except Empty:
                continue
            errand, seat = self._running.pop(future)
            errand.seats.discard(seat)
            outcome = self._outcome(future, errand, seat)
            if isinstance(outcome, Exception) and errand.seats:  # the other attempt decides
                continue
            if outcome is not None and not errand.done:
                errand.done = True
                return errand.key, outcome

    def _hand_out(self) -> None:
        busy = {seat for _, seat in self._running.values()}
        for seat in self._seats:
            errand = None if seat in busy else self._next_for(seat)
            if errand is not None:
                errand.tried_by.add(seat)
                errand.seats.add(seat)
                errand.started = time.monotonic()
                future = seat.submit(errand.task)
                self._running[future] = errand, seat
                future.add_done_callback(self._finished.put)

    def _next_for(self, seat: Seat) -> _Errand | None:
        """The first task that this worker has not failed at, or all have; where there is none, one that is late elsewhere."""
        for place, errand in enumerate(self._queue):
            if self._may_try(errand, seat):
                del self._queue[place]
                return errand
        known = len(self._durations) >= _LEAST_DURATIONS
        since = time.monotonic() - (_LATE * mean(self._durations) if known else _SECONDS_UNTIL_LATE)
        late = [
            errand
            for errand, other in self._running.values()
            if errand.started < since and not errand.done and (known or other.host != seat.host)
        ]
        alone = [errand for errand in late if len(errand.seats) == 1 and self._may_try(errand, seat)]
        return min(alone, key=lambda errand: errand.started, default=None)

    def _may_try(self, errand: _Errand, seat: Seat) -> bool:
        """Return True where the worker has not failed at a task, or all have, so that none would do better."""
        return seat not in errand.tried_by or errand.tried_by.issuperset(self._seats)

    def _outcome(self, future: Future[Done], errand: _Errand, seat: Seat) -> Done | Exception | None:
        """What came of an attempt; None where another one may do better."""
        try:
            done = future.result()
        except WorkerDiedError as error:
            seat.renew()
            return self._failed(errand, seat, f"a worker on {seat.label} ended without a word ({error})")
        except (DeviceLostError, DeviceTimeoutError) as error:
            self._last_error = error
            return self._failed(errand, seat, str(error))
        except DeviceMemoryError as error:
            return error
        except DeviceError as error:
            self._last_error = error
            self._retire(seat, str(error))
            self._again(errand)
            return None
        except RangeError as error:
            return error
        except InputError as error:
            return None if self._doubted(errand, seat) else error
        except Exception as error:
            return error
        self._failures[seat] = self._given_up = 0
        if done.scores is not None:
            self._durations.append(done.seconds)
        return done

    def _doubted(self, errand: _Errand, seat: Seat) -> bool:
        """Have clips that a node cannot read tried once on another one: the first may lack a share that the others have."""
        if errand.doubted or not any(other.host != seat.host for other in self._seats):
            return False
        errand.doubted = True
        errand.tried_by.update(other for other in self._seats if other.host == seat.host)
        self._again(errand)
        return True

    def _failed(self, errand: _Errand, seat: Seat, why: str) -> VkssimError | None:
        errand.attempts += 1
        if errand.done or errand.seats:
            return None
        if errand.attempts < MOST_ATTEMPTS:
            self._failures[seat] += 1
            self._tell(f"{why}; what it scored goes to another one")
            if self._failures[seat] >= MOST_ATTEMPTS:
                self._retire(seat, why)
            self._again(errand)
            return None
        self._failures.clear()  # it was the task's fault
        self._given_up += 1
        clips = errand.task.clips
        lost = WorkerLostError(f"{named(clips.distorted)} was tried {counted(errand.attempts, 'time')} and given up: {why}")
        if self._given_up >= MOST_ATTEMPTS:
            raise lost
        return lost

    def _again(self, errand: _Errand) -> None:
        if not (errand.done or errand.seats):
            self._queue.appendleft(errand)

    def _retire(self, seat: Seat, why: str) -> None:
        self._retired.add(seat)
        self._tell(f"{seat.label} is used no more: {why}")
