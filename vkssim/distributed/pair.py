"""Score a pair of clips: in this process on one device, or in ranges on several workers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

from ..backends.decoding import hardware_decoder, sessions
from ..backends.failure_policy import BackendOpener, FailurePolicy
from ..backends.open import open_backend
from ..backends.open_device import info_of
from ..errors import DecoderBusyError, DemandError, HostMemoryError, InputError, VkssimError
from ..frames.open import may_be_container, readable_again
from ..host.devices import DeviceInfo
from ..report.frame_scores import FrameScores
from ..report.results import ScoreReport
from ..scoring.inputs import check_inputs
from ..scoring.offset import add_hint
from ..scoring.options import Clips, ScoreOptions, Selector, check_options
from ..scoring.ranges import FrameRange, RangeScores, merged
from ..scoring.recovery import score_on
from ..scoring.run_settings import OnFrames, Progress, RunSettings
from ..scoring.session import open_sources, score_sources
from ..scoring.stopped import stopped_early, stopped_error
from ..utils.thread_pool import close_at_end
from ..utils.wording import counted
from .coordinator import Coordinator, Job
from .devices import chosen_devices, single_device, single_selector, spec_of
from .open_sources import OpenPair
from .scheduler import Scheduler
from .task import Done
from .threads import LocalPool
from .worker_pool import WorkerPool


def score_pair(
    clips: Clips,
    options: ScoreOptions,
    device: Selector = None,
    settings: RunSettings = RunSettings(),  # noqa: B008 - frozen
) -> ScoreReport:
    """Score a pair of clips on the device or the devices that `device` names. Raises VkssimError as `score_files` does."""
    check_inputs(*clips.paths)
    devices = chosen_devices(options.backend, device)
    outcome: ScoreReport | DemandError
    try:
        if len(devices) > 1:
            outcome = _on_several(clips, options, devices, settings)
        else:
            chosen = _with_decoder(options, single_selector(devices, device))
            outcome = _on_engines(clips, chosen, settings) or _on_one(clips, chosen, settings)
    except DemandError as error:
        outcome = error
    try:
        add_hint(outcome, clips, options)
    except KeyboardInterrupt as stop:
        report = outcome.report if isinstance(outcome, DemandError) else outcome
        frames = counted(len(report.frames), "frame")
        raise stopped_error(stop, f"stopped when all of {frames} had been scored; the scores are kept", report) from None
    if isinstance(outcome, DemandError):
        raise outcome
    return outcome


def _with_decoder(options: ScoreOptions, device: str | int | None) -> ScoreOptions:
    return replace(options, device=device, decoder=hardware_decoder(options.decode, options.backend, device))


def _on_one(clips: Clips, options: ScoreOptions, settings: RunSettings) -> ScoreReport:
    """Score a pair in this process. If the device fails and the clips can be read again, the run continues; see `recovery`."""
    policy = FailurePolicy(None if settings.on_frames is None else 1)
    opener = BackendOpener(partial(open_backend, options.backend, device=options.device, profile=settings.profile), policy)

    def score(done: Sequence[FrameScores]) -> ScoreReport:
        with ExitStack() as stack:
            first, second = (close_at_end(stack, source) for source in open_sources(clips, options))
            return score_sources((first, second), clips, opener, options, settings, done)

    return score_on(score, policy, again=readable_again(clips.paths))


def _on_engines(clips: Clips, options: ScoreOptions, settings: RunSettings) -> ScoreReport | None:
    """Score a pair in ranges on one GPU that has several video engines; None where there is nothing to gain by that.

    A decoder keeps one engine busy, and a worker has two of them, one for each clip. So there are half as many workers as
    engines, rounded down, each on a thread: with more threads, all of them wait longer for Python's lock. Workers that cannot
    open the clips are left out. Where none of them can, one worker scores all ranges when the clips were closed.
    """
    in_order = settings.on_frames is not None or options.sync != "index" or not readable_again(clips.paths)
    if options.decoder is None or options.backend != "vulkan" or in_order:
        return None
    if not all(may_be_container(path, clips.raw) for path in clips.paths):  # CUDA is not loaded for other files
        return None
    workers = sessions(options.decoder) // 2
    if workers < 2:
        return None
    with ExitStack() as guard:  # until the pool has them, this closes the clips
        stack = guard.enter_context(ExitStack())
        reference, distorted = (close_at_end(stack, source) for source in open_sources(clips, options))
        if not all(options.decoder.decodes(source.clip_facts()) for source in (reference, distorted)):
            return None
        check_options(options, settings.thresholds)
        device = single_device(options.device)
        if settings.store is not None:
            settings.store.begin_ranges([info_of(device)])
        spec = spec_of(device, profile=settings.profile)
        shared = replace(options, decoder=replace(options.decoder, shared=True))
        engines = LocalPool(spec, workers, OpenPair((clips, shared), (reference, distorted), stack))
        guard.pop_all()
    try:
        with engines as pool:
            return score_in_ranges(clips, shared, pool, settings)
    except DecoderBusyError as error:
        busy = str(error)
    with LocalPool(spec, 1) as pool:
        report = score_in_ranges(clips, options, pool, settings)
        report.troubles.insert(0, busy)
        return report


def _on_several(clips: Clips, options: ScoreOptions, devices: Sequence[DeviceInfo], settings: RunSettings) -> ScoreReport:
    """Score a pair in ranges, with a worker in a process of its own for each device."""
    from .processes import ProcessPool

    if not readable_again(clips.paths):
        raise InputError("a pipe is read once, so that it cannot be scored in ranges; give the file itself, or one device")
    check_options(options, settings.thresholds)
    if settings.store is not None:
        settings.store.begin_ranges([info_of(device) for device in devices])
    with ProcessPool([spec_of(device, profile=settings.profile) for device in devices]) as pool:
        return score_in_ranges(clips, options, pool, settings)


def score_in_ranges(
    clips: Clips,
    options: ScoreOptions,
    pool: WorkerPool,
    settings: RunSettings = RunSettings(),  # noqa: B008 - frozen
) -> ScoreReport:
    """Score a pair as `score_pair` does, in ranges, on all workers of a pool. The store in `settings` has already begun."""
    store = settings.store
    frames = _InOrder(settings.progress, settings.on_frames)
    troubles: list[str] = []
    started = time.perf_counter()
    outcome: ScoreReport | Exception
    try:
        coordinator = Coordinator(
            Scheduler(pool, troubles.append),
            options,
            folder=None if store is None else store.range_folder,
            thresholds=settings.thresholds,
            on_range=frames.add,
        )
        job = Job("", clips) if store is None else Job(store.key, clips, tuple(store.in_order))
        _, outcome = next(coordinator.score([job]))  # a second `next` would remove the stored ranges too early
    except KeyboardInterrupt as stop:
        outcome = stopped_early(stop, frames.report())
    except (VkssimError, MemoryError) as error:
        outcome = error
    if isinstance(outcome, MemoryError):
        outcome = HostMemoryError()
    if isinstance(outcome, VkssimError) and outcome.report is None:
        outcome.report = frames.report()
    report = outcome if isinstance(outcome, ScoreReport) else getattr(outcome, "report", None)
    if report is not None:
        report.seconds, report.resumed, report.troubles = time.perf_counter() - started, frames.resumed, troubles
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


class _InOrder:
    """Report frames in order, although their ranges are finished in any order."""

    def __init__(self, progress: Progress | None, on_frames: OnFrames | None) -> None:
        self._progress = progress
        self._on_frames = on_frames
        self._waiting: dict[int, tuple[FrameRange, RangeScores]] = {}
        self._range_scores: list[RangeScores] = []
        self._next: int | None = 0  # the first pair of the next range, None behind the last range
        self._reported = 0
        self._done = 0
        self.resumed = 0

    def add(self, _job: Job, frame_range: FrameRange, scores: RangeScores, done: Done | None) -> None:
        """Add the scores of a range, and report it and all ranges behind it that have waited for it; see `OnRange`."""
        frames = scores.report.frames
        if frame_range.is_whole:  # the clips are scored again as one range, which replaces all earlier ranges
            self._waiting, self._range_scores, self._next, self._done, self.resumed = {}, [], 0, 0, 0
        self._waiting[frame_range.first] = frame_range, scores
        self._done += len(frames)
        self.resumed += len(frames) if done is None else scores.report.resumed
        while self._next in self._waiting:
            following, ready = self._waiting.pop(self._next)
            if self._on_frames is not None:
                self._on_frames(ready.report.frames[max(0, self._reported - following.first) :])
            self._reported = max(self._reported, following.first + len(ready.report.frames))
            self._range_scores.append(ready)
            self._next = following.stop
        if self._progress is not None:
            self._progress(self._done, scores.pairs)

    def report(self) -> ScoreReport | None:
        """Return the report of the ranges that follow each other from the first frame on."""
        return merged(self._range_scores) if self._range_scores else None
