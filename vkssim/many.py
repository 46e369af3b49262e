"""Scores many pairs of clips from Python, on one device, on all of a machine, or on a cluster."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from .distributed.coordinator import Coordinator, Job
from .distributed.rates import SECONDS
from .distributed.scheduler import Scheduler
from .distributed.worker_options import WorkerOptions
from .errors import LostWorkerWarning
from .features.plane_metrics import feature_texts
from .frames.options import PictureOptions, RawDescription, Selection
from .report.results import ScoreReport
from .scoring.offset import add_hint
from .scoring.options import Clips, ScoreOptions, Selector, check_options
from .utils.progress import progress_bar

Path = str | os.PathLike[str]


@dataclass(frozen=True)
class PairScores:
    """What came of a pair: its `report`, or the `error` for which there is none.

    `number` counts the pairs as they were given.
    """

    number: int
    reference: str
    distorted: str
    report: ScoreReport | None
    error: Exception | None

    def scores(self) -> ScoreReport:
        """Return the report. Raises the error where there is none."""
        if self.report is None:
            assert self.error is not None
            raise self.error
        return self.report


def score_many(
    pairs: Iterable[tuple[Path, Path]],
    *,
    engine: str = "local",
    device: Selector = None,
    address: str | None = None,
    software: bool = False,
    features: Sequence[str] | str = ("float_ms_ssim", "float_ssim"),
    planes: str = "y",
    raw: RawDescription = RawDescription(),  # noqa: B008 - frozen
    selection: Selection = Selection(),  # noqa: B008 - frozen
    sync: str = "index",
    pictures: PictureOptions = PictureOptions(),  # noqa: B008 - frozen
    strict: bool = False,
    backend: str = "vulkan",
    task_seconds: float = SECONDS,
    progress: bool = False,
) -> Iterator[PairScores]:
    """Score many pairs of clips, and yield what came of each as soon as it is there, in any order.

    Parameters
    ----------
    pairs
        References and distorted clips, as in `score_files`; on a cluster paths that its nodes have, or URLs.
    engine, address, software
        ``"local"``: this machine. ``"ray"``: the Ray cluster at `address`, ``"auto"`` for the one that this machine belongs to;
        without an address the one that RAY_ADDRESS names or that runs on this machine, else a new one. Its GPUs work, and where
        `software` is set also its nodes without GPU, on Mesa's lavapipe.
    device
        Of this machine: see `score_files`. With ``"all"`` or a list each device has a process of its own, so that a script
        needs ``if __name__ == "__main__":``.
    features, planes, raw, selection, sync, pictures, strict, backend
        See `score_files`.
    task_seconds
        Clips are divided into ranges of frames that take about as long; each is scored by one device.
    progress
        Show a bar, in a terminal or in a notebook.

    Raises
    ------
    OptionError
        Something is asked for that there is not; before anything is scored.
    DeviceError
        No device is left that works. What is wrong with a pair is in its `PairScores.error`.

    """
    options = ScoreOptions(feature_texts(features), planes, selection, sync, pictures, strict, backend)
    check_options(options)
    where = WorkerOptions(engine, backend, device, address, software)
    jobs = [
        Job(str(number), Clips(os.fspath(reference), os.fspath(distorted), raw))
        for number, (reference, distorted) in enumerate(pairs)
    ]
    return _scored(jobs, options, where, task_seconds, progress)


def _scored(
    jobs: Sequence[Job], options: ScoreOptions, where: WorkerOptions, seconds: float, progress: bool
) -> Iterator[PairScores]:
    with ExitStack() as stack:
        bar = progress_bar("pairs") if progress else None
        if bar is not None:
            stack.callback(bar.close)
            bar(0, len(jobs))
        scheduler = Scheduler(
            stack.enter_context(where.open()), lambda trouble: warnings.warn(trouble, LostWorkerWarning, stacklevel=2)
        )
        outcomes = Coordinator(scheduler, options, seconds=seconds).score(jobs)
        for done, (job, outcome) in enumerate(outcomes, 1):
            if bar is not None:
                bar(done, len(jobs))
            clips = job.clips
            add_hint(outcome, clips, options, of_many=True)
            report, error = (outcome, None) if isinstance(outcome, ScoreReport) else (None, outcome)
            yield PairScores(int(job.key), clips.reference, clips.distorted, report, error)
