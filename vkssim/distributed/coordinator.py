"""Divide pairs of clips into ranges, have the ranges scored, and put their scores together again."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ..errors import RangeError, VkssimError
from ..report.results import ScoreReport
from ..report.thresholds import Threshold
from ..scoring.options import Clips, ScoreOptions
from ..scoring.range_folder import RangeFolder, name_of
from ..scoring.ranges import DividedScores, EarlierScores, FrameRange, RangeScores, consecutive, joined
from .rates import SECONDS
from .scheduler import Scheduler, TaskKey
from .task import Done, Task

_RANGES_EACH = 4  # for each worker, of a pair that is scored alone, so that no worker waits long for the last range


@dataclass(frozen=True)
class Job:
    """Hold a pair of clips to score.

    `key`, of lower-case letters and digits, is the name under which its ranges are stored until it is done. `earlier` are the
    frames that an earlier run on one device scored in order.
    """

    key: str
    clips: Clips
    earlier: tuple[EarlierScores, ...] = ()


OnRange = Callable[[Job, FrameRange, RangeScores, Done | None], None]
"""A function that gets the scores of each finished range, in any order; Done is None for a range of an earlier run."""


@dataclass
class _State:
    """Hold a job while it is scored."""

    job: Job
    divided: DividedScores = field(default_factory=DividedScores)


class Coordinator:
    """Score jobs on a scheduler.

    If there is a `folder`, the scores of each range are stored in it until the job is done. The next run finds them there, and
    scores only the missing ranges. The folder is made, and stays. Workers write the ranges that they have scored. The
    coordinator writes a range that its worker cannot write, for instance because the machine of the worker has no such folder.

    Raises OutputError where the folder is not vkssim's.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        options: ScoreOptions,
        *,
        folder: RangeFolder | None = None,
        seconds: float = SECONDS,
        thresholds: Sequence[Threshold] = (),
        on_range: OnRange = lambda _job, _range, _scores, _done: None,
    ) -> None:
        self._scheduler = scheduler
        self._options = options
        self._folder = folder
        self._names: set[str] = set()
        if folder is not None:
            folder.make()
            self._names = folder.names()
        self._seconds = seconds
        self._thresholds = thresholds
        self._on_range = on_range
        self._states: dict[int, _State] = {}

    def score(self, jobs: Iterable[Job]) -> Iterator[tuple[Job, ScoreReport | Exception]]:
        """Yield each job with its report or its error, in the order in which they are finished.

        An error's attribute `report` may hold some of the frames. The stored ranges of a job are removed when the caller asks
        for the next job. Raises DeviceError where no worker is left.
        """
        waiting = deque(enumerate(jobs))
        while waiting or self._states:
            while waiting and self._scheduler.needs_work:
                number, job = waiting.popleft()
                outcome = self._begin(number, job, len(waiting) + 1)
                if outcome is not None:
                    yield job, outcome
                    self._end(number)
            if not self._states:
                continue
            key, done = self._scheduler.take()
            state = self._states[key.job]
            outcome = self._took(key.job, state, key.index, done)
            if outcome is not None:
                self._scheduler.drop(key.job)
                yield state.job, outcome
                self._end(key.job)

    def _begin(self, number: int, job: Job, jobs: int) -> ScoreReport | Exception | None:
        """Give the missing ranges of a job to the scheduler; return the outcome of the job if none is missing."""
        state = self._states[number] = _State(job)
        if self._folder is not None:
            state.divided = self._folder.find(job.key, self._options, self._names)
        divided = state.divided
        if not all(map(divided.fits, divided.scores)):
            self._start_over(number, state)
            return None
        for index, scores in divided.scores.items():
            self._on_range(job, divided.ranges[index], scores, None)
        if not divided.ranges:
            self._scheduler.update_workers()
            least = -(-_RANGES_EACH * self._scheduler.workers // jobs)
            self._scheduler.put(TaskKey(number, 0), self._task(job, None, least))
            return None
        if divided.complete:
            return self._joined(state)
        self._put_ranges(number, state)
        return None

    def _task(self, job: Job, frame_range: FrameRange | None, least: int = 1) -> Task:
        """Return the task that scores a range; for None, all of the clips, or their division into `least` ranges or more."""
        scored = frame_range or FrameRange()
        return Task(
            job.clips,
            self._options,
            frame_range,
            self._seconds,
            least,
            None if self._folder is None else self._folder.place,
            name_of(job.key, scored),
            consecutive(job.earlier, scored),
        )

    def _put_ranges(self, number: int, state: _State) -> None:
        for index, frame_range in enumerate(state.divided.ranges):
            if index not in state.divided.scores:
                self._scheduler.put(TaskKey(number, index), self._task(state.job, frame_range))

    def _took(self, number: int, state: _State, index: int, done: Done | Exception) -> ScoreReport | Exception | None:
        job, divided = state.job, state.divided
        if isinstance(done, RangeError) and len(divided.ranges) > 1:
            self._start_over(number, state)
            return None
        if isinstance(done, Exception):
            return done
        if done.scores is None:
            divided.ranges, divided.packets = done.ranges, done.packets
            if self._folder is not None:
                self._folder.write_division(job.key, divided)
            self._put_ranges(number, state)
            return None
        divided.ranges = divided.ranges or done.ranges
        frame_range = divided.ranges[index]
        divided.scores[index] = done.scores
        if not divided.fits(index):
            self._start_over(number, state)
            return None
        try:
            if self._folder is not None and not (done.stored or done.scores.problem):
                self._folder.write(name_of(job.key, frame_range), done.scores)
        finally:  # the report of an OutputError has the range as well
            self._on_range(job, frame_range, done.scores, done)
        return self._joined(state) if divided.complete else None

    def _start_over(self, number: int, state: _State) -> None:
        """Have the clips scored as one range, because their frames are not at the positions that their packets announced."""
        self._scheduler.drop(number)
        self._remove(state)
        state.divided = DividedScores([FrameRange()])
        self._put_ranges(number, state)

    def _joined(self, state: _State) -> ScoreReport | Exception:
        divided = state.divided
        range_scores = [divided.scores[index] for index in range(len(divided.ranges))]
        try:
            return joined(range_scores, divided.packets, strict=self._options.strict, thresholds=self._thresholds)
        except VkssimError as error:
            return error

    def _end(self, number: int) -> None:
        self._remove(self._states.pop(number))

    def _remove(self, state: _State) -> None:
        if self._folder is not None:
            self._folder.remove(state.job.key, state.divided.ranges)
