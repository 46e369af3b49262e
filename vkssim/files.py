"""Score two video files, or many pairs of them: on one device, on all devices of a machine, or on a cluster."""

from __future__ import annotations

import os
import warnings
from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace

from .engine.engine import Job, OnFrames, RunSettings, score_jobs, score_pair
from .engine.journal import open_run_journal
from .engine.options import Clips, ScoreOptions, Selector, check_options
from .engine.pools import WorkerOptions
from .errors import InterruptedRunError, LostWorkerWarning, VkssimError
from .frames.options import PictureOptions, RawDescription, Selection
from .metrics.plane_metrics import feature_texts
from .report.results import ScoreReport
from .report.thresholds import parse_pooled, parse_threshold
from .utils.choices import DECODERS, TASK_SECONDS
from .utils.progress import Progress, progress_bar

Path = str | os.PathLike[str]


def score_files(
    reference: Path,
    distorted: Path,
    *,
    features: Sequence[str] | str = ("float_ms_ssim", "float_ssim"),
    planes: str = "y",
    raw: RawDescription = RawDescription(),  # noqa: B008 - frozen
    selection: Selection = Selection(),  # noqa: B008 - frozen
    sync: str = "index",
    pictures: PictureOptions = PictureOptions(),  # noqa: B008 - frozen
    strict: bool = False,
    backend: str = "vulkan",
    decode: str = DECODERS[0],
    device: Selector = None,
    profile: bool = False,
    progress: Progress | bool | None = None,
    on_frames: OnFrames | None = None,
    fail_under: Sequence[str] = (),
    pooled: Sequence[str] = (),
    resume: Path | None = None,
) -> ScoreReport:
    """Score a distorted clip against its reference, frame by frame.

    Parameters
    ----------
    reference, distorted : str or path
        Files, URLs (extra `remote`), or a sequence of pictures (``frame_%04d.png``); docs/input.md lists what is read. One of
        the two may be ``-``, which is raw YUV or Y4M on standard input.
    features : str or sequence of str
        Metrics with their options, such as ``"float_ms_ssim=enable_lcs=true"``.
    planes : {"y", "yuv", "all"}
        Score the luma; all three planes; or these and their mean weighted by area. See `Scorer`.
    raw : RawDescription
        Size, pixel format and depth of raw files.
    selection : Selection
        The frames to compare.
    sync : {"index", "pts"}
        Pair frames by their number, or by their presentation time.
    pictures : PictureOptions
        The scaling and cropping of pictures before the comparison.
    strict : bool
        Raise ThresholdError if a file is damaged or shorter than the other one, if frames have no partner or differ in
        presentation time, or if frame rates differ. Without it, the report has a warning.
    backend : {"vulkan", "cpu"}
        The backend that computes the scores. No other backend ever replaces it.
    decode : {"auto", "cpu", "cuda", "videotoolbox", "d3d11va", "vaapi", "qsv"}
        The decoder of containers. ``"auto"`` is the GPU that scores for each clip that it can decode, and the CPU for
        every other clip. ``"cpu"`` is the CPU. The others are hardware by FFmpeg's name for it; a clip that it cannot
        decode raises InputError. The samples are the same. `ScoreReport.scoring` names the decoder of each clip.
    device : int, str, sequence or None
        Index, part of the name, or UUID of the Vulkan device; see `Scorer`. Several devices, ``"all"`` or a list, score ranges
        of frames in parallel, each in its own process, so a script needs ``if __name__ == "__main__":``. The report is the
        same.
    profile : bool
        Measure the time of each stage, for `ScoreReport.stage_seconds`.
    progress : bool or callable, optional
        Show a progress bar, in a terminal or in a notebook; or call a function after every batch with the number of finished
        frames and the expected number, which is None if it is not known. An exception that the function raises cancels the
        run: work on the device ends, and the caller gets the exception.
    on_frames : callable, optional
        A function that is called with each list of FrameScores as soon as they are scored. Batches then have one frame each,
        and none waits for the next: each score comes earlier, but fewer come per second. With several devices, the lists come
        range by range. An exception that it raises cancels the run, as one of `progress` does.
    fail_under : sequence of str
        Raise ThresholdError if a pooled score is lower: ``"float_ms_ssim=0.98"`` for the mean, ``"float_ms_ssim:p5=0.95"`` for
        another pooled value (`vkssim.report.thresholds.POOLINGS`). A value that does not exist counts as lower.
    pooled : sequence of str
        Pooled values that will be read from the report, such as ``"float_ms_ssim:p5"``. OptionError is raised before anything
        is scored if the report will have no such value.
    resume : str or path, optional
        A path beside which scores are stored until the run is done, in ``PATH.journal``. If an equal run was interrupted, this
        run continues from its scores, also with more or fewer devices, and `ScoreReport.resumed` counts the frames of the
        earlier run. OptionError is raised if the journal belongs to another run.

    Returns
    -------
    ScoreReport
        The scores of every pair of frames.

    Raises
    ------
    VkssimError
        See `vkssim.errors`. If frames were scored before the error, its attribute `report` holds them.
    InterruptedRunError
        Ctrl-C stopped the run. It is a KeyboardInterrupt and no VkssimError, and has such a `report` as well.

    Notes
    -----
    The device stays open for the next call. docs/adr/0009-devices-that-fail.md says what happens if it fails.

    """
    thresholds = [*map(parse_threshold, fail_under), *map(parse_pooled, pooled)]
    clips = Clips(os.fspath(reference), os.fspath(distorted), raw)
    options = ScoreOptions(feature_texts(features), planes, selection, sync, pictures, strict, backend, decode=decode)
    with ExitStack() as stack:
        if isinstance(progress, bool):
            progress = stack.enter_context(closing(progress_bar())) if progress else None
        settings = RunSettings(profile, progress, on_frames, thresholds)
        if resume is None:
            return score_pair(clips, options, device, settings)
        journal = stack.enter_context(open_run_journal(resume, clips, options, resume=True, note=lambda _text: None))
        try:
            report = score_pair(clips, options, device, replace(settings, journal=journal))
        except (VkssimError, InterruptedRunError) as error:
            journal.discard_frames([error])
            raise
        journal.discard_frames()
        return report


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
) -> Generator[PairScores, None, None]:
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
    generator of PairScores
        The report or the error of each pair. Its method ``close`` cancels the rest.

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
) -> Generator[PairScores, None, None]:
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
