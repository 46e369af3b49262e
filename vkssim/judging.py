"""What is wrong with the scores of two clips, or to be warned of, once all of them are there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .demands import Demand, unmet
from .errors import DemandError, InputError
from .frames.source import FrameSource
from .results import ScoreReport

_MOST_NAMED_FRAMES = 8


@dataclass(frozen=True)
class ClipEnd:
    """How reading a clip ended: the numbers of frames that are `damaged`, the `problem` that ended it early, how many frames it
    said it has and how many were found.
    """

    path: str
    damaged: tuple[int, ...] = ()
    problem: InputError | None = None
    claimed: int | None = None
    found: int | None = None

    @classmethod
    def of(cls, source: FrameSource) -> ClipEnd:
        """That of a source that was read."""
        return cls(source.info.path, tuple(source.damaged), source.problem, source.info.frames, source.length)


def judge(
    report: ScoreReport,
    ends: Sequence[ClipEnd],
    out_of_step: str | None,
    shorter: str | None,
    *,
    strict: bool,
    demands: Sequence[Demand],
) -> None:
    """Add warnings to a report. Raises InputError for what is wrong with the clips, DemandError where scores fail a demand."""
    for name in report.names:
        missing = [frame.index for frame in report.frames if np.isnan(frame.metrics[name])]
        if missing:
            report.warnings.append(_null_warning(name, missing))
    for end in ends:
        if end.damaged:
            report.warnings.append(
                f"{end.path} is damaged in {len(end.damaged)} of its frames ({_listed(end.damaged)}); what the decoder put in"
                " place of what is missing was scored, there and in frames that refer to them"
            )
        if end.problem is not None:
            raise end.problem
        if end.claimed is not None and end.found is not None and end.found < end.claimed:
            report.warnings.append(f"{end.path} says that it has {end.claimed} frames; only {end.found} could be decoded")
    if not report.frames:
        raise InputError(
            f"no frame to score in {report.reference} and {report.distorted}: one is empty, or all frames are skipped,"
            " by --start or --end, say"
        )
    if out_of_step is not None:
        report.warnings.append(out_of_step)
    failed = unmet(demands, report)
    if shorter is not None:
        report.warnings.append(shorter)
        if strict:
            failed.insert(0, f"{shorter} (--strict)")
    if failed:
        raise DemandError("; ".join(failed))


def _null_warning(name: str, missing: Sequence[int]) -> str:
    return (
        f"{name} is null in {len(missing)} frames ({_listed(missing)}): their mean structure is negative, or samples are not"
        " numbers. negative=clamp counts a negative mean as 0"
    )


def _listed(frames: Sequence[int]) -> str:
    return ", ".join(map(str, frames[:_MOST_NAMED_FRAMES])) + (", …" if len(frames) > _MOST_NAMED_FRAMES else "")
