"""Parts of the pairs of two clips that are scored by themselves, and what is known of each afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from ..errors import VkssimError
from ..frames.source import changed_error
from ..report.results import ScoreReport
from ..report.thresholds import Demand
from .record import ClipPackets, merged_records, with_whole_clips
from .timing import Clock
from .verdict import ClipEnd, judge

Fingerprints = tuple[int | None, int | None]
"""Of a frame of the reference and one of the distorted clip."""


@dataclass(frozen=True)
class Cut:
    """A place between two pairs: `pairs` are before it.

    Of each clip, the reference first, `last` is where the last frame before it is, `next` where the first one behind it is; see
    `frames.marks`.
    """

    pairs: int
    last: tuple[int, int]
    next: tuple[int, int]


@dataclass(frozen=True)
class Part:
    """The pairs from one cut to another; None for the first pair, and for wherever the clips end."""

    start: Cut | None = None
    end: Cut | None = None

    @property
    def first(self) -> int:
        """Return the first pair."""
        return 0 if self.start is None else self.start.pairs

    @property
    def stop(self) -> int | None:
        """Return the pair behind the last."""
        return None if self.end is None else self.end.pairs

    @property
    def is_whole(self) -> bool:
        """Return True where it is all there is."""
        return self.start is None and self.end is None


@dataclass
class PartScores:
    """The scores of a part, and what only reading it told.

    `report` has the frames of the part, `others` are when the distorted clip shows each of them. `ends` are how the reference
    and the distorted clip ended, `shorter` what to say where one did before the other, `starts` when the first frames that are
    not skipped are shown, where pairs are made by time. `pairs` is how many all parts together should have. `begins` and
    `behind` are the fingerprints of both clips' first frames, and of those behind the last; see `FrameSource.check_passed`.
    `packets` are those of both clips' video streams where the part is all there is.
    """

    report: ScoreReport
    others: list[float | None]
    ends: tuple[ClipEnd, ClipEnd]
    shorter: str | None = None
    starts: tuple[float, float] | None = None
    pairs: int | None = None
    begins: Fingerprints = (None, None)
    behind: Fingerprints = (None, None)
    packets: ClipPackets | None = None

    @property
    def problem(self) -> bool:
        """Return whether a clip ended early."""
        return any(end.problem is not None for end in self.ends)


def merged(parts: Sequence[PartScores]) -> ScoreReport:
    """Return one report with the frames of several parts, in order."""
    reports = [part.report for part in parts]
    return replace(
        reports[0],
        frames=list(chain.from_iterable(other.frames for other in reports)),
        warnings=list(dict.fromkeys(chain.from_iterable(other.warnings for other in reports))),
        backend=replace(
            reports[0].backend,
            device=_named(other.backend.device for other in reports),
            driver=_named(other.backend.driver for other in reports),
        ),
        scoring=merged_records([other.scoring for other in reports]),
        seconds=sum(other.seconds for other in reports),
        stage_seconds={
            stage: sum(other.stage_seconds.get(stage, 0.0) for other in reports)
            for stage in dict.fromkeys(chain.from_iterable(other.stage_seconds for other in reports))
        },
    )


def joined(
    parts: Sequence[PartScores],
    packets: ClipPackets | None = None,
    *,
    strict: bool = False,
    demands: Sequence[Demand] = (),
) -> ScoreReport:
    """Return the report of two clips from all their parts, in order: the same as if they had been one.

    `packets` are those of the clips' video streams, where they were counted as the clips were divided.

    Raises VkssimError as `score_files`; its attribute `report` has the scores.
    """
    report = merged(parts)
    starts = parts[0].starts
    clock = Clock((report.reference, report.distorted), report.rate, None if starts is None else lambda: starts)
    ends = _ends(parts)
    counted = None if any(part.problem for part in parts) else packets or parts[0].packets
    report.scoring = with_whole_clips(report.scoring, counted, ends, parts[-1].shorter)
    others = chain.from_iterable(part.others for part in parts)
    clock.compare([(frame.index, frame.time, other) for frame, other in zip(report.frames, others, strict=True)])
    try:
        judge(report, ends, clock, parts[-1].shorter, strict=strict, demands=demands)
    except VkssimError as error:
        error.report = report
        raise
    return report


def _ends(parts: Sequence[PartScores]) -> list[ClipEnd]:
    """Return how both clips ended; where parts were read of files that are not the same, with that as their problem."""
    ends = []
    for clip, end in enumerate(parts[-1].ends):
        versions = {part.ends[clip].version for part in parts}
        ends.append(end if len(versions) == 1 else replace(end, problem=changed_error(end.path)))
    return ends


def _named(names: Iterable[str]) -> str:
    return "; ".join(sorted(set(names)))
