"""Score one pair of clips from start to end: open it, choose the metrics, score the frames, and report every problem."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

from ..backends.base import Backend
from ..errors import InputError, RangeError
from ..features.plane_metrics import FrameMetrics, PlaneMetrics, plane_formats
from ..frames.open import open_both, open_regular
from ..frames.options import Selection
from ..frames.outcome import ReadOutcome
from ..frames.pairing.preprocessing import colour_warnings, common_format, match_pair, open_pair
from ..frames.pairing.schedule import Schedule, schedule_pairs
from ..frames.source import FrameSource, check_unchanged
from ..report.backend_info import merged_info
from ..report.results import ScoreReport
from ..storage.location import redact_url
from ..utils.thread_pool import close_at_end
from .options import Clips, ScoreOptions
from .ranges import Cut, EarlierScores, Event, Fingerprints, FrameRange, RangeBegun, RangeScores
from .record import ClipPackets, scoring_record
from .run import Run

BackendOpener = Callable[[Sequence[PlaneMetrics]], Backend]
"""A function that opens the backend for the given planes and their metrics."""


def open_sources(stack: ExitStack, clips: Clips, options: ScoreOptions) -> tuple[FrameSource, FrameSource]:
    """Open both clips of a pair, the reference first, preprocessed as the options say. The stack closes them."""
    sources = open_pair(*clips.paths, clips.raw, options.pictures, options.chroma, options.selection.streams, options.decoder)
    return close_at_end(stack, sources[0]), close_at_end(stack, sources[1])


def open_regular_files(stack: ExitStack, clips: Clips, options: ScoreOptions) -> tuple[FrameSource, FrameSource]:
    """Open both clips as `open_sources` does, but refuse pipes. The stack closes the files. Raises InputError."""
    openings = [
        partial(open_regular, path, clips.raw, stream, options.decoder)
        for path, stream in zip(clips.paths, options.selection.streams, strict=True)
    ]
    return match_pair(*open_both(stack, openings, options.decoder), clips.raw, options.pictures, options.chroma)


def score_range(
    sources: tuple[FrameSource, FrameSource],
    clips: Clips,
    open_backend: BackendOpener,
    options: ScoreOptions,
    frame_range: FrameRange = FrameRange(),  # noqa: B008 - frozen
    earlier: EarlierScores = EarlierScores(),  # noqa: B008 - frozen
    tell: Callable[[Event], object] = lambda _event: None,
    *,
    live: bool = False,
    profile: bool = False,
) -> RangeScores:
    """Score a range of the pairs of two open sources, reference first, that are still unread.

    `clips` gives the names in the report, and says how the clips were opened. The caller has already applied
    `options.pictures` to the sources. The backend is closed at the end; the sources are not. `tell` gets the events of the
    range, except its end. The frames of `earlier` are read again, because only reading shows how the clips continue, but only
    the last of them is scored again. With `live`, frames are told of as soon as they are scored.

    This function does not judge the scores: `ranges.joined` does that once all ranges are complete. Raises RangeError if the
    sources turn out not to be readable in ranges, and VkssimError as `score_files` does.
    """
    with ExitStack() as stack:
        metrics = frame_metrics(sources, options)
        schedule = schedule_pairs(options.selection, *sources, options.sync)
        begins = _seek(frame_range.start, sources, schedule)
        backend = close_at_end(stack, open_backend(metrics.planes))
        before = dict(backend.stage_seconds())  # the backend may have scored other ranges before
        report = _new_report(sources, clips, metrics, backend, options)
        tell(RangeBegun(replace(report, frames=[], warnings=[*report.warnings]), backend.batch_size))
        report.backend = merged_info([report.backend, *earlier.backends])
        report.frames += earlier.frames[:-1]  # the last is scored again
        run = Run(sources, backend, schedule, report, metrics, frame_range, tell, live=live)
        stack.enter_context(run)
        run.score()
        behind = _check_range(frame_range, sources, schedule, report)
        if profile:
            seconds = {"read": run.read_seconds, **backend.stage_seconds(), "host": run.host_seconds}
            report.stage_seconds = {stage: seconds[stage] - before.get(stage, 0.0) for stage in seconds}
        return RangeScores(
            report,
            run.others,
            _clip_ends(sources, schedule, frame_range.first + len(report.frames)),
            run.shorter,
            _first_times(sources, schedule) if options.sync == "pts" else None,
            schedule.pairs,
            begins,
            behind,
            video_packets(sources, options.selection) if frame_range.is_whole else None,
        )


def _seek(cut: Cut | None, sources: tuple[FrameSource, FrameSource], schedule: Schedule) -> Fingerprints:
    """Seek both sources to the first frames behind a cut, and return the fingerprints of these frames."""
    if cut is None:
        return None, None
    (reference, distorted), (first, second), (position, other) = sources, schedule.frames(cut.pairs), cut.next
    return reference.seek(first, position), distorted.seek(second, other)


def _check_range(
    frame_range: FrameRange, sources: tuple[FrameSource, FrameSource], schedule: Schedule, report: ScoreReport
) -> Fingerprints:
    """Return the fingerprints of the frames behind the range. Raises RangeError where a read from the start may differ."""
    if frame_range.is_whole:
        return None, None
    for source in sources:
        if source.damage or source.remarks or source.problem is not None:
            raise RangeError(f"{source.info.path} is damaged; what its decoder makes of that depends on where it begins")
        try:
            check_unchanged(source)
        except InputError as error:
            raise RangeError(str(error)) from None
    if frame_range.end is None:
        return None, None
    if frame_range.first + len(report.frames) != frame_range.end.pairs:
        raise RangeError(f"{report.reference} and {report.distorted} end before pair {frame_range.end.pairs}")
    (reference, distorted), (last, other) = sources, frame_range.end.last
    first, second = schedule.frames(frame_range.end.pairs)
    return reference.verify_boundary(first, last), distorted.verify_boundary(second, other)


def _clip_ends(sources: tuple[FrameSource, FrameSource], schedule: Schedule, pairs: int) -> tuple[ReadOutcome, ReadOutcome]:
    """Return how both clips ended. `pairs` is how many pairs were scored, counted from the first."""
    reference, distorted = schedule.frames(pairs - 1) if pairs else (None, None)
    return ReadOutcome.of(sources[0], reference), ReadOutcome.of(sources[1], distorted)


def frame_metrics(sources: tuple[FrameSource, FrameSource], options: ScoreOptions) -> FrameMetrics:
    """Return the metrics that the options ask for, of the planes that two sources have in common. Raises InputError."""
    luma = common_format(*sources, chroma=options.chroma)
    if all(source.external for source in sources):
        luma = luma.in_surfaces()
    formats = plane_formats(luma, options.planes, sources[0].info.chroma)
    return FrameMetrics(options.features, formats, total=options.planes == "all")


def _new_report(
    sources: tuple[FrameSource, FrameSource],
    clips: Clips,
    metrics: FrameMetrics,
    backend: Backend,
    options: ScoreOptions,
) -> ScoreReport:
    """Return the report as it is before the first frame."""
    info = sources[0].info
    report = ScoreReport(
        redact_url(clips.reference),
        redact_url(clips.distorted),
        info.width,
        info.height,
        info.bits,
        metrics.names,
        backend.info,
    )
    report.similarities = metrics.similarities
    report.rate = None if info.fps is None else float(info.fps)
    report.notes = [f"{source.info.path}: {note}" for source in sources for note in source.info.notes]
    report.warnings = [warning for source in sources for warning in source.info.warnings]
    report.warnings += [*colour_warnings(info, sources[1].info), *backend.warnings]
    report.selection, report.sync, report.pictures = options.selection, options.sync, options.pictures
    report.scoring = scoring_record(sources, clips, metrics, backend.info.backend, options)
    return report


def video_packets(sources: tuple[FrameSource, FrameSource], selection: Selection) -> ClipPackets | None:
    """Return the packets of both video streams; None where only some frames were selected, or where a clip ended early."""
    if not selection.takes_all or any(source.problem is not None for source in sources):
        return None
    return sources[0].packets(), sources[1].packets()


def _first_times(sources: tuple[FrameSource, FrameSource], schedule: Schedule) -> tuple[float, float]:
    """Return the presentation times of the first frames that are not skipped, once they were read."""
    (reference, distorted), (first, second) = sources, schedule.pairing.skips
    return reference.time(first) or 0.0, distorted.time(second) or 0.0
