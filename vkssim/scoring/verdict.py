"""Judge the scores of two clips after the last frame: add warnings, and raise errors for damaged clips and low scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import InputError, ThresholdError
from ..frames.outcome import ReadOutcome, listed_frames
from ..report.record import selection_flags
from ..report.results import ScoreReport
from ..report.thresholds import Threshold, unmet
from ..utils.wording import counted
from .timing import PTS_ADVICE, Clock


def judge(
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
    asked = "" if record is None else " ".join(selection_flags(record.selection))
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
