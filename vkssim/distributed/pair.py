"""Scores two files on several workers."""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import InputError, InterruptedRunError, OptionError, VkssimError
from ..frames.open import RawDescription, readable_again
from ..host.devices import DeviceInfo
from ..report.frame_scores import FrameScores
from ..report.results import ScoreReport
from ..report.thresholds import Demand
from ..scoring.options import Clips, ScoreOptions, check_options
from ..scoring.ranges import Part, PartScores, merged
from ..scoring.run import OnFrames, Progress
from ..utils.wording import counted
from .coordinator import Coordinator, Job
from .devices import spec_of
from .pool import Engine, Pool
from .task import Done

if TYPE_CHECKING:
    from ..scoring.frame_journal import FrameJournal
    from .kept import KeptParts


def score_on_devices(
    paths: tuple[str, str],
    raw: RawDescription,
    options: ScoreOptions,
    devices: Sequence[DeviceInfo],
    profile: bool,
    demands: Sequence[Demand],
    progress: Progress | None,
    on_frames: OnFrames | None,
    done: Sequence[FrameScores],
    journal: FrameJournal | KeptParts | None,
) -> ScoreReport:
    """As `score_files`, a worker for each device."""
    from .kept import KeptParts
    from .processes import Processes

    if done or not (journal is None or isinstance(journal, KeptParts)):
        raise OptionError("frames that are done already are for one device; several go on with the parts that they keep")
    if not readable_again(paths):
        raise InputError("a pipe is read once, so that it cannot be scored in ranges; give the file itself, or one device")
    check_options(options, demands)
    with Processes([spec_of(device, profile=profile) for device in devices]) as engine:
        return score_in_parts(
            Clips(*paths, raw), options, engine, demands=demands, progress=progress, on_frames=on_frames, kept=journal
        )


def score_in_parts(
    clips: Clips,
    options: ScoreOptions,
    engine: Engine,
    *,
    demands: Sequence[Demand] = (),
    progress: Progress | None = None,
    on_frames: OnFrames | None = None,
    kept: KeptParts | None = None,
) -> ScoreReport:
    """As `score_files` on all workers of an engine. `kept` has the parts of an earlier run, and gets those of this one."""
    frames = _InOrder(progress, on_frames)
    troubles: list[str] = []
    started = time.perf_counter()
    outcome: ScoreReport | Exception
    try:
        coordinator = Coordinator(
            Pool(engine, troubles.append),
            options,
            folder=None if kept is None else kept.folder,
            demands=demands,
            on_part=frames.add,
        )
        _, outcome = next(coordinator.score([Job("" if kept is None else kept.key, clips)]))  # what is kept stays with that
    except KeyboardInterrupt as stop:
        outcome = frames.interrupted(getattr(stop, "signal", signal.SIGINT))
    except VkssimError as error:
        outcome = error
    if isinstance(outcome, VkssimError) and outcome.report is None:
        outcome.report = frames.report()
    report = outcome if isinstance(outcome, ScoreReport) else getattr(outcome, "report", None)
    if report is not None:
        report.seconds, report.resumed, report.troubles = time.perf_counter() - started, frames.resumed, troubles
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


class _InOrder:
    """Parts come in any order; frames are told of from the first on."""

    def __init__(self, progress: Progress | None, on_frames: OnFrames | None) -> None:
        self._progress = progress
        self._on_frames = on_frames
        self._waiting: dict[int, tuple[Part, PartScores]] = {}
        self._parts: list[PartScores] = []
        self._next: int | None = 0  # the first pair of the part to come, None behind the last
        self._told = 0
        self._done = 0
        self.resumed = 0

    def add(self, _job: Job, part: Part, scores: PartScores, done: Done | None) -> None:
        frames = scores.report.frames
        if part.is_whole:  # if there were others, they were given up
            self._waiting, self._parts, self._next, self._done, self.resumed = {}, [], 0, 0, 0
        self._waiting[part.first] = part, scores
        self._done += len(frames)
        if done is None:
            self.resumed += len(frames)
        while self._next in self._waiting:
            following, ready = self._waiting.pop(self._next)
            if self._on_frames is not None:
                self._on_frames(ready.report.frames[max(0, self._told - following.first) :])
            self._told = max(self._told, following.first + len(ready.report.frames))
            self._parts.append(ready)
            self._next = following.stop
        if self._progress is not None:
            self._progress(self._done, scores.pairs)

    def report(self) -> ScoreReport | None:
        """What there is of it without a gap from the first frame on."""
        return merged(self._parts) if self._parts else None

    def interrupted(self, number: int) -> InterruptedRunError:
        """What to say of a run that a signal stopped."""
        stopped = InterruptedRunError(f"stopped after {counted(self._told, 'frame')}; what was scored is kept")
        stopped.signal, stopped.report = number, self.report()
        if stopped.report is not None:
            sentence = f"the run was stopped after {counted(self._told, 'frame')}; those behind them are missing"
            stopped.report.warnings.append(sentence)
        return stopped
