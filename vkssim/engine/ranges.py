"""Ranges of the pairs of two clips: their division, the events of a range that is scored, and the scores so far."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby
from typing import Any

from ..errors import RangeError
from ..frames.info import VideoPackets
from ..frames.pairing.schedule import Schedule
from ..frames.source import FrameSource, ReadOutcome, SeekIndex
from ..report.results import FrameScores, ScoreReport
from ..types import BackendInfo
from ..utils.interruption import result_of
from ..utils.thread_pool import run_in_thread
from ..utils.values import from_json, to_json

MIN_PAIRS = 32
"""The smallest range: with fewer pairs, a device waits longer for the first and the last of them than it computes."""

PIXELS_A_SECOND = {"gpu": 2e9, "software": 3e7, "cpu": 3e6}
"""Pixels of the reference that a worker of each kind scores in a second, until it is measured: a slow GPU, or two cores."""

DECODED_PIXELS_A_SECOND = 8e7
"""Pixels of the reference that one core decodes in a second, together with the distorted clip, as H.264."""

Fingerprints = tuple[int | None, int | None]
"""The fingerprints of a frame of the reference and of a frame of the distorted clip."""

ClipPackets = tuple[VideoPackets | None, VideoPackets | None]
"""The packets of the reference and of the distorted clip; see `FrameSource.packets`."""

ScoredFrame = tuple[FrameScores, float | None, BackendInfo]
"""The scores of a frame, its presentation time in the distorted clip, and the backend that computed them."""

Bounds = tuple[int, int | None]
"""The first pair of a range, and the pair after its last one; None at the end of the clips."""


@dataclass(frozen=True)
class RangeBoundary:
    """A position between two pairs. Positions of frames are those of `FrameSource.seek_index`, the reference's first."""

    pairs: int
    """The number of pairs before it."""
    last: tuple[int, int]
    """The positions of the last frames before it, or before its lead."""
    next: tuple[int, int]
    """The positions of the frames that follow `last`."""
    lead: int = 0
    """The number of pairs before it that both ranges read, because a metric looks at neighbours."""


@dataclass(frozen=True)
class FrameRange:
    """The pairs between two boundaries. None stands for the start of the clips, and for their end."""

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
    def bounds(self) -> Bounds:
        """Return the first pair, and the pair after the last one."""
        return self.first, self.stop

    @property
    def is_whole(self) -> bool:
        """Return True if the range covers the whole clips."""
        return self.start is None and self.end is None


_WHOLE = FrameRange().bounds


# -- events -----------------------------------------------------------------------------------------------------------


@dataclass
class RangeScores:
    """The scores of a range, and the facts that only reading it could show."""

    report: ScoreReport
    """The report of the frames of the range."""
    distorted_times: list[float | None]
    """The presentation times of these frames in the distorted clip."""
    ends: tuple[ReadOutcome, ReadOutcome]
    """How reading the reference and the distorted clip ended."""
    shorter: str | None = None
    """The message for one clip that ended before the other."""
    starts: tuple[float, float] | None = None
    """The presentation times of the first frames that are not skipped, if pairs are made by time."""
    pairs: int | None = None
    """The number of pairs that all ranges together should have."""
    begins: Fingerprints = (None, None)
    """The fingerprints of the first frames that are read; see `FrameSource.verify_boundary`."""
    follows: Fingerprints = (None, None)
    """The fingerprints of the frames at the end of the range, with which the next one begins to read."""
    packets: ClipPackets | None = None
    """The packets of both video streams if the range covers the whole clips."""

    @property
    def problem(self) -> bool:
        """Return True if a clip ended early."""
        return any(end.problem is not None for end in self.ends)


@dataclass(frozen=True)
class RangeBegun:
    """The event that the device of a range is open."""

    report: ScoreReport
    """The report, which has no frames yet."""
    batch: int
    """The number of frames of a batch."""


@dataclass(frozen=True)
class BatchScored:
    """The event that a batch of frames was scored."""

    first: int
    """The number of the first pair."""
    frames: Sequence[FrameScores]
    distorted_times: Sequence[float | None]
    """The presentation times of the frames in the distorted clip."""
    pairs: int | None
    """The number of all pairs; None if it is not known."""
    backend: BackendInfo


Event = RangeBegun | BatchScored | RangeScores | Exception
"""The steps of a range that is scored, in order. The last one is its scores, or the error that prevented some of them."""


# -- division ---------------------------------------------------------------------------------------------------------


def divide_pairs(
    sources: tuple[FrameSource, FrameSource], schedule: Schedule, max_pairs: int, workers: int, *, lead: int = 0
) -> list[FrameRange]:
    """Return ranges of about `max_pairs` pairs or fewer for so many workers, which begin at key frames or soon after one.

    `schedule` has the pairs of two sources, made by their numbers. A range has no more than a worker's equal share of the pairs
    that are left. So ranges get shorter, and workers that take them one after the other are done at about the same time. There
    is only one range if the clips cannot be read in ranges. The `lead` pairs before each range are read with it, and the
    first of them is the one at a key frame.
    """
    if any(source.problem is not None for source in sources):
        return [FrameRange()]
    if schedule.pairs is None or schedule.pairs <= _pairs_of_range(schedule.pairs, max_pairs, workers):
        return [FrameRange()]

    scan = run_in_thread("vkssim-scan", sources[1].seek_index)
    reference, distorted = sources[0].seek_index(), result_of(scan)
    if reference is None or distorted is None:
        return [FrameRange()]

    try:
        boundaries = list(_boundaries(schedule, (reference, distorted), max_pairs, workers, lead))
    except RangeError:
        return [FrameRange()]
    return [FrameRange(start, end) for start, end in zip([None, *boundaries], [*boundaries, None], strict=True)]


def _pairs_of_range(left: int, max_pairs: int, workers: int) -> int:
    return max(MIN_PAIRS, min(max_pairs, -(-left // workers)))


def _boundaries(
    schedule: Schedule, indices: tuple[SeekIndex, SeekIndex], max_pairs: int, workers: int, lead: int
) -> Iterator[RangeBoundary]:
    """Yield boundaries at or just after a key frame of the clip with fewer of them, or `lead` pairs later.

    The other clip is decoded up to there.
    """
    total = schedule.pairs
    assert total is not None
    reference, distorted = indices
    before = target = 0
    while (target := target + _pairs_of_range(total - target, max_pairs, workers)) < total:
        first, second = schedule.frames(target)
        if max(first - reference.frames, second - distorted.frames) >= 0:
            return
        back = max(first - reference.before(first), second - distorted.before(second))
        at = target - back // schedule.step + lead
        if before + lead < at < total:
            first, second = schedule.frames(at - lead)
            last = reference.position(first - 1), distorted.position(second - 1)
            yield RangeBoundary(at, last, (reference.position(first), distorted.position(second)), lead)
            before = at


@dataclass(frozen=True)
class _Division:
    """The ranges into which clips were divided, and the packets of their video streams."""

    ranges: list[FrameRange]
    packets: ClipPackets | None


# -- the scores so far ------------------------------------------------------------------------------------------------


@dataclass
class Unfinished:
    """The scores of a pair that is not finished, and their form as values of JSON, from which a later run continues."""

    ranges: list[FrameRange] = field(default_factory=list)
    """The ranges into which the pair was divided."""
    packets: ClipPackets | None = None
    """The packets of both video streams if they were counted when the pair was divided."""
    frames: dict[Bounds, dict[int, ScoredFrame]] = field(default_factory=dict)
    """The frames of each range, by the number of their pair.

    Frames of the whole clips were read from the start, so they count in every range. Those of another range count there alone.
    """
    scores: dict[int, RangeScores] = field(default_factory=dict)
    """The complete ranges, by their index in `ranges`."""
    write: Callable[[dict[str, Any]], None] | None = None
    """The function that gets every change as an entry for the journal; None without a journal."""

    @property
    def complete(self) -> bool:
        """Return True if every range was scored."""
        return bool(self.ranges) and len(self.scores) == len(self.ranges)

    def fits(self, index: int) -> bool:
        """Return whether a range begins and ends with the same frames as its neighbours."""
        seams = [(first, first + 1) for first in (index - 1, index) if {first, first + 1} <= self.scores.keys()]
        return all(self.scores[first].follows == self.scores[second].begins for first, second in seams)

    def divide(self, ranges: Sequence[FrameRange], packets: ClipPackets | None) -> None:
        """Divide the pair into ranges."""
        self.ranges, self.packets = [*ranges], packets
        self._write(self._division_entry)

    def add(self, bounds: Bounds, first: int, scored: Iterable[ScoredFrame]) -> Iterable[int]:
        """Add consecutive frames of a range, the first of which has that number, and return the numbers of those that are new.

        They are written at once, so that a killed process loses none of them.
        """
        frames = self.frames.setdefault(bounds, {})
        new = {number: frame for number, frame in enumerate(scored, first) if number not in frames}
        frames.update(new)
        if new:
            self._write(lambda: _frames_entry(bounds, min(new), list(new.values())))
        return new

    def end(self, index: int, scores: RangeScores) -> None:
        """Add the scores of a complete range. They are not written if a clip ended early."""
        self.ranges = self.ranges or [FrameRange()]
        self.scores[index] = scores
        if not scores.problem:
            self._write(lambda: self._end_entry(index))

    def earlier(self, frame_range: FrameRange) -> list[ScoredFrame]:
        """Return the scored frames of a range, from its first pair up to the first gap."""
        whole, own = self.frames.get(_WHOLE, {}), self.frames.get(frame_range.bounds, {})
        frames: list[ScoredFrame] = []
        number = frame_range.first
        while number != frame_range.stop and (frame := own.get(number) or whole.get(number)) is not None:
            frames.append(frame)
            number += 1
        return frames

    def start_over(self) -> None:
        """Drop everything that was scored in ranges: their frames are not where the packets announced them."""
        self.ranges, self.packets, self.scores = [], None, {}
        self.frames = {bounds: frames for bounds, frames in self.frames.items() if bounds == _WHOLE}
        self._write(lambda: {"over": True})

    # -- entries -----------------------------------------------------------------------------------------------------

    def _write(self, entry: Callable[[], dict[str, Any]]) -> None:
        if self.write is not None:
            self.write(entry())

    def _division_entry(self) -> dict[str, Any]:
        return {"division": to_json(_Division(self.ranges, self.packets))}

    def _end_entry(self, index: int) -> dict[str, Any]:
        scores = self.scores[index]
        facts = replace(scores, report=replace(scores.report, frames=[]), distorted_times=[])
        return {"range": self.ranges[index].bounds, "end": to_json(facts)}

    def read_entry(self, entry: Mapping[str, Any]) -> None:
        """Apply the change that an entry of the journal records. Raises ValueError, TypeError or KeyError for anything else."""
        if "division" in entry:
            division = from_json(_Division, entry["division"], "division")
            self.divide(division.ranges, division.packets)
            return
        if "over" in entry:
            self.start_over()
            return

        first, stop = entry["range"]
        bounds = int(first), None if stop is None else int(stop)
        if "end" not in entry:
            self.add(bounds, int(entry["first"]), _frames_of(entry))
            return

        ranges = self.ranges or [FrameRange()]
        index = [frame_range.bounds for frame_range in ranges].index(bounds)
        scores, scored = from_json(RangeScores, entry["end"], "end"), self.earlier(ranges[index])
        scores.report.frames = [frame for frame, _, _ in scored]
        scores.distorted_times = [time for _, time, _ in scored]
        self.end(index, scores)

    def entries(self) -> Iterator[dict[str, Any]]:
        """Yield the entries from which `read_entry` restores the same scores."""
        if self.ranges:
            yield self._division_entry()
        for bounds, frames in self.frames.items():
            for numbers in _runs(frames):
                yield _frames_entry(bounds, numbers[0], [frames[number] for number in numbers])
        yield from (self._end_entry(index) for index, scores in self.scores.items() if not scores.problem)


def _frames_entry(bounds: Bounds, first: int, scored: Sequence[ScoredFrame]) -> dict[str, Any]:
    """Return the entry about frames of a range that one backend scored, from the pair of number `first` on."""
    return {
        "range": bounds,
        "backend": asdict(scored[0][2]),
        "names": list(scored[0][0].metrics),
        "first": first,
        "frames": [[frame.index, frame.time, time, *frame.metrics.values()] for frame, time, _ in scored],
    }


def _frames_of(entry: Mapping[str, Any]) -> list[ScoredFrame]:
    backend, names = BackendInfo(**entry["backend"]), entry["names"]
    return [
        (FrameScores(int(index), dict(zip(names, map(float, values), strict=True)), time), distorted_time, backend)
        for index, time, distorted_time, *values in entry["frames"]
    ]


def _runs(frames: Mapping[int, ScoredFrame]) -> Iterator[list[int]]:
    """Yield the consecutive numbers of frames that one backend scored."""
    placed = enumerate(sorted(frames))  # consecutive numbers differ from their places by the same amount
    for _, run in groupby(placed, lambda entry: (entry[1] - entry[0], frames[entry[1]][2])):
        yield [number for _, number in run]
