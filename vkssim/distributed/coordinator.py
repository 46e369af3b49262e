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
    """A pair of clips.

    `key`, of small letters and digits, is the name under which its scores are kept meanwhile. `earlier` are frames that a run
    on one device scored in order.
    """

    key: str
    clips: Clips
    earlier: tuple[EarlierScores, ...] = ()


OnRange = Callable[[Job, FrameRange, RangeScores, Done | None], None]
"""Called with the scores of a range as soon as they are there, in any order; with what it took where this run scored it."""


@dataclass
class _State:
    """Hold a job while it is scored."""

    job: Job
    divided: DividedScores = field(default_factory=DividedScores)


class Coordinator:
    """Score jobs on a scheduler.

    Where there is a folder of `ranges`, the scores of each range are kept in it until the job is done, and found there by the
    next run, which scores only what is missing. The folder is made, and stays. Workers write there what they have scored. The
    coordinator writes what a worker cannot write, because its machine has no such folder for instance.

    Raises OutputError where the folder is not vkssim's.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        options: ScoreOptions,
        *,
        ranges: RangeFolder | None = None,
        seconds: float = SECONDS,
        thresholds: Sequence[Threshold] = (),
        on_range: OnRange = lambda _job, _range, _scores, _done: None,
    ) -> None:
        self._scheduler = scheduler
        self._options = options
        self._folder = ranges
        self._names: set[str] = set()
        if ranges is not None:
            ranges.make()
            self._names = ranges.names()
        self._seconds = seconds
        self._thresholds = thresholds
        self._on_range = on_range
        self._states: dict[int, _State] = {}

    def score(self, jobs: Iterable[Job]) -> Iterator[tuple[Job, ScoreReport | Exception]]:
        """Yield each job's report, or why there is none, as they are done; an error's attribute `report` may have some of it.

        What is kept of a job goes when the next one is asked for. Raises DeviceError where no worker is left.
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
            outcome = self._took(key.job, state, key.place, done)
            if outcome is not None:
                self._scheduler.drop(key.job)
                yield state.job, outcome
                self._end(key.job)

    def _begin(self, number: int, job: Job, jobs: int) -> ScoreReport | Exception | None:
        """Put what is missing of a job into the scheduler; return its outcome where nothing is missing."""
        state = self._states[number] = _State(job)
        if self._folder is not None:
            state.divided = self._folder.find(job.key, self._options, self._names)
        divided = state.divided
        if not all(map(divided.fits, divided.scores)):
            self._start_over(number, state)
            return None
        for place, scores in divided.scores.items():
            self._on_range(job, divided.ranges[place], scores, None)
        if not divided.ranges:
            self._scheduler.look()
            least = -(-_RANGES_EACH * self._scheduler.workers // jobs)
            self._scheduler.put(TaskKey(number, 0), self._task(job, None, least))
            return None
        if divided.complete:
            return self._joined(state)
        self._put_ranges(number, state)
        return None

    def _task(self, job: Job, frame_range: FrameRange | None, least: int = 1) -> Task:
        folder = None if self._folder is None else self._folder.place
        earlier = consecutive(job.earlier, frame_range or FrameRange())
        return Task(
            job.clips,
            self._options,
            frame_range,
            self._seconds,
            least,
            folder,
            name_of(job.key, frame_range or FrameRange()),
            earlier,
        )

    def _put_ranges(self, number: int, state: _State) -> None:
        for place, frame_range in enumerate(state.divided.ranges):
            if place not in state.divided.scores:
                self._scheduler.put(TaskKey(number, place), self._task(state.job, frame_range))

    def _took(self, number: int, state: _State, place: int, done: Done | Exception) -> ScoreReport | Exception | None:
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
        frame_range = divided.ranges[place]
        if self._folder is not None and not (done.kept or done.scores.problem):
            self._folder.write(name_of(job.key, frame_range), done.scores)
        divided.scores[place] = done.scores
        if not divided.fits(place):
            self._start_over(number, state)
            return None
        self._on_range(job, frame_range, done.scores, done)
        return self._joined(state) if divided.complete else None

    def _start_over(self, number: int, state: _State) -> None:
        """Have the clips scored as one range, because their frames are not where their packets promised them."""
        self._scheduler.drop(number)
        self._remove(state)
        state.divided = DividedScores([FrameRange()])
        self._put_ranges(number, state)

    def _joined(self, state: _State) -> ScoreReport | Exception:
        divided = state.divided
        range_scores = [divided.scores[place] for place in range(len(divided.ranges))]
        try:
            return joined(range_scores, divided.packets, strict=self._options.strict, thresholds=self._thresholds)
        except VkssimError as error:
            return error

    def _end(self, number: int) -> None:
        self._remove(self._states.pop(number))

    def _remove(self, state: _State) -> None:
        if self._folder is not None:
            self._folder.remove(state.job.key, state.divided.ranges)
