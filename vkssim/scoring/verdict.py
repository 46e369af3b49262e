"""Judge the scores of two clips after the last frame: add warnings, and raise errors for damaged clips and low scores."""

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
"""Messages about frames, each with the number of its frame."""


@dataclass(frozen=True)
class ClipEnd:
    """Hold how reading a clip ended.

    `damage` lists the frames in which the decoder had to conceal missing data, with the decoder's message. `remarks` lists
    other warnings about frames. Both stop at the last frame that was scored, because a decoder reads ahead. `problem` is the
    error that ended the clip early or makes its scores doubtful. `claimed` is the number of frames that the file states,
    `found` the number that could be read, and `hidden` the number that its edit list hides, counted where fewer were found.
    `expected` is the expected number, which may come from the duration. `version` identifies the content of the file.
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
        """Return the end of a source after it was read. Frame `last` was the last that was scored; None where none was."""

        def scored(said: Iterable[tuple[int, str]]) -> Remarks:
            return tuple(sorted((number, text) for number, text in said if last is not None and number <= last))

        damage, remarks = scored(source.damage.items()), scored(source.remarks)
        problem = source.problem
        try:
            check_unchanged(source)
        except InputError as error:  # the change may be the reason for the early end
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
    """Add warnings to a report. Raises InputError for a problem of the clips, DemandError for scores that fail a threshold."""
    for name in report.names:
        missing = [frame.index for frame in report.frames if np.isnan(frame.metrics[name])]
        if missing:
            report.warnings.append(_null_warning(name, missing))
    for end in ends:
        if end.damage:
            frames = [number for number, _ in end.damage]
            said = next((f". FFmpeg says: {text}" for _, text in end.damage if text), "")
            report.warnings.append(
                f"{end.path} is damaged in {len(frames)} of its frames ({_listed(frames)}); the decoder concealed the missing"
                f" data, which changes the scores of these frames and of frames that refer to them{said}"
            )
        report.warnings += _remarks(end)
        if end.problem is not None:
            raise end.problem
        if end.claimed is not None and end.found is not None and end.found < end.claimed:
            report.warnings.append(_fewer(end, end.claimed, end.found))
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
        raise DemandError("; ".join(failed))


def _nothing_to_score(report: ScoreReport, ends: Sequence[ClipEnd]) -> str:
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


def _length(end: ClipEnd, rate: float | None) -> str:
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
        " numbers; --sync pts pairs them by time"
    )


def _fewer(end: ClipEnd, claimed: int, found: int) -> str:
    """Return the message about a clip that has fewer frames than its file states."""
    hidden = f"{end.path}: its edit list hides {counted(end.hidden, 'frame')} of {claimed}" if end.hidden else ""
    if hidden and claimed - end.hidden <= found:
        return f"{hidden}; the {found} that a player shows were scored"
    more = f"; {hidden}" if hidden else ""
    return f"{end.path} says that it has {counted(claimed, 'frame')}; only {found} could be decoded{more}"


def _remarks(end: ClipEnd) -> list[str]:
    """Return a warning for each text, with the numbers of its frames. Texts beyond a limit are only counted."""
    by_text = sorted(end.remarks, key=lambda remark: remark[1])
    texts = [(text, [number for number, _ in said]) for text, said in groupby(by_text, lambda remark: remark[1])]
    texts.sort(key=lambda entry: entry[1][0])
    warnings = [f"{end.path}, frame {_listed(frames)}: {text}" for text, frames in texts[:_MOST_REMARKS]]
    left = len(texts) - len(warnings)
    return warnings + ([f"{end.path}: {left} more messages about its frames are left out"] if left else [])


def _null_warning(name: str, missing: Sequence[int]) -> str:
    return (
        f"{name} is null in {counted(len(missing), 'frame')} ({_listed(missing)}): their mean structure is negative, or samples"
        " are not numbers. negative=clamp counts a negative mean as 0"
    )


def _listed(frames: Sequence[int]) -> str:
    return ", ".join(map(str, frames[:_MOST_NAMED_FRAMES])) + (", …" if len(frames) > _MOST_NAMED_FRAMES else "")
