"""Ranges of the pairs of two clips, each of which is scored by itself: their division, their events, and their scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..errors import RangeError
from ..frames.pairing.schedule import Schedule
from ..frames.source import FrameSource, ReadOutcome, SeekIndex
from ..report.results import FrameScores, ScoreReport
from ..types import BackendInfo
from ..utils.interruption import result_of
from ..utils.thread_pool import run_in_thread
from .record import ClipPackets

_MIN_PAIRS = 32  # with fewer in a range, a device waits longer for its first and last pair than it computes

Fingerprints = tuple[int | None, int | None]
"""The fingerprints of a frame of the reference and of a frame of the distorted clip."""

ScoredFrame = tuple[FrameScores, float | None, BackendInfo]
"""The scores of a frame, its presentation time in the distorted clip, and the backend that computed them."""


@dataclass(frozen=True)
class RangeBoundary:
    """A position between two pairs; `pairs` is the number of pairs before it.

    For each clip, the reference first, `last` is the position of the last frame before the cut and `next` the position of the
    first frame after it; see `FrameSource.seek_index`.
    """

    pairs: int
    last: tuple[int, int]
    next: tuple[int, int]


@dataclass(frozen=True)
class FrameRange:
    """The pairs between two cuts. None stands for the start of the clips, and for their end."""

    start: RangeBoundary | None = None
    end: RangeBoundary | None = None

    @property
    def first(self) -> int:
        """Return the number of the first pair."""
        return 0 if self.start is None else self.start.pairs

    @property
    def stop(self) -> int | None:
        """Return the number of the pair after the last one; None at the end of the clips."""
        return None if self.end is None else self.end.pairs

    @property
    def is_whole(self) -> bool:
        """Return True if the range covers the whole clips."""
        return self.start is None and self.end is None


@dataclass
class RangeScores:
    """The scores of a range, and the facts that only reading it could show.

    `report` has the frames of the range. `others` are the presentation times of these frames in the distorted clip. `ends` say
    how reading the reference and the distorted clip ended, and `shorter` is the message for one clip that ended before the
    other. `starts` are the presentation times of the first frames that are not skipped, if pairs are made by time. `pairs`
    is the number of pairs that all ranges together should have. `begins` and `follows` are the fingerprints of the first frames
    of both clips, and of the frames after the last ones; see `FrameSource.verify_boundary`. `packets` are the packets of both
    video streams if the range covers the whole clips.
    """

    report: ScoreReport
    others: list[float | None]
    ends: tuple[ReadOutcome, ReadOutcome]
    shorter: str | None = None
    starts: tuple[float, float] | None = None
    pairs: int | None = None
    begins: Fingerprints = (None, None)
    follows: Fingerprints = (None, None)
    packets: ClipPackets | None = None

    @property
    def problem(self) -> bool:
        """Return True if a clip ended early."""
        return any(end.problem is not None for end in self.ends)


@dataclass(frozen=True)
class RangeBegun:
    """A range whose device is open. `report` has no frames, and `batch` is the number of frames of a batch."""

    report: ScoreReport
    batch: int


@dataclass(frozen=True)
class BatchScored:
    """Frames that were scored, from the pair of number `first` on.

    `others` are their presentation times in the distorted clip. `pairs` is the number of all pairs, None if it is not known.
    """

    first: int
    frames: Sequence[FrameScores]
    others: Sequence[float | None]
    pairs: int | None
    backend: BackendInfo


Event = RangeBegun | BatchScored | RangeScores | Exception
"""The steps of a range that is scored, in order. The last one is its scores, or the error that prevented some of them."""


def divided(sources: tuple[FrameSource, FrameSource], schedule: Schedule, most: int, shares: int) -> list[FrameRange]:
    """Return ranges of at most about `most` pairs each, which begin at key frames or soon after one.

    `schedule` has the pairs of two sources, made by their numbers.

    Each range has at most one of `shares` equal shares of the pairs that are left. So ranges get shorter, and workers that
    take them one after the other are done at about the same time. There is only one range if the clips cannot be read in
    ranges.
    """
    if any(source.problem is not None for source in sources):
        return [FrameRange()]
    if schedule.pairs is None or schedule.pairs <= _pairs_of_range(schedule.pairs, most, shares):
        return [FrameRange()]
    scan = run_in_thread("vkssim-scan", sources[1].seek_index)
    reference, distorted = sources[0].seek_index(), result_of(scan)
    if reference is None or distorted is None:
        return [FrameRange()]
    try:
        cuts = list(_cuts(schedule, (reference, distorted), most, shares))
    except RangeError:
        return [FrameRange()]
    return [FrameRange(start, end) for start, end in zip([None, *cuts], [*cuts, None], strict=True)]


def _pairs_of_range(left: int, most: int, shares: int) -> int:
    return max(_MIN_PAIRS, min(most, -(-left // shares)))


def _cuts(schedule: Schedule, marks: tuple[SeekIndex, SeekIndex], most: int, shares: int) -> Iterator[RangeBoundary]:
    """Yield cuts at or just after a key frame of the clip that has fewer of them. The other clip is decoded up to a cut."""
    total = schedule.pairs
    assert total is not None
    reference, distorted = marks
    before = wanted = 0
    while (wanted := wanted + _pairs_of_range(total - wanted, most, shares)) < total:
        first, second = schedule.frames(wanted)
        if max(first - reference.frames, second - distorted.frames) >= 0:
            return
        back = max(first - reference.before(first), second - distorted.before(second))
        at = wanted - back // schedule.step
        if at > before:
            first, second = schedule.frames(at)
            last = reference.position(first - 1), distorted.position(second - 1)
            yield RangeBoundary(at, last, (reference.position(first), distorted.position(second)))
            before = at
