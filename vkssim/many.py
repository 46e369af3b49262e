"""Score many pairs of clips from Python, on one device, on all devices of a machine, or on a cluster."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass

from .engine.engine import Job, RunSettings, score_jobs
from .engine.options import Clips, ScoreOptions, Selector, check_options
from .engine.pools import WorkerOptions
from .errors import LostWorkerWarning
from .frames.options import PictureOptions, RawDescription, Selection
from .metrics.plane_metrics import feature_texts
from .report.results import ScoreReport
from .utils.choices import DECODERS, TASK_SECONDS
from .utils.progress import progress_bar

Path = str | os.PathLike[str]


@dataclass(frozen=True)
class PairScores:
    """The result of a pair of clips: its report, or the error that prevented it.

    Parameters
    ----------
    number : int
        The number of the pair in the input, counted from 0.
    reference, distorted : str
        The clips, by path or URL.
    report : ScoreReport or None
        The report; None if there is an error.
    error : Exception or None
        The error; None if there is a report.

    """

    number: int
    reference: str
    distorted: str
    report: ScoreReport | None
    error: Exception | None

    def scores(self) -> ScoreReport:
        """Return the report, or raise the error.

        Returns
        -------
        ScoreReport
            The report of the pair.

        Raises
        ------
        VkssimError
            The pair could not be scored.

        """
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
    decode: str = DECODERS[0],
    task_seconds: float = TASK_SECONDS,
    progress: bool = False,
) -> Iterator[PairScores]:
    """Score many pairs of clips, and yield the result of each as soon as it is finished, in any order.

    Pairs that share their reference are scored together on one device, so that the reference is decoded once.

    Parameters
    ----------
    pairs : iterable of (path, path)
        References and distorted clips, as in `score_files`. On a cluster, use paths that its nodes have, or URLs.
    engine : {"local", "ray"}
        Score on this machine, or on all GPUs of a Ray cluster.
    device : int, str, sequence or None
        Devices of this machine: see `score_files`. With ``"all"`` or a list, each device has its own process, so a script needs
        ``if __name__ == "__main__":``.
    address : str, optional
        The Ray cluster: ``"HOST:6379"``, or ``"auto"`` for the cluster of this machine. The default is the cluster that
        RAY_ADDRESS names, or the one that runs on this machine, or else a new one.
    software : bool
        Also use the nodes of the cluster that have no GPU, on Mesa's lavapipe.
    features, planes, raw, selection, sync, pictures, strict, backend, decode : optional
        As for `score_files`. With `strict`, a pair has an error if a clip is damaged, or if its clips differ in
        length or frame rate.
    task_seconds : float
        Target duration in seconds of one range of frames. Clips are divided into such ranges, and each is scored on one device.
    progress : bool
        Show a progress bar, in a terminal or in a notebook.

    Returns
    -------
    iterator of PairScores
        The report or the error of each pair.

    Raises
    ------
    OptionError
        An option has a value that is not allowed. It is raised before anything is scored.
    DeviceError
        No working device is left. The error of a single pair is in its `PairScores.error`.

    """
    options = ScoreOptions(feature_texts(features), planes, selection, sync, pictures, strict, backend, decode=decode)
    check_options(options)
    workers = WorkerOptions(engine, backend, device, address, software)
    jobs = [
        Job(str(number), Clips(os.fspath(reference), os.fspath(distorted), raw))
        for number, (reference, distorted) in enumerate(pairs)
    ]
    return _scored(jobs, options, workers, task_seconds, progress)


def _scored(
    jobs: Sequence[Job], options: ScoreOptions, workers: WorkerOptions, seconds: float, progress: bool
) -> Iterator[PairScores]:
    with ExitStack() as stack:
        bar = stack.enter_context(closing(progress_bar())) if progress else None
        settings = RunSettings(
            progress=bar, seconds=seconds, warn=lambda trouble: warnings.warn(trouble, LostWorkerWarning, stacklevel=2)
        )
        outcomes = stack.enter_context(closing(score_jobs(jobs, options, workers, settings)))
        for done, (job, outcome) in enumerate(outcomes, 1):
            if bar is not None:
                bar.say(f"{done} of {len(jobs)} pairs are finished")
            report, error = (outcome, None) if isinstance(outcome, ScoreReport) else (None, outcome)
            yield PairScores(int(job.key), job.clips.reference, job.clips.distorted, report, error)
