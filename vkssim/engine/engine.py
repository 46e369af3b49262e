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
from ..frames.open import can_reopen, check_reopens
from ..report.results import FrameScores, ScoreReport, merged_info
from ..report.thresholds import Threshold
from ..utils.choices import TASK_SECONDS
from ..utils.progress import Progress
from ..utils.wording import counted
from .journal import Journal
from .options import Clips, ScoreOptions, Selector, check_inputs, check_options
from .pools import WorkerOptions
from .ranges import BatchScored, Event, FrameRange, RangeBegun, Unfinished
from .scheduler import Scheduler, TaskKey
from .task import Division, Part, Task, TaskResult, WorkerPool
from .verdict import add_hint, joined, merged

Outcome = ScoreReport | Exception


@dataclass(frozen=True)
class Job:
    """A pair of clips to score."""

    key: str
    """The name of the pair in the journal, of lower-case letters and digits."""
    clips: Clips
    options: ScoreOptions | None = None
    """The options of the pair, with the features, planes and devices of the run; None stands for the options of the run."""


OnFrames = Callable[[Sequence[FrameScores]], None]
"""A function that gets frames that have just been scored, in order."""


@dataclass(frozen=True)
class RunSettings:
    """The settings of a run besides its clips and options, none of which changes a score; see `score_files`."""

    profile: bool = False
    progress: Progress | None = None
    """The progress in frames of all jobs. The frames of jobs that were not opened yet are estimated from the others."""
    on_frames: OnFrames | None = None
    thresholds: Sequence[Threshold] = ()
    """The thresholds that the scores must reach, and the pooled values that the report must have."""
    journal: Journal | None = None
    seconds: float = TASK_SECONDS
    """The target duration of a range."""
    warn: Callable[[str], None] = lambda _text: None
    """The function that gets warnings about workers that fail."""
    pipes: bool = False
    """True if inputs may be pipes, which are read only once and never tried again."""


@dataclass
class _State:
    """A job while it is scored."""

    number: int
    job: Job
    options: ScoreOptions
    scored: Unfinished
    """The ranges and frames that are scored."""
    seen: set[int] = field(default_factory=set)
    """The numbers of the pairs that are scored."""
    pairs: int | None = None
    resumed: int = 0
    """The number of pairs that an earlier run has scored."""
    reported: int = 0
    """The number of the next pair that the caller gets."""
    report: ScoreReport | None = None
    """The report of the first range that began, without frames."""
    warnings: list[str] = field(default_factory=list)
    started: float = 0.0
    ended: float = 0.0
    error: Exception | None = None

    def range(self, index: int) -> FrameRange:
        """Return a range; the whole clips if they are not divided."""
        return self.scored.ranges[index] if self.scored.ranges else FrameRange()

    def count_earlier(self) -> None:
        """Count the pairs that are scored already."""
        self.seen, self.resumed = set(), 0
        for index in range(max(1, len(self.scored.ranges))):
            frame_range = self.range(index)
            earlier = len(self.scored.earlier(frame_range))
            self.seen.update(range(frame_range.first, frame_range.first + earlier))
            self.resumed += earlier if index in self.scored.scores else max(0, earlier - 1)  # the last is scored again

    def drop_ranges(self) -> None:
        """Drop the ranges and their frames."""
        self.scored.start_over()
        self.count_earlier()

    def partial_report(self) -> ScoreReport | None:
        """Return the report of the frames that follow each other from the first one on; None if there is no such report."""
        scores = self.scored.scores
        complete = [scores[index] for index in takewhile(scores.__contains__, count())]
        if complete:
            return self.completed(merged(complete))
        if self.report is None:
            return None
        earlier = self.scored.earlier(self.range(0))  # a range that begins elsewhere may be wrong until it ends
        infos = [self.report.backend, *(backend for _, _, backend in earlier)]
        return self.completed(replace(self.report, frames=[frame for frame, _, _ in earlier], backend=merged_info(infos)))

    def completed(self, report: ScoreReport) -> ScoreReport:
        """Return a report with the facts about the run."""
        report.warnings = [*self.warnings, *(text for text in report.warnings if text not in self.warnings)]
        report.seconds, report.resumed = max(0.0, self.ended - self.started), self.resumed
        return report

    def outcome(self, thresholds: Sequence[Threshold]) -> Outcome:
        """Return the report of all ranges, or the error, which may have a partial report."""
        error = self.error
        if error is None:
            ranges = [self.scored.scores[index] for index in range(len(self.scored.ranges))]
            try:
                return self.completed(joined(ranges, self.scored.packets, strict=self.options.strict, thresholds=thresholds))
            except VkssimError as failure:
                if failure.report is not None:
                    failure.report = self.completed(failure.report)
                return failure

        if isinstance(error, MemoryError):
            error = HostMemoryError()
        if isinstance(error, VkssimError) and error.report is None:
            error.report = self.partial_report()
        return error


class Engine:
    """Score jobs on the workers of a pool."""

    def __init__(self, pool: WorkerPool, options: ScoreOptions, settings: RunSettings = RunSettings()) -> None:
        self._pool = pool
        self._options = options
        self._settings = settings
        self._journal = settings.journal
        self.scheduler = Scheduler(pool, settings.warn, self._on_event, self._on_retry)
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
            waiting = deque(_grouped(jobs, self._pool.in_step))
            while waiting or self._groups or self._ready:
                while self._ready:
                    yield self._ready.popleft()
                if failure is not None:
                    raise failure

                if waiting and self.scheduler.needs_work:
                    self._begin(waiting.popleft(), len(waiting) + 1)
                elif self._groups:
                    try:
                        self._handle_outcome(*self.scheduler.next_outcome())
                    except (DeviceError, WorkerLostError) as error:  # the run ends, and complete pairs are not lost
                        failure = error
                        self._finish_complete()
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
        """Give the missing ranges of jobs to the scheduler; `left` groups of jobs, this one included, have not begun."""
        whole: list[_State] = []
        for job in jobs:
            state = self._new_state(job)
            if state.error is not None:
                self._groups[state.number] = [state]
                self._finish(state.number, state)
            elif not state.scored.ranges:
                whole.append(state)
            else:  # an earlier run has divided it
                self._groups[state.number] = [state]
                self._put_ranges(state.number, state)
                if state.scored.complete:
                    if self._journal is not None:
                        self._journal.begin()
                    self._finish(state.number, state)

        division = Division(self._sharers(left), self._settings.seconds) if self._pool.several else None
        for states in [state for state in whole if state.seen], [state for state in whole if not state.seen]:
            if states:
                self._groups[states[0].number] = states
                self._put(states[0].number, 0, states, division if len(states) == 1 else None)

    def _new_state(self, job: Job) -> _State:
        """Return the state of a job, with the scores of the journal."""
        scored = Unfinished() if self._journal is None else self._journal.pair(job.key)
        number = next(self._numbers)
        state = self._states[number] = _State(number, job, job.options or self._options, scored)
        if not self._settings.pipes:
            try:
                check_reopens(*job.clips.paths)
            except InputError as error:
                state.error = error

        if not all(map(scored.fits, scored.scores)):
            state.drop_ranges()
        for scores in scored.scores.values():
            state.pairs = scores.pairs
        state.count_earlier()
        while state.reported in state.seen:
            state.reported += 1
        return state

    def _sharers(self, left: int) -> int:
        """Return how many workers share the next job: the last jobs are shared if they are fewer than the workers."""
        workers = self.scheduler.workers
        last = (self._jobs - 1) % workers + 1
        return workers // last if left <= last else 1

    def _put(self, group: int, index: int, states: Sequence[_State], division: Division | None = None) -> None:
        def make(batch: int | None) -> Task:
            left = [state for state in states if state.error is None and index not in state.scored.scores] or states[:1]
            earlier = [state.scored.earlier(state.range(index)) for state in left]
            common = min(map(len, earlier))  # clips in step begin with the same frame
            parts = tuple(
                Part(state.number, state.job.clips, frames[:common], state.range(index))
                for state, frames in zip(left, earlier, strict=True)
            )
            return Task(parts, states[0].options, division, batch)

        can_retry = all(can_reopen(*state.job.clips.paths) for state in states)
        live = self._settings.on_frames is not None and not self._pool.several
        self.scheduler.put(TaskKey(group, index), make, can_retry=can_retry, batch=1 if live else None)

    def _put_ranges(self, group: int, state: _State) -> None:
        for index in range(len(state.scored.ranges)):
            if index not in state.scored.scores:
                self._put(group, index, [state])

    def _handle_outcome(self, key: TaskKey, outcome: TaskResult | Exception) -> None:
        group = key.group
        if isinstance(outcome, TaskResult) and outcome.ranges:
            (state,) = self._groups[group]
            state.scored.divide(outcome.ranges, outcome.packets)
            self._put_ranges(group, state)
            return

        for state in list(self._groups[group]):
            scored = state.scored
            failure = outcome if isinstance(outcome, Exception) and key.index not in scored.scores else None
            refused = isinstance(failure, RangeError) and len(scored.ranges) > 1
            if refused or (state.error is None and key.index in scored.scores and not scored.fits(key.index)):
                self._start_over(group, state)
                continue
            if state.error is None:
                state.error = copy(failure)  # each job attaches its own report to its error
            if state.error is None:
                self._report_complete_ranges(state)
            if state.error is not None or scored.complete:
                self._finish(group, state)

    def _start_over(self, group: int, state: _State) -> None:
        """Have the clips scored as one range, because their frames are not at the positions that their packets announced."""
        self.scheduler.drop(group)
        state.drop_ranges()
        state.scored.ranges = [FrameRange()]
        self._put_ranges(group, state)

    # -- events ------------------------------------------------------------------------------------------------------

    def _on_event(self, key: TaskKey, number: int, event: Event) -> None:
        state = self._states.get(number)
        if state is None:
            return
        if isinstance(event, RangeBegun):
            state.started = state.started or time.perf_counter()
            state.report = state.report or event.report
        elif isinstance(event, BatchScored):
            self._add_batch(state, state.range(key.index), event)
        elif isinstance(event, Exception):
            state.error = event
        elif key.index not in state.scored.scores:
            state.ended = time.perf_counter()
            state.scored.end(key.index, event)

    def _add_batch(self, state: _State, frame_range: FrameRange, event: BatchScored) -> None:
        scored = [(frame, at, event.backend) for frame, at in zip(event.frames, event.distorted_times, strict=True)]
        state.seen.update(state.scored.add(frame_range.bounds, event.first, scored))
        state.pairs, state.ended = event.pairs, time.perf_counter()
        self._report_progress()
        if frame_range.start is None:  # frames after a seek wait until their range is known to be right
            self._report_frames(state, event.first, event.frames)

    def _report_complete_ranges(self, state: _State) -> None:
        """Give the caller the frames of complete ranges, up to the first range that is not complete."""
        for index, frame_range in enumerate(state.scored.ranges):
            if index not in state.scored.scores or frame_range.first > state.reported:
                return
            self._report_frames(state, frame_range.first, state.scored.scores[index].report.frames)

    def _report_frames(self, state: _State, first: int, frames: Sequence[FrameScores]) -> None:
        new = frames[max(0, state.reported - first) :]
        state.reported += len(new)
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
        pairs = [state.pairs for state in self._states.values() if state.pairs is not None]
        jobs = len(pairs) + self._done_jobs
        total: int | None = None
        if jobs:
            frames = sum(pairs) + self._done_frames
            total = frames + round((self._jobs - jobs) * frames / jobs)
        self._settings.progress(self._done_frames + sum(len(state.seen) for state in self._states.values()), total)

    # -- the end -----------------------------------------------------------------------------------------------------

    def _finish(self, group: int, state: _State) -> None:
        outcome = state.outcome(self._settings.thresholds)
        report = _report_of(outcome)
        self._states.pop(state.number)
        self._groups[group].remove(state)
        if not self._groups[group]:
            self.scheduler.drop(group)
            del self._groups[group]
        self._done_jobs += 1
        self._done_frames += 0 if report is None else len(report.frames)
        self._ready.append((state.job, outcome))

    def _finish_complete(self) -> None:
        """Finish the jobs all of whose ranges are scored."""
        for group, states in list(self._groups.items()):
            for state in [state for state in states if state.scored.complete]:
                self._finish(group, state)


def _report_of(outcome: Outcome | InterruptedRunError) -> ScoreReport | None:
    return outcome if isinstance(outcome, ScoreReport) else getattr(outcome, "report", None)


def _grouped(jobs: Sequence[Job], most: int) -> list[list[Job]]:
    """Return up to `most` jobs of one reference and the same options together, in the order of the references."""
    groups: dict[object, list[Job]] = {}
    for job in jobs:
        groups.setdefault((job.clips.reference, job.clips.raw, job.options), []).append(job)
    return [group[start : start + most] for group in groups.values() for start in range(0, len(group), most)]


# -- entries ----------------------------------------------------------------------------------------------------------


def score_jobs(
    jobs: Sequence[Job], options: ScoreOptions, workers: WorkerOptions, settings: RunSettings = RunSettings()
) -> Generator[tuple[Job, Outcome], None, None]:
    """Yield each job with its outcome as `Engine.score` does. The caller has checked the options."""
    with _open_pool(jobs, options, workers, settings) as pool:
        yield from Engine(pool, options, settings).score(jobs)


def _open_pool(jobs: Sequence[Job], options: ScoreOptions, workers: WorkerOptions, settings: RunSettings) -> WorkerPool:
    may_share = settings.on_frames is None and options.sync == "index"
    in_step = max(map(len, _grouped(jobs, len(jobs))), default=1)
    return workers.open([job.clips for job in jobs] if may_share else [], options, in_step, settings.profile)


def score_pair(
    clips: Clips, options: ScoreOptions, device: Selector = None, settings: RunSettings = RunSettings()
) -> ScoreReport:
    """Score a pair of clips on the device or the devices that `device` names. The errors are those of `score_files`."""
    check_inputs(*clips.paths)
    workers = WorkerOptions(backend=options.backend, device=device)
    if len(workers.several) > 1 and not can_reopen(*clips.paths):
        raise InputError("a pipe is read once, so that it cannot be scored in ranges; give the file itself, or one device")
    check_options(options, settings.thresholds)

    job = Job("pair", clips)
    if settings.journal is not None:
        settings.journal.check(workers.backends())
        job = Job(settings.journal.key, clips)
    worker_warnings: list[str] = []
    settings = replace(settings, warn=worker_warnings.append, pipes=True)
    outcome: Outcome | InterruptedRunError
    try:
        with (
            _open_pool([job], options, workers, settings) as pool,
            closing(Engine(pool, options, settings).score([job])) as outcomes,  # type: ignore[type-var]
        ):
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
