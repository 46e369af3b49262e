"""Scores two video files: reads both ahead of the device, batch after batch."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from .backends.base import Backend
from .backends.open import open_backend
from .distributed.devices import alone, chosen_devices
from .errors import DemandError, HostMemoryError, InputError, InterruptedRunError, RangeError, VkssimError
from .features.plane_metrics import FrameMetrics, PlaneMetrics, feature_texts, plane_formats
from .frames.open import RawDescription, readable_again
from .frames.pictures import PictureOptions, colour_warnings, common_format, open_pair
from .frames.selection import Schedule, Selection
from .frames.source import FrameSource, check_unchanged
from .report.frame_scores import FrameScores
from .report.record import ClipPackets, scoring_record, with_whole_clips
from .report.results import ScoreReport
from .report.thresholds import Demand, check_names, parse_demand, parse_pooled
from .scoring.inputs import check_inputs
from .scoring.options import ScoreOptions, Selector
from .scoring.ranges import Cut, Fingerprints, Part, PartScores
from .scoring.recovery import Engines, score_on
from .scoring.run import OnFrames, Progress, Run
from .scoring.timing import Clock, Shown
from .scoring.verdict import ClipEnd, judge
from .storage.remote import named
from .utils.thread_pool import close_at_end
from .utils.wording import counted

if TYPE_CHECKING:
    from .distributed.kept import KeptParts
    from .scoring.frame_journal import FrameJournal

EngineOpener = Callable[[Sequence[PlaneMetrics]], Backend]
"""Gives the backend for planes and their metrics."""


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
    device: Selector = None,
    profile: bool = False,
    progress: Progress | None = None,
    on_frames: OnFrames | None = None,
    fail_under: Sequence[str] = (),
    pooled: Sequence[str] = (),
    done: Sequence[FrameScores] = (),
    journal: FrameJournal | KeptParts | None = None,
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
        Raise DemandError where one file is shorter than the other, where frames have no partner or are not shown together, and
        where frame rates differ; otherwise the report has a warning.
    backend, device
        Where to compute; see `Scorer`. Several devices, ``"all"`` or a list, score ranges of frames side by side, each in a
        process of its own, so that a script needs ``if __name__ == "__main__":``. The report is the same.
    profile
        Take the time of each stage, for `ScoreReport.stage_seconds`.
    progress
        Called after every batch.
    on_frames
        Called with each frame as soon as it is scored. Batches are of one frame then, and none waits for the next: scores come
        early, but fewer a second. Of several devices they come range by range.
    fail_under
        Raise DemandError where a pooled score is lower: ``"float_ms_ssim=0.98"`` for the mean, ``"float_ms_ssim:p5=0.95"`` for
        another pooled value (`vkssim.report.thresholds.POOLINGS`). One that does not exist counts as lower.
    pooled
        Pooled values that will be asked of the report, such as ``"float_ms_ssim:p5"``: raise OptionError before anything is
        scored where the report will have no such value.
    done
        The first frames' scores from an earlier run of the same, which was cut off: this one goes on behind them. The last of
        them is scored once more, so that something is read of what comes before. For one device.
    journal
        Keeps each batch as it is scored, and has the frames done in place of `done`; for several devices a `KeptParts`.

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
    demands = [*map(parse_demand, fail_under), *map(parse_pooled, pooled)]
    paths = os.fspath(reference), os.fspath(distorted)
    check_inputs(*paths)
    devices = chosen_devices(backend, device)
    hinted = partial(_with_hint, paths, raw, selection, sync, pictures)
    if len(devices) > 1:
        from .distributed.pair import score_on_devices

        options = ScoreOptions(feature_texts(features), planes, selection, sync, pictures, strict)
        several = partial(score_on_devices, paths, raw, options, devices, profile, demands, progress, on_frames, done, journal)
        return hinted(several)
    one = cast("FrameJournal | None", journal)
    batch = None if on_frames is None else 1
    engines = Engines(partial(open_backend, backend, device=alone(devices, device), profile=profile), batch)

    def score(done: Sequence[FrameScores]) -> ScoreReport:
        with ExitStack() as stack:
            opened = open_pair(*paths, raw, pictures, chroma=planes != "y", streams=selection.streams)
            first, second = (close_at_end(stack, source) for source in opened)
            return score_sources(
                (first, second),
                paths,
                engines,
                features=features,
                planes=planes,
                raw=raw,
                selection=selection,
                sync=sync,
                pictures=pictures,
                strict=strict,
                profile=profile,
                progress=progress,
                on_frames=on_frames,
                demands=demands,
                done=done,
                journal=one,
            )

    return hinted(partial(score_on, score, engines, done, again=readable_again(paths)))


def _with_hint(
    paths: tuple[str, str],
    raw: RawDescription,
    selection: Selection,
    sync: str,
    pictures: PictureOptions,
    score: Callable[[], ScoreReport],
) -> ScoreReport:
    """Return the report of a run, with a warning where the clips scored low and seem to be shifted."""
    from .scoring.offset import add_hint

    outcome: ScoreReport | DemandError
    try:
        outcome = score()
    except DemandError as error:
        outcome = error
    try:
        add_hint(outcome, paths, raw, selection, sync, pictures)
    except KeyboardInterrupt as stop:
        report = outcome.report if isinstance(outcome, DemandError) else outcome
        frames = counted(len(report.frames), "frame")
        raise _stopped(stop, f"stopped when all of {frames} had been scored; the scores are kept", report) from None
    if isinstance(outcome, DemandError):
        raise outcome
    return outcome


def _stopped(stop: KeyboardInterrupt, problem: str, report: ScoreReport) -> InterruptedRunError:
    """Return the error for a run that was stopped, with the scores that there are."""
    error = InterruptedRunError(problem)
    error.signal = getattr(stop, "signal", signal.SIGINT)
    error.report = report
    return error


def score_sources(
    sources: tuple[FrameSource, FrameSource],
    paths: tuple[str, str],
    open_engine: EngineOpener,
    *,
    features: Sequence[str] | str,
    planes: str = "y",
    raw: RawDescription = RawDescription(),  # noqa: B008 - frozen
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

    `paths` are their names in the report, `raw` is how they were opened, `pictures` what was done to them already. The backend
    is closed at the end, the sources are not.
    """
    with ExitStack() as stack:
        metrics = _metrics(sources, features, planes)
        check_names(demands, metrics.names, metrics.similarities)
        schedule = selection.schedule(*sources, sync)
        engine = close_at_end(stack, open_engine(metrics.planes))
        how: dict[str, Any] = {"planes": planes, "raw": raw, "selection": selection, "sync": sync, "pictures": pictures}
        report = _begun(sources, paths, metrics, engine, **how)
        if journal is not None and not journal.begun:
            done = journal.begin(report.names, report.backend)
        report.frames += done[:-1]
        report.resumed = len(report.frames)
        clock = Clock(paths, report.rate, _first_left(sources, schedule) if sync == "pts" else None)
        told = {frame.index for frame in done[-1:]}
        run = Run(sources, engine, schedule, clock.compare, report, metrics, progress, on_frames, told, journal)
        try:
            stack.enter_context(run)
            run.score()
            ends = _ends(sources, schedule, len(report.frames))
            report.scoring = with_whole_clips(report.scoring, video_packets(sources, selection), ends, run.shorter)
            judge(report, ends, clock, run.shorter, strict=strict, demands=demands)
        except VkssimError as error:
            error.report = _with_all(report, done)
            raise
        except MemoryError:
            short = HostMemoryError()
            short.report = _with_all(report, done)
            raise short from None
        except KeyboardInterrupt as stop:
            _with_all(report, done)
            frames = counted(len(report.frames), "frame")
            report.warnings.append(f"the run was stopped after {frames}; those behind them are missing")
            raise _stopped(stop, f"stopped after {frames}; what was scored is kept", report) from None
        finally:
            if profile:
                report.stage_seconds = _stage_seconds(run, engine)
    return report


def _with_all(report: ScoreReport, done: Sequence[FrameScores]) -> ScoreReport:
    """Return the report of a run that failed, with the frames done before: the last of them was to be scored again."""
    if len(report.frames) < len(done):
        report.frames = list(done)
    return report


def score_part(
    sources: tuple[FrameSource, FrameSource],
    paths: tuple[str, str],
    open_engine: EngineOpener,
    part: Part,
    *,
    features: Sequence[str] | str,
    planes: str,
    raw: RawDescription,
    selection: Selection,
    sync: str,
    pictures: PictureOptions,
    profile: bool = False,
    progress: Progress | None = None,
) -> PartScores:
    """Score a part of the pairs of two sources, from which nothing was read yet; else as `score_sources`.

    Nothing is judged: `parts.joined` does, once all parts are there. Raises RangeError where the sources cannot be read in
    parts after all.
    """
    with ExitStack() as stack:
        metrics = _metrics(sources, features, planes)
        schedule = selection.schedule(*sources, sync)
        begins = _went_to(part.start, sources, schedule)
        engine = close_at_end(stack, open_engine(metrics.planes))
        before = dict(engine.stage_seconds())  # of other parts on the same engine
        how: dict[str, Any] = {"planes": planes, "raw": raw, "selection": selection, "sync": sync, "pictures": pictures}
        report = _begun(sources, paths, metrics, engine, **how)
        shown: list[Shown] = []
        run = Run(sources, engine, schedule, shown.extend, report, metrics, progress, None, part=part)
        stack.enter_context(run)
        run.score()
        behind = _checked(part, sources, schedule, report)
        if profile:
            seconds = _stage_seconds(run, engine)
            report.stage_seconds = {stage: seconds[stage] - before.get(stage, 0.0) for stage in seconds}
        return PartScores(
            report,
            [other for _, _, other in shown],
            _ends(sources, schedule, part.first + len(report.frames)),
            run.shorter,
            _first_left(sources, schedule)() if sync == "pts" else None,
            schedule.pairs,
            begins,
            behind,
            video_packets(sources, selection) if part.is_whole else None,
        )


def _went_to(cut: Cut | None, sources: tuple[FrameSource, FrameSource], schedule: Schedule) -> Fingerprints:
    if cut is None:
        return None, None
    (reference, distorted), (first, second), (place, other) = sources, schedule.frames(cut.pairs), cut.next
    return reference.go_to(first, place), distorted.go_to(second, other)


def _checked(part: Part, sources: tuple[FrameSource, FrameSource], schedule: Schedule, report: ScoreReport) -> Fingerprints:
    """What follows the part. Raises RangeError where reading the clips from their start on might give something else."""
    if part.is_whole:
        return None, None
    for source in sources:
        if source.damage or source.remarks or source.problem is not None:
            raise RangeError(f"{source.info.path} is damaged; what its decoder makes of that depends on where it begins")
        try:
            check_unchanged(source)
        except InputError as error:
            raise RangeError(str(error)) from None
    if part.end is None:
        return None, None
    if part.first + len(report.frames) != part.end.pairs:
        raise RangeError(f"{report.reference} and {report.distorted} end before pair {part.end.pairs}")
    (reference, distorted), (first, second), (last, other) = sources, schedule.frames(part.end.pairs), part.end.last
    return reference.check_passed(first, last), distorted.check_passed(second, other)


def _ends(sources: tuple[FrameSource, FrameSource], schedule: Schedule, pairs: int) -> tuple[ClipEnd, ClipEnd]:
    """Return how both clips ended, of which so many pairs were scored from the first on."""
    reference, distorted = schedule.frames(pairs - 1) if pairs else (None, None)
    return ClipEnd.of(sources[0], reference), ClipEnd.of(sources[1], distorted)


def _metrics(sources: tuple[FrameSource, FrameSource], features: Sequence[str] | str, planes: str) -> FrameMetrics:
    formats = plane_formats(common_format(*sources, chroma=planes != "y"), planes, sources[0].info.chroma)
    return FrameMetrics(features, formats, total=planes == "all")


def _begun(
    sources: tuple[FrameSource, FrameSource],
    paths: tuple[str, str],
    metrics: FrameMetrics,
    engine: Backend,
    *,
    planes: str,
    raw: RawDescription,
    selection: Selection,
    sync: str,
    pictures: PictureOptions,
) -> ScoreReport:
    """The report before the first frame."""
    info = sources[0].info
    report = ScoreReport(named(paths[0]), named(paths[1]), info.width, info.height, info.bits, metrics.names, engine.info)
    report.similarities = metrics.similarities
    report.rate = None if info.fps is None else float(info.fps)
    report.notes = [f"{source.info.path}: {note}" for source in sources for note in source.info.notes]
    report.warnings = [warning for source in sources for warning in source.info.warnings]
    report.warnings += [*colour_warnings(info, sources[1].info), *engine.warnings]
    report.selection, report.sync, report.pictures = selection, sync, pictures
    report.scoring = scoring_record(
        sources,
        paths,
        metrics,
        engine.info.backend,
        planes=planes,
        raw=raw,
        selection=selection,
        sync=sync,
        pictures=pictures,
    )
    return report


def video_packets(sources: tuple[FrameSource, FrameSource], selection: Selection) -> ClipPackets | None:
    """Return the packets of both clips' video streams; None where a part of the clips was asked for, or a clip ended early."""
    if not selection.takes_all or any(source.problem is not None for source in sources):
        return None
    return sources[0].packets(), sources[1].packets()


def _first_left(sources: tuple[FrameSource, FrameSource], schedule: Schedule) -> Callable[[], tuple[float, float]]:
    """When the first frames that are not skipped are shown, once they were read."""
    (reference, distorted), (first, second) = sources, schedule.pairing.skips
    return lambda: (reference.time(first) or 0.0, distorted.time(second) or 0.0)


def _stage_seconds(run: Run, engine: Backend) -> dict[str, float]:
    return {"read": run.read_seconds, **engine.stage_seconds(), "host": run.host_seconds}
