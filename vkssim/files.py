"""Scores two video files: reads both ahead of the device, batch after batch."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from .backends.base import Backend
from .demands import Demand, check_names, parse_demand, unmet
from .errors import DemandError, InputError, InterruptedRunError, VkssimError
from .formats import FrameFormat
from .frames.open import RawDescription
from .frames.pictures import PictureOptions, colour_warnings, open_pair
from .frames.remote import named
from .frames.source import FrameSource
from .planes import FrameMetrics, PlaneMetrics, plane_formats
from .recovery import Engines, readable_again, score_on
from .results import ScoreReport
from .run import OnFrames, Progress, Run
from .scorer import FrameScores, open_backend
from .selection import Selection
from .timing import Clock

if TYPE_CHECKING:
    from .frame_journal import FrameJournal

EngineOpener = Callable[[Sequence[PlaneMetrics]], Backend]
"""Gives the backend for planes and their metrics."""

_MOST_NAMED_FRAMES = 8


def score_files(
    reference: str | os.PathLike[str],
    distorted: str | os.PathLike[str],
    *,
    features: Sequence[str] | str = ("float_ms_ssim", "float_ssim"),
    planes: str = "y",
    raw: RawDescription = RawDescription(),  # noqa: B008 - frozen
    selection: Selection = Selection(),  # noqa: B008 - frozen
    sync: str = "index",
    pictures: PictureOptions = PictureOptions(),  # noqa: B008 - frozen
    strict: bool = False,
    backend: str = "vulkan",
    device: str | int | None = None,
    profile: bool = False,
    progress: Progress | None = None,
    on_frames: OnFrames | None = None,
    fail_under: Sequence[str] = (),
    done: Sequence[FrameScores] = (),
    journal: FrameJournal | None = None,
) -> ScoreReport:
    """Score a distorted clip against its reference, frame by frame.

    Parameters
    ----------
    reference, distorted
        Files: raw YUV, Y4M, or what FFmpeg reads, pictures and their sequences (``frame_%04d.png``) among them; ``-`` for raw
        or Y4M on standard input, one of the two. Also by URL, ``s3://``, ``gs://``, ``https://`` or ``file://`` (extra
        `remote`), but for sequences.
    features
        Metrics with their options, such as ``"float_ms_ssim=enable_lcs=true"``.
    planes
        ``"y"``, the luma; ``"yuv"``, all three planes; ``"all"``, also their mean weighted by area. See `Scorer`.
    raw
        Size, pixel format and depth of raw files.
    selection
        Which frames are compared.
    sync
        ``"index"`` pairs frames by their number, ``"pts"`` by the time at which they are shown.
    pictures
        Whether they are scaled or cropped first.
    strict
        Raise DemandError where one file is shorter than the other, or frames have no partner; otherwise the report has a
        warning.
    backend, device
        Where to compute; see `Scorer`.
    profile
        Take the time of each stage, for `ScoreReport.stage_seconds`.
    progress
        Called after every batch.
    on_frames
        Called with each frame as soon as it is scored. Batches are of one frame then, and none waits for the next: scores come
        early, but fewer a second.
    fail_under
        Raise DemandError where a pooled score is lower: ``"float_ms_ssim=0.98"`` for the mean, ``"float_ms_ssim:p5=0.95"`` for
        another pooled value (`vkssim.demands.POOLINGS`). One that does not exist counts as lower.
    done
        The first frames' scores from an earlier run of the same, which was cut off: this one goes on behind them. The last of
        them is scored once more, so that something is read of what comes before.
    journal
        Keeps each batch as it is scored, and has the frames done in place of `done`.

    Returns
    -------
    ScoreReport
        Scores of every pair of frames.

    Raises
    ------
    VkssimError
        See `vkssim.errors`. Where frames were scored before it went wrong its attribute `report` holds them.

    Notes
    -----
    A device that is lost on the way is opened again, once, and one that runs out of memory gets smaller batches: the files are
    opened again and scored from there on, which the report warns of. What comes from a pipe cannot be read again.

    """
    demands = [parse_demand(text) for text in fail_under]
    paths = os.fspath(reference), os.fspath(distorted)
    if paths == ("-", "-"):
        raise InputError("reference and distorted are both standard input; one of them must be a file")
    batch = None if on_frames is None else 1
    engines = Engines(partial(open_backend, backend, device=device, profile=profile), batch)

    def score(done: Sequence[FrameScores]) -> ScoreReport:
        with ExitStack() as stack:
            first, second = (stack.enter_context(source) for source in open_pair(*paths, raw, pictures, chroma=planes != "y"))
            return score_sources(
                (first, second),
                paths,
                engines,
                features=features,
                planes=planes,
                selection=selection,
                sync=sync,
                pictures=pictures,
                strict=strict,
                profile=profile,
                progress=progress,
                on_frames=on_frames,
                demands=demands,
                done=done,
                journal=journal,
            )

    return score_on(score, engines, done, again=readable_again(paths))


def score_sources(
    sources: tuple[FrameSource, FrameSource],
    paths: tuple[str, str],
    open_engine: EngineOpener,
    *,
    features: Sequence[str] | str,
    planes: str = "y",
    selection: Selection,
    sync: str = "index",
    pictures: PictureOptions,
    strict: bool = False,
    profile: bool = False,
    progress: Progress | None = None,
    on_frames: OnFrames | None = None,
    demands: Sequence[Demand] = (),
    done: Sequence[FrameScores] = (),
    journal: FrameJournal | None = None,
) -> ScoreReport:
    """Score two sources that are open already, reference first, on the backend that `open_engine` gives; else as `score_files`.

    `paths` are their names in the report, `pictures` what was done to them already. The backend is closed at the end, the
    sources are not.
    """
    with ExitStack() as stack:
        info = sources[0].info
        formats = plane_formats(common_format(*sources, chroma=planes != "y"), planes, info.chroma)
        metrics = FrameMetrics(features, formats, total=planes == "all")
        check_names(demands, metrics.names, metrics.similarities)
        schedule = selection.schedule(*sources, sync)
        engine = stack.enter_context(open_engine(metrics.planes))
        report = ScoreReport(named(paths[0]), named(paths[1]), info.width, info.height, info.bits, metrics.names, engine.info)
        report.similarities = metrics.similarities
        report.rate = None if info.fps is None else float(info.fps)
        report.notes = [f"{source.info.path}: {note}" for source in sources for note in source.info.notes]
        report.warnings = [*colour_warnings(info, sources[1].info), *engine.warnings]
        report.selection, report.sync, report.pictures = selection, sync, pictures
        if journal is not None and not journal.begun:
            done = journal.begin(report.names, report.backend)
        report.frames += done[:-1]
        report.resumed = len(report.frames)
        clock = Clock(sources, schedule.pairing, sync)
        told = {frame.index for frame in done[-1:]}
        run = Run(sources, engine, schedule, clock, report, metrics, progress, on_frames, told, journal)
        try:
            stack.enter_context(run)
            run.score()
            _judge(report, sources, clock, run, strict, demands)
        except VkssimError as error:
            if len(report.frames) < len(done):  # the last of them was to be scored again
                report.frames = list(done)
            error.report = report
            raise
        except KeyboardInterrupt as stop:
            if len(report.frames) < len(done):
                report.frames = list(done)
            stopped = InterruptedRunError(f"stopped after {len(report.frames)} frames; what was scored is kept")
            stopped.signal = getattr(stop, "signal", signal.SIGINT)
            report.warnings.append(f"the run was stopped after {len(report.frames)} frames; those behind them are missing")
            stopped.report = report
            raise stopped from None
        finally:
            if profile:
                report.stage_seconds = {"read": run.read_seconds, **engine.stage_seconds(), "host": run.host_seconds}
    return report


def common_format(reference: FrameSource, distorted: FrameSource, *, chroma: bool = False) -> FrameFormat:
    """The format of the luma of both sources. Raises InputError where they differ, with `chroma` also where that does."""
    first, second = reference.info, distorted.info
    if (first.width, first.height, first.bits) != (second.width, second.height, second.bits):
        described = [f"{info.path} is {info.width}x{info.height} with {info.bits} bits" for info in (first, second)]
        raise InputError(
            f"{described[0]}, {described[1]}; they must be alike. --scale reference brings both to the size of the"
            " reference, and the one of less depth to that of the other"
        )
    if chroma and first.chroma != second.chroma:
        raise InputError(
            f"{first.path} is {first.chroma}, {second.path} {second.chroma}: their chroma has not the same size. Score the luma"
            " alone (--planes y), or convert one of them"
        )
    return FrameFormat.of_bits(first.width, first.height, first.bits)


def _judge(
    report: ScoreReport, sources: Sequence[FrameSource], clock: Clock, run: Run, strict: bool, demands: Sequence[Demand]
) -> None:
    for name in report.names:
        missing = [frame.index for frame in report.frames if np.isnan(frame.metrics[name])]
        if missing:
            report.warnings.append(_null_warning(name, missing))
    for source in sources:
        if source.damaged:
            report.warnings.append(
                f"{source.info.path} is damaged in {len(source.damaged)} of its frames ({_listed(source.damaged)}); what the"
                " decoder put in place of what is missing was scored, there and in frames that refer to them"
            )
        if source.problem is not None:
            raise source.problem
        claimed, found = source.info.frames, source.length
        if claimed is not None and found is not None and found < claimed:
            report.warnings.append(f"{source.info.path} says that it has {claimed} frames; only {found} could be decoded")
    if not report.frames:
        raise InputError(
            f"no frame to score in {sources[0].info.path} and {sources[1].info.path}: one is empty, or all frames are skipped,"
            " by --start or --end, say"
        )
    if clock.out_of_step is not None:
        report.warnings.append(clock.out_of_step)
    failed = unmet(demands, report)
    if run.shorter is not None:
        report.warnings.append(run.shorter)
        if strict:
            failed.insert(0, f"{run.shorter} (--strict)")
    if failed:
        raise DemandError("; ".join(failed))


def _null_warning(name: str, missing: Sequence[int]) -> str:
    return (
        f"{name} is null in {len(missing)} frames ({_listed(missing)}): their mean structure is negative, or samples are not"
        " numbers. negative=clamp counts a negative mean as 0"
    )


def _listed(frames: Sequence[int]) -> str:
    return ", ".join(map(str, frames[:_MOST_NAMED_FRAMES])) + (", …" if len(frames) > _MOST_NAMED_FRAMES else "")
