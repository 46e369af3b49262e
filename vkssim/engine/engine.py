"""The engine: jobs in, reports out. Every way to score goes through it.

A job is a pair of clips. A single worker scores jobs that share their reference together, so that the reference is decoded
once. Several workers divide pairs into ranges of frames. The scheduler hands tasks to workers, and only the scheduler decides
which tasks are tried again. Scores come back as events, so each frame is in the journal as soon as it is scored.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import count, takewhile

from ..errors import (
    DeviceError,
    DeviceLostError,
    HostMemoryError,
    InputError,
    InterruptedRunError,
    RangeError,
    ThresholdError,
    VkssimError,
    WorkerLostError,
    interrupted_run,
)
from ..frames.open import can_reopen
from ..report.results import FrameScores, ScoreReport, merged_info
from ..report.thresholds import Threshold
from ..utils.progress import Progress
from ..utils.wording import counted
from .journal import Journal
from .options import Clips, ScoreOptions, Selector, check_inputs, check_options
from .pools import WorkerOptions
from .ranges import BatchScored, Event, FrameRange, RangeBegun
from .rates import SECONDS
from .scheduler import Scheduler, TaskKey
from .task import Part, Task, TaskResult, WorkerPool
from .unfinished import Unfinished, bounds
from .verdict import add_hint, joined, merged

MAX_IN_STEP = 8
"""The largest number of distorted clips that are decoded at a time. For more clips, the reference is decoded again."""

_SHARES_EACH = 2  # of the frames that are left, for each worker of a pair, so that no worker waits long for the last range

Outcome = ScoreReport | Exception


@dataclass(frozen=True)
class Job:
    """A pair of clips to score.

    `key`, of lower-case letters and digits, is the name of the pair in the journal. `options` are those of the pair, with the
    features, planes and devices of the run; None stands for the options of the run.
    """

    key: str
    clips: Clips
    options: ScoreOptions | None = None


OnFrames = Callable[[Sequence[FrameScores]], None]
"""A function that gets frames that have just been scored, in order."""


@dataclass(frozen=True)
class RunSettings:
    """The settings of a run besides its clips and options, none of which changes a score; see `score_files`.

    `thresholds` are the thresholds that the scores must reach, and the pooled values that the report will be asked for. The
    progress counts the frames of all jobs; the frames of jobs that were not opened yet are estimated from the others. `seconds`
    is the target duration of a range. `tell` gets warnings about workers that fail. `pipes` allows inputs that can be read only
    once, which are never tried again.
    """

    profile: bool = False
    progress: Progress | None = None
    on_frames: OnFrames | None = None
    thresholds: Sequence[Threshold] = ()
    journal: Journal | None = None
    seconds: float = SECONDS
    tell: Callable[[str], None] = lambda _text: None
    pipes: bool = False


@dataclass
class _State:
    """A job while it is scored.

    `scored` are its ranges and frames. `seen` are the numbers of the pairs that are scored; an earlier run had
    scored `resumed` of them. `told` is the number of the next pair that the caller gets. `report` is that of the first range
    that began, without frames.
    """

    number: int
    job: Job
    options: ScoreOptions
    scored: Unfinished
    seen: set[int] = field(default_factory=set)
    pairs: int | None = None
    resumed: int = 0
    told: int = 0
    report: ScoreReport | None = None
    warnings: list[str] = field(default_factory=list)
    started: float = 0.0
    ended: float = 0.0
    error: Exception | None = None

    def range(self, index: int) -> FrameRange:
        """Return a range; the whole clips if they are not divided."""
        return self.scored.ranges[index] if self.scored.ranges else FrameRange()

    def partial_report(self) -> ScoreReport | None:
        """Return the report of the frames that follow each other from the first one on; None if there is no such report."""
        scores = self.scored.scores
        done = [scores[index] for index in takewhile(scores.__contains__, count())]
        if done:
            return self.completed(merged(done))
        if self.report is None:
            return None
        earlier = self.scored.earlier(self.range(0))  # a range that begins elsewhere is not known to be right before it ends
        infos = [self.report.backend, *(backend for _, _, backend in earlier)]
        return self.completed(replace(self.report, frames=[frame for frame, _, _ in earlier], backend=merged_info(infos)))

    def completed(self, report: ScoreReport) -> ScoreReport:
        """Return a report with the facts about the run."""
        report.warnings = [*self.warnings, *(text for text in report.warnings if text not in self.warnings)]
        report.seconds, report.resumed = max(0.0, self.ended - self.started), self.resumed
        return report


class Engine:
    """Score jobs on the workers of a pool."""

    def __init__(self, pool: WorkerPool, options: ScoreOptions, settings: RunSettings = RunSettings()) -> None:
        self._pool = pool
        self._options = options
        self._settings = settings
        self._journal = settings.journal
        self.scheduler = Scheduler(pool, settings.tell, self._on_event, self._on_retry)
        self._states: dict[int, _State] = {}
        self._groups: dict[int, list[_State]] = {}
        self._numbers = count()
        self._ready: deque[tuple[Job, Outcome]] = deque()
        self._done_frames = self._done_jobs = self._jobs = 0

    def score(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, Outcome]]:
        """Yield each job with its report or its error, in the order in which they are finished.

        An error's attribute `report` may hold some of the frames. Raises DeviceError if no worker is left, and OutputError if
        the journal cannot be written. An error that ends the run has the frames of the first unfinished job in its `report`.
        """
        if not jobs:
            return
        self._jobs = len(jobs)
        failure: VkssimError | None = None
        try:
            self.scheduler.update_workers()
            waiting = deque([job] for job in jobs) if self._pool.several else deque(_grouped(jobs))
            while waiting or self._groups or self._ready:
                while self._ready:
                    yield self._ready.popleft()
                if failure is not None:
                    raise failure
                if waiting and self.scheduler.needs_work:
                    self._begin(waiting.popleft(), len(waiting) + 1)
                elif self._groups:
                    try:
                        self._took(*self.scheduler.take())
                    except (DeviceError, WorkerLostError) as error:  # the run ends, and what is complete is not lost
                        failure = error
                        for group, states in list(self._groups.items()):
                            for state in [state for state in states if state.scored.complete]:
                                self._finish(group, state)
        except InterruptedRunError:
            raise
        except KeyboardInterrupt as stop:
            report = self._first_report()
            frames = counted(0 if report is None else len(report.frames), "frame")
            if report is not None:
                report.warnings.append(f"the run was stopped after {frames}; those after them are missing")
            raise interrupted_run(stop, f"stopped after {frames}; what was scored is kept", report) from None
        except VkssimError as error:
            error.report = error.report or self._first_report()
            raise
        except MemoryError:
            ended = HostMemoryError()
            ended.report = self._first_report()
            raise ended from None

    def _first_report(self) -> ScoreReport | None:
        return next((state.partial_report() for state in self._states.values()), None)

    # -- tasks -------------------------------------------------------------------------------------------------------

    def _begin(self, jobs: Sequence[Job], left: int) -> None:
        """Give the missing ranges of jobs to the scheduler."""
        whole: list[_State] = []
        for job in jobs:
            number = next(self._numbers)
            scored = Unfinished() if self._journal is None else self._journal.pair(job.key)
            options = job.options or self._options
            state = self._states[number] = _State(number, job, options, scored)
            if not all(map(scored.fits, scored.scores)):
                self._drop_ranges(state)
            for scores in scored.scores.values():
                state.pairs = scores.pairs
            self._count_earlier(state)
            while state.told in state.seen:
                state.told += 1
            if not scored.ranges:
                whole.append(state)
                continue
            self._groups[number] = [state]
            if scored.complete:
                if self._journal is not None:
                    self._journal.begin()
                self._finish(number, state)
            else:
                self._put_ranges(number, state)
        shares = self._shares(left)
        for states in [state for state in whole if state.seen], [state for state in whole if not state.seen]:
            if states:
                self._groups[states[0].number] = states
                self._put(states[0].number, 0, states, divides=self._pool.several, shares=shares)

    def _shares(self, left: int) -> int:
        """Return the number of shares into which the next job is divided; `left` jobs, this one included, have not begun."""
        workers = self.scheduler.workers
        if not self._pool.by_hardware:
            return -(-_SHARES_EACH * workers // left) if self._pool.several else 1
        # Each worker of a pair opens both clips: the driver does that one after the other, 0.1 s for both, and all decoders are
        # slower meanwhile. So workers share the last pairs only if these are at most half as many as the workers.
        last = (self._jobs - 1) % workers + 1
        return workers // last if left <= last else 1

    def _count_earlier(self, state: _State) -> None:
        scored = state.scored
        state.seen, state.resumed = set(), 0
        for index in range(max(1, len(scored.ranges))):
            frame_range = state.range(index)
            earlier = len(scored.earlier(frame_range))
            state.seen.update(range(frame_range.first, frame_range.first + earlier))
            state.resumed += earlier if index in scored.scores else max(0, earlier - 1)  # the last is scored again

    def _put(self, group: int, index: int, states: Sequence[_State], *, divides: bool = False, shares: int = 1) -> None:
        live = self._settings.on_frames is not None and not self._pool.several
        again = all(can_reopen(*state.job.clips.paths) for state in states)

        def make(batch: int | None) -> Task:
            left = [state for state in states if state.error is None and index not in state.scored.scores] or states[:1]
            earlier = [state.scored.earlier(state.range(index)) for state in left]
            least = min(map(len, earlier))  # clips in step begin with the same frame
            parts = tuple(
                Part(state.number, state.job.clips, frames[:least], state.range(index))
                for state, frames in zip(left, earlier, strict=True)
            )
            return Task(
                parts,
                states[0].options,
                divides=divides,
                seconds=self._settings.seconds,
                shares=shares,
                by_hardware=self._pool.by_hardware,
                batch=batch,
                live=live,
                pipes=self._settings.pipes,
            )

        self.scheduler.put(TaskKey(group, index), make, again=again, batch=1 if live else None)

    def _put_ranges(self, group: int, state: _State) -> None:
        for index in range(len(state.scored.ranges)):
            if index not in state.scored.scores:
                self._put(group, index, [state])

    def _took(self, key: TaskKey, done: TaskResult | Exception) -> None:
        group = key.group
        if isinstance(done, TaskResult) and done.ranges:
            (state,) = self._groups[group]
            state.scored.divide(done.ranges, done.packets)
            self._put_ranges(group, state)
            return
        for state in list(self._groups[group]):
            scored = state.scored
            failure = done if isinstance(done, Exception) and key.index not in scored.scores else None
            refused = isinstance(failure, RangeError) and len(scored.ranges) > 1
            if refused or (state.error is None and key.index in scored.scores and not scored.fits(key.index)):
                self._start_over(group, state)
                continue
            if state.error is None:
                state.error = copy(failure)  # each job attaches its own report to its error
            if state.error is None:
                self._tell_complete(state)
            if state.error is not None or scored.complete:
                self._finish(group, state)

    def _start_over(self, group: int, state: _State) -> None:
        """Have the clips scored as one range, because their frames are not at the positions that their packets announced."""
        self.scheduler.drop(group)
        self._drop_ranges(state)
        state.scored.ranges = [FrameRange()]
        self._put_ranges(group, state)

    def _drop_ranges(self, state: _State) -> None:
        state.scored.start_over()
        self._count_earlier(state)

    # -- events ------------------------------------------------------------------------------------------------------

    def _on_event(self, key: TaskKey, number: int, event: Event) -> None:
        state = self._states.get(number)
        if state is None:
            return
        frame_range = state.range(key.index)
        if isinstance(event, RangeBegun):
            state.started = state.started or time.perf_counter()
            state.report = state.report or event.report
        elif isinstance(event, BatchScored):
            scored = ((frame, other, event.backend) for frame, other in zip(event.frames, event.others, strict=True))
            state.seen.update(state.scored.add(bounds(frame_range), event.first, scored))
            state.pairs, state.ended = event.pairs, time.perf_counter()
            self._report_progress()
            if frame_range.start is None:  # frames after a seek wait until their range is known to be right
                self._tell_frames(state, event.first, event.frames)
        elif isinstance(event, Exception):
            state.error = event
        elif key.index not in state.scored.scores:
            state.ended = time.perf_counter()
            state.scored.end(key.index, event)

    def _tell_complete(self, state: _State) -> None:
        """Give the caller the frames of complete ranges, up to the first range that is not complete."""
        for index, frame_range in enumerate(state.scored.ranges):
            if index not in state.scored.scores or frame_range.first > state.told:
                return
            self._tell_frames(state, frame_range.first, state.scored.scores[index].report.frames)

    def _tell_frames(self, state: _State, first: int, frames: Sequence[FrameScores]) -> None:
        new = frames[max(0, state.told - first) :]
        state.told += len(new)
        if new and self._settings.on_frames is not None:
            self._settings.on_frames(new)

    def _on_retry(self, key: TaskKey, error: DeviceError, batch: int | None) -> None:
        """Warn of a device that failed in each report whose frames were on it."""
        for state in self._groups.get(key.group, ()):
            if state.report is None or state.error is not None or key.index in state.scored.scores:
                continue
            frames = counted(len(state.seen), "frame")
            if isinstance(error, DeviceLostError):
                what = f"was lost after {frames}; it was opened again, and the run continued after them"
            else:
                what = f"ran out of memory after {frames}; batches of {batch} were used from there on"
            state.warnings.append(f"{state.report.backend.device} {what}")

    def _report_progress(self) -> None:
        if self._settings.progress is None:
            return
        known = [state.pairs for state in self._states.values() if state.pairs is not None]
        jobs = len(known) + self._done_jobs
        total: int | None = None
        if jobs:
            frames = sum(known) + self._done_frames
            total = frames + round((self._jobs - jobs) * frames / jobs)
        done = self._done_frames + sum(len(state.seen) for state in self._states.values())
        self._settings.progress(done, total)

    # -- the end -----------------------------------------------------------------------------------------------------

    def _finish(self, group: int, state: _State) -> None:
        outcome = self._outcome(state)
        report = _report_of(outcome)
        self._states.pop(state.number)
        self._groups[group].remove(state)
        if not self._groups[group]:
            self.scheduler.drop(group)
            del self._groups[group]
        self._done_jobs += 1
        self._done_frames += 0 if report is None else len(report.frames)
        self._ready.append((state.job, outcome))

    def _outcome(self, state: _State) -> Outcome:
        error, scored = state.error, state.scored
        if error is None:
            scores = [scored.scores[index] for index in range(len(scored.ranges))]
            try:
                report = joined(scores, scored.packets, strict=state.options.strict, thresholds=self._settings.thresholds)
                return state.completed(report)
            except VkssimError as failure:
                if failure.report is not None:
                    failure.report = state.completed(failure.report)
                return failure
        if isinstance(error, MemoryError):
            error = HostMemoryError()
        if isinstance(error, VkssimError) and error.report is None:
            error.report = state.partial_report()
        return error


def _report_of(outcome: Outcome | InterruptedRunError) -> ScoreReport | None:
    return outcome if isinstance(outcome, ScoreReport) else getattr(outcome, "report", None)


def _grouped(jobs: Sequence[Job]) -> list[list[Job]]:
    """Return jobs of one reference and the same options together, in the order of the references."""
    groups: dict[object, list[Job]] = {}
    for job in jobs:
        groups.setdefault((job.clips.reference, job.clips.raw, job.options), []).append(job)
    most = MAX_IN_STEP
    return [group[start : start + most] for group in groups.values() for start in range(0, len(group), most)]


def score_jobs(
    jobs: Sequence[Job], options: ScoreOptions, where: WorkerOptions, settings: RunSettings = RunSettings()
) -> Generator[tuple[Job, Outcome], None, None]:
    """Yield each job with its outcome as `Engine.score` does. The caller has checked the options."""
    engines = settings.on_frames is None and options.sync == "index"
    in_step = max(map(len, _grouped(jobs)), default=1)
    with where.open([job.clips for job in jobs] if engines else [], options, in_step, settings.profile) as pool:
        yield from Engine(pool, options, settings).score(jobs)


def score_pair(
    clips: Clips, options: ScoreOptions, device: Selector = None, settings: RunSettings = RunSettings()
) -> ScoreReport:
    """Score a pair of clips on the device or the devices that `device` names. The errors are those of `score_files`."""
    check_inputs(*clips.paths)
    where = WorkerOptions(backend=options.backend, device=device)
    if len(where.several) > 1 and not can_reopen(*clips.paths):
        raise InputError("a pipe is read once, so that it cannot be scored in ranges; give the file itself, or one device")
    check_options(options, settings.thresholds)
    key = "pair"
    if settings.journal is not None:
        settings.journal.check(where.backends())
        key = settings.journal.key
    worker_warnings: list[str] = []
    settings = replace(settings, tell=worker_warnings.append, pipes=True)
    outcome: Outcome | InterruptedRunError
    with closing(score_jobs([Job(key, clips)], options, where, settings)) as outcomes:
        try:
            ((_, outcome),) = outcomes
        except (VkssimError, InterruptedRunError) as error:
            outcome = error
    report = _report_of(outcome)
    if report is not None:
        report.worker_warnings = worker_warnings
        if isinstance(outcome, ScoreReport | ThresholdError):
            _add_hint(report, clips, options)
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


def _add_hint(report: ScoreReport, clips: Clips, options: ScoreOptions) -> None:
    """Add the hint at a shift to a report of all frames. Raises InterruptedRunError if the user stops the search."""
    try:
        add_hint(report, clips, options)
    except KeyboardInterrupt as stop:
        frames = counted(len(report.frames), "frame")
        problem = f"stopped when all of {frames} had been scored; the scores are kept"
        raise interrupted_run(stop, problem, report) from None
