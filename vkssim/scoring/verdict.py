"""Make one report of the ranges of two clips, and judge it: warnings, and errors for damaged clips and low scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from ..errors import InputError, ThresholdError, VkssimError
from ..frames.outcome import ReadOutcome, listed_frames
from ..frames.source import changed_error
from ..report.record import given_flags
from ..report.results import ScoreReport, merged_info
from ..report.thresholds import Threshold, unmet
from ..utils.wording import counted
from .ranges import RangeScores
from .record import ClipPackets, merged_records, with_whole_clips

PairTimes = tuple[int, float | None, float | None]
"""The number of a pair, and the presentation times of its frames, in seconds since the first frame of each clip."""
_ROUNDED = 2e-3
"""The largest rounding of a time in seconds, at both ends: many containers store milliseconds."""

PTS_ADVICE = "; --sync pts pairs frames by time"
"""The end of a message about clips whose frames were paired by their numbers although their times differ."""

_SAME_PACE = 5e-4
"""The relative tolerance of the pace: half of the difference between 23.976 and 24 frames a second."""


class Clock:
    """The times of each pair, compared in order. `paths` are the clips, `rate` is the reference's in frames a second.

    `first_left` gives the times of the first frames that are not skipped. If pairs are made by time, these two count as
    simultaneous. Without it, the frames of the first pair count as simultaneous.
    """

    def __init__(
        self, paths: tuple[str, str], rate: float | None, first_left: Callable[[], tuple[float, float]] | None = None
    ) -> None:
        self._paths = paths
        self._tolerance = None if rate is None else 0.5 / rate
        self._first_left = first_left
        self._starts: tuple[float, float] | None = None
        self._last: tuple[float, float] | None = None
        self.out_of_step: str | None = None
        """The message about the first pair whose frames are more than half a frame apart."""

    def compare(self, pairs: Iterable[PairTimes]) -> None:
        """Compare the times of the next pairs."""
        if self._tolerance is None:
            return
        for index, time, other in pairs:
            if time is None or other is None:
                continue
            self._last = time, other
            if self.out_of_step is None:
                self._compare(index, time, other, self._tolerance)

    @property
    def differs_in_pace(self) -> bool:
        """Return whether one clip shows the same frames in less time than the other; False if pairs are made by time."""
        if self._starts is None or self._last is None or self._first_left is not None:
            return False
        span, other = (last - start for last, start in zip(self._last, self._starts, strict=True))
        return abs(span - other) > _ROUNDED + _SAME_PACE * max(span, other)

    def _compare(self, index: int, time: float, other: float, tolerance: float) -> None:
        if self._starts is None:
            self._starts = (time, other) if self._first_left is None else self._first_left()
        since, other_since = time - self._starts[0], other - self._starts[1]
        if abs(since - other_since) > tolerance:
            first, advice = (
                ("frames compared", PTS_ADVICE)
                if self._first_left is None
                else ("frames that are not skipped", "; their packets announced other times")
            )
            self.out_of_step = (
                f"from frame {index} on {self._paths[0]} and {self._paths[1]} are out of step: {since:.3f} s and"
                f" {other_since:.3f} s after the first {first}{advice}"
            )


def merged(range_scores: Sequence[RangeScores]) -> ScoreReport:
    """Return one report with the frames of several ranges, in order."""
    reports = [scores.report for scores in range_scores]
    return replace(
        reports[0],
        frames=list(chain.from_iterable(other.frames for other in reports)),
        warnings=list(dict.fromkeys(chain.from_iterable(other.warnings for other in reports))),
        notes=list(dict.fromkeys(chain.from_iterable(other.notes for other in reports))),
        backend=merged_info([other.backend for other in reports]),
        scoring=merged_records([other.scoring for other in reports]),
        seconds=sum(other.seconds for other in reports),
        stage_seconds={
            stage: sum(other.stage_seconds.get(stage, 0.0) for other in reports)
            for stage in dict.fromkeys(chain.from_iterable(other.stage_seconds for other in reports))
        },
    )


def joined(
    range_scores: Sequence[RangeScores],
    packets: ClipPackets | None = None,
    *,
    strict: bool = False,
    thresholds: Sequence[Threshold] = (),
) -> ScoreReport:
    """Return the report of two clips from all their ranges, in order. It equals the report of clips scored in one piece.

    `packets` are the packets of both video streams if they were counted when the clips were divided.

    Raises VkssimError as `score_files`; its attribute `report` has the scores.
    """
    report = merged(range_scores)
    starts = range_scores[0].starts
    clock = Clock((report.reference, report.distorted), report.rate, None if starts is None else lambda: starts)
    ends = _ends(range_scores)
    counted = None if any(scores.problem for scores in range_scores) else packets or range_scores[0].packets
    report.scoring = with_whole_clips(report.scoring, counted, ends, range_scores[-1].shorter)
    others = chain.from_iterable(scores.others for scores in range_scores)
    clock.compare([(frame.index, frame.time, other) for frame, other in zip(report.frames, others, strict=True)])
    try:
        evaluate(report, ends, clock, range_scores[-1].shorter, strict=strict, thresholds=thresholds)
    except VkssimError as error:
        error.report = report
        raise
    return report


def _ends(range_scores: Sequence[RangeScores]) -> list[ReadOutcome]:
    """Return how both clips ended.

    If ranges were read from files with different content, the ends carry that as their problem.
    """
    ends = []
    for clip, end in enumerate(range_scores[-1].ends):
        versions = {scores.ends[clip].version for scores in range_scores}
        ends.append(end if len(versions) == 1 else replace(end, problem=changed_error(end.path)))
    return ends


def evaluate(
    report: ScoreReport,
    ends: Sequence[ReadOutcome],
    clock: Clock,
    shorter: str | None,
    *,
    strict: bool,
    thresholds: Sequence[Threshold],
) -> None:
    """Add warnings to a report. Raises InputError for a problem of the clips, ThresholdError for scores below a threshold."""
    for name in report.names:
        missing = [frame.index for frame in report.frames if np.isnan(frame.metrics[name])]
        if missing:
            report.warnings.append(_null_warning(name, missing))
    for end in ends:
        report.warnings += end.warnings()
        if end.problem is not None:
            raise end.problem
        fewer = end.missing_frames()
        if fewer is not None:
            report.warnings.append(fewer)
    report.warnings[:] = dict.fromkeys(report.warnings)  # a clip that is scored against itself has each warning twice
    if not report.frames:
        raise InputError(_nothing_to_score(report, ends))
    unequal = [text for text in (shorter, clock.out_of_step or _different_rates(report, clock)) if text is not None]
    report.warnings += reversed(unequal)
    failed = unmet(thresholds, report)
    report.unequal = "; ".join(unequal) or None
    if strict:
        failed = [f"{text} (`strict`)" for text in unequal] + failed
    if failed:
        raise ThresholdError("; ".join(failed))


def _nothing_to_score(report: ScoreReport, ends: Sequence[ReadOutcome]) -> str:
    """Return the error for clips without a pair.

    It states the lengths in the files: how far each clip was read is chance.
    """
    record = report.scoring
    asked = ""
    if record is not None:
        asked = " ".join(given_flags(replace(record.selection, stream_reference=None, stream_distorted=None)))
    rates = (None, None) if record is None else (record.reference.fps, record.distorted.fps)
    lengths = [_length(end, rate) for end, rate in zip(ends, rates, strict=True)]
    if not asked:
        return f"no frame to score: {' or '.join(dict.fromkeys(end.path for end in ends))} has no frames"
    return f"no frame to score: {asked} leaves none of {' and '.join(dict.fromkeys(lengths))}"


def _length(end: ReadOutcome, rate: float | None) -> str:
    if end.expected is None:
        return end.path
    seconds = f" ({end.expected / rate:g} s)" if rate else ""
    return f"{end.path}, which has {counted(end.expected, 'frame')}{seconds}"


def _different_rates(report: ScoreReport, clock: Clock) -> str | None:
    """Return the message about clips of different frame rates that are too short to get out of step.

    The rate alone says little: containers estimate it from packets, some of which are never shown.
    """
    if report.scoring is None or not clock.differs_in_pace:
        return None
    first, second = report.scoring.reference.fps, report.scoring.distorted.fps
    if first is None or second is None or first == second:
        return None
    return (
        f"{report.reference} has {first:g} frames a second, {report.distorted} {second:g}, and frames were paired by their"
        f" numbers{PTS_ADVICE}"
    )


def _null_warning(name: str, missing: Sequence[int]) -> str:
    return (
        f"{name} is null in {counted(len(missing), 'frame')} ({listed_frames(missing)}): their mean structure is negative, or"
        " samples are not numbers. negative=clamp counts a negative mean as 0"
    )
