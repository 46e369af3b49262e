"""Parts of the pairs of two clips that are scored by themselves, and what is known of each afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from ..errors import VkssimError
from ..frames.source import changed_error
from ..report.backend_info import BackendInfo, merged_info
from ..report.frame_scores import FrameScores
from ..report.results import ScoreReport
from ..report.thresholds import Threshold
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


@dataclass(frozen=True)
class EarlierScores:
    """The scores of consecutive pairs, from pair number `first` on, and the backends that computed them in an earlier run."""

    first: int = 0
    frames: tuple[FrameScores, ...] = ()
    backends: tuple[BackendInfo, ...] = ()


def consecutive(scores: Iterable[EarlierScores], part: Part = Part()) -> EarlierScores:
    """Return what there is of a range from its first pair on without a gap; of the whole clips where none is given."""
    frames: list[FrameScores] = []
    backends: list[BackendInfo] = []
    for block in sorted(scores, key=lambda block: block.first):
        start = part.first + len(frames) - block.first
        stop = None if part.stop is None else max(0, part.stop - block.first)
        if start >= 0 and block.frames[start:stop]:
            frames += block.frames[start:stop]
            backends += block.backends
    return EarlierScores(part.first, tuple(frames), tuple(dict.fromkeys(backends)))


@dataclass
class DividedScores:
    """How a pair of clips is divided into ranges, and the scores of those that were scored, by their place among `parts`.

    `packets` are those of the clips' video streams, where they were counted when the clips were divided.
    """

    parts: list[Part] = field(default_factory=list)
    packets: ClipPackets | None = None
    scores: dict[int, PartScores] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Return True where every range was scored."""
        return bool(self.parts) and len(self.scores) == len(self.parts)

    def fits(self, place: int) -> bool:
        """Return whether a range begins and ends with the frames that its neighbours found there."""
        seams = [(first, first + 1) for first in (place - 1, place) if {first, first + 1} <= self.scores.keys()]
        return all(self.scores[first].behind == self.scores[second].begins for first, second in seams)

    def in_order(self) -> Iterator[EarlierScores]:
        """Yield the scores of each range, from the first on, up to a range that is missing or does not fit."""
        for place, part in enumerate(self.parts):
            if place not in self.scores or not self.fits(place):
                return
            report = self.scores[place].report
            yield EarlierScores(part.first, tuple(report.frames), (report.backend,))


def merged(parts: Sequence[PartScores]) -> ScoreReport:
    """Return one report with the frames of several parts, in order."""
    reports = [part.report for part in parts]
    return replace(
        reports[0],
        frames=list(chain.from_iterable(other.frames for other in reports)),
        warnings=list(dict.fromkeys(chain.from_iterable(other.warnings for other in reports))),
        backend=merged_info([other.backend for other in reports]),
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
    thresholds: Sequence[Threshold] = (),
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
        judge(report, ends, clock, parts[-1].shorter, strict=strict, thresholds=thresholds)
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
