"""What is wrong with the scores of two clips, or to be warned of, once all of them are there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from ..errors import DemandError, InputError
from ..frames.source import FrameSource, check_unchanged
from ..report.record import selection_flags
from ..report.results import ScoreReport
from ..report.thresholds import Threshold, unmet
from ..utils.wording import counted
from .timing import Clock

_MOST_NAMED_FRAMES = 8
_MOST_REMARKS = 8

Remarks = tuple[tuple[int, str], ...]
"""What there is to say of frames, each by its number."""


@dataclass(frozen=True)
class ClipEnd:
    """How reading a clip ended.

    `damage` are the frames in which the decoder had to make up what is missing, with what it says of that, `remarks` what else
    there is to warn of; of both only what is up to the last frame that was scored, for a decoder reads ahead. `problem` is what
    ended the clip early, or makes its scores doubtful, `claimed` how many frames it said it has, `found` how many there are,
    `hidden` how many are not to be shown, counted where fewer were found. `expected` is how many there should be, also by the
    duration. `version` tells the content of the file from another one.
    """

    path: str
    damage: Remarks = ()
    remarks: Remarks = ()
    problem: InputError | None = None
    claimed: int | None = None
    found: int | None = None
    version: str | None = None
    hidden: int = 0
    expected: int | None = None

    @classmethod
    def of(cls, source: FrameSource, last: int | None) -> ClipEnd:
        """Return that of a source that was read, of which frame `last` was the last that was scored; None where none was."""

        def scored(said: Iterable[tuple[int, str]]) -> Remarks:
            return tuple(sorted((number, text) for number, text in said if last is not None and number <= last))

        damage, remarks = scored(source.damage.items()), scored(source.remarks)
        problem = source.problem
        try:
            check_unchanged(source)
        except InputError as error:  # which may well be why it ended early
            problem = error
        version = None if source.opened is None else source.opened.version
        claimed, found = source.info.frames, source.length
        hidden = source.hidden_frames() if claimed is not None and found is not None and found < claimed else 0
        return cls(source.info.path, damage, remarks, problem, claimed, found, version, hidden, source.expected)


def judge(
    report: ScoreReport,
    ends: Sequence[ClipEnd],
    clock: Clock,
    shorter: str | None,
    *,
    strict: bool,
    thresholds: Sequence[Threshold],
) -> None:
    """Add warnings to a report. Raises InputError for what is wrong with the clips, DemandError where scores fail a demand."""
    for name in report.names:
        missing = [frame.index for frame in report.frames if np.isnan(frame.metrics[name])]
        if missing:
            report.warnings.append(_null_warning(name, missing))
    for end in ends:
        if end.damage:
            frames = [number for number, _ in end.damage]
            said = next((f". FFmpeg says: {text}" for _, text in end.damage if text), "")
            report.warnings.append(
                f"{end.path} is damaged in {len(frames)} of its frames ({_listed(frames)}); what the decoder put in place of"
                f" what is missing was scored, there and in frames that refer to them{said}"
            )
        report.warnings += _remarks(end)
        if end.problem is not None:
            raise end.problem
        if end.claimed is not None and end.found is not None and end.found < end.claimed:
            report.warnings.append(_fewer(end, end.claimed, end.found))
    report.warnings[:] = dict.fromkeys(report.warnings)  # a clip scored against itself has each twice
    if not report.frames:
        raise InputError(_nothing_to_score(report, ends))
    unequal = [text for text in (shorter, clock.out_of_step or _different_rates(report, clock)) if text is not None]
    report.warnings += reversed(unequal)
    failed = unmet(thresholds, report)
    report.unequal = "; ".join(unequal) or None
    if strict:
        failed = [f"{text} (`strict`)" for text in unequal] + failed
    if failed:
        raise DemandError("; ".join(failed))


def _nothing_to_score(report: ScoreReport, ends: Sequence[ClipEnd]) -> str:
    """Return the error for clips without a pair. It goes by what they say of themselves: how far they were read is chance."""
    record = report.scoring
    asked = "" if record is None else " ".join(selection_flags(record.selection))
    rates = (None, None) if record is None else (record.reference.fps, record.distorted.fps)
    lengths = [_length(end, rate) for end, rate in zip(ends, rates, strict=True)]
    if not asked:
        return f"no frame to score: {' or '.join(dict.fromkeys(end.path for end in ends))} has no frames"
    return f"no frame to score: {asked} leaves none of {' and '.join(dict.fromkeys(lengths))}"


def _length(end: ClipEnd, rate: float | None) -> str:
    if end.expected is None:
        return end.path
    seconds = f" ({end.expected / rate:g} s)" if rate else ""
    return f"{end.path}, which has {counted(end.expected, 'frame')}{seconds}"


def _different_rates(report: ScoreReport, clock: Clock) -> str | None:
    """Return what to say of clips of different frame rates that are too short to come out of step.

    The rate alone says little: containers estimate it by packets, of which some are not shown.
    """
    if report.scoring is None or not clock.differs_in_pace:
        return None
    first, second = report.scoring.reference.fps, report.scoring.distorted.fps
    if first is None or second is None or first == second:
        return None
    return (
        f"{report.reference} has {first:g} frames a second, {report.distorted} {second:g}, and frames were paired by their"
        " numbers; --sync pts pairs them by time"
    )


def _fewer(end: ClipEnd, claimed: int, found: int) -> str:
    """Return what to say of a clip of fewer frames than it said."""
    hidden = f"{end.path}: its edit list hides {counted(end.hidden, 'frame')} of {claimed}" if end.hidden else ""
    if hidden and claimed - end.hidden <= found:
        return f"{hidden}; the {found} that a player shows were scored"
    more = f"; {hidden}" if hidden else ""
    return f"{end.path} says that it has {counted(claimed, 'frame')}; only {found} could be decoded{more}"


def _remarks(end: ClipEnd) -> list[str]:
    """Return a warning for each text, with the frames that it is of; many are only counted."""
    by_text = sorted(end.remarks, key=lambda remark: remark[1])
    texts = [(text, [number for number, _ in said]) for text, said in groupby(by_text, lambda remark: remark[1])]
    texts.sort(key=lambda entry: entry[1][0])
    warnings = [f"{end.path}, frame {_listed(frames)}: {text}" for text, frames in texts[:_MOST_REMARKS]]
    left = len(texts) - len(warnings)
    return warnings + ([f"{end.path}: there is more to say of its frames, {left} times"] if left else [])


def _null_warning(name: str, missing: Sequence[int]) -> str:
    return (
        f"{name} is null in {counted(len(missing), 'frame')} ({_listed(missing)}): their mean structure is negative, or samples"
        " are not numbers. negative=clamp counts a negative mean as 0"
    )


def _listed(frames: Sequence[int]) -> str:
    return ", ".join(map(str, frames[:_MOST_NAMED_FRAMES])) + (", …" if len(frames) > _MOST_NAMED_FRAMES else "")
