"""The scores of a pair that is not finished, and their form as values of JSON, from which a later run continues."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby
from typing import Any

from ..report.results import FrameScores
from ..types import BackendInfo
from ..utils.values import from_json, to_json
from .ranges import FrameRange, RangeScores, ScoredFrame
from .record import ClipPackets

Bounds = tuple[int, int | None]
"""The first pair of a range, and the pair after its last one; None at the end of the clips."""


def _packed_frames(of: Bounds, first: int, scored: Sequence[ScoredFrame]) -> dict[str, Any]:
    """Return the entry about frames of a range that one backend scored, from the pair of number `first` on."""
    return {
        "range": of,
        "backend": asdict(scored[0][2]),
        "names": list(scored[0][0].metrics),
        "first": first,
        "frames": [[frame.index, frame.time, other, *frame.metrics.values()] for frame, other, _ in scored],
    }


def _unpacked_frames(entry: Mapping[str, Any]) -> list[ScoredFrame]:
    backend, names = BackendInfo(**entry["backend"]), entry["names"]
    return [
        (FrameScores(int(index), dict(zip(names, map(float, values), strict=True)), time), other, backend)
        for index, time, other, *values in entry["frames"]
    ]


@dataclass(frozen=True)
class _Division:
    """The ranges into which clips were divided, and the packets of their video streams."""

    ranges: list[FrameRange]
    packets: ClipPackets | None


def bounds(frame_range: FrameRange) -> Bounds:
    """Return the bounds of a range."""
    return frame_range.first, frame_range.stop


_WHOLE = bounds(FrameRange())


@dataclass
class Unfinished:
    """The scores of a pair that is not finished.

    `ranges` are those into which the pair was divided, and `packets` the packets of both video streams if they were counted
    then. `frames` are the frames of each range by the number of their pair. Those of the whole clips were read from the start,
    so they count in every range; those of another range count in that range alone. `scores` has the complete ranges by their
    index in `ranges`. `write` gets every change as an entry for the journal, see `take`; None stands for no journal.
    """

    ranges: list[FrameRange] = field(default_factory=list)
    packets: ClipPackets | None = None
    frames: dict[Bounds, dict[int, ScoredFrame]] = field(default_factory=dict)
    scores: dict[int, RangeScores] = field(default_factory=dict)
    write: Callable[[dict[str, Any]], None] | None = None

    @property
    def complete(self) -> bool:
        """Return True if every range was scored."""
        return bool(self.ranges) and len(self.scores) == len(self.ranges)

    def fits(self, index: int) -> bool:
        """Return whether a range begins and ends with the same frames that its neighbours found there."""
        seams = [(first, first + 1) for first in (index - 1, index) if {first, first + 1} <= self.scores.keys()]
        return all(self.scores[first].follows == self.scores[second].begins for first, second in seams)

    def divide(self, ranges: Sequence[FrameRange], packets: ClipPackets | None) -> None:
        """Divide the pair into ranges."""
        self.ranges, self.packets = [*ranges], packets
        if self.write is not None:
            self.write(self._packed_division())

    def _packed_division(self) -> dict[str, Any]:
        return {"division": to_json(_Division(self.ranges, self.packets))}

    def add(self, of: Bounds, first: int, scored: Iterable[ScoredFrame]) -> Iterable[int]:
        """Add consecutive frames of a range, the first of which has that number, and return the numbers of those that are new.

        They are written at once, so that a killed process loses none of them.
        """
        there = self.frames.setdefault(of, {})
        fresh = {number: frame for number, frame in enumerate(scored, first) if number not in there}
        there.update(fresh)
        if fresh and self.write is not None:
            self.write(_packed_frames(of, min(fresh), list(fresh.values())))
        return fresh

    def end(self, index: int, scores: RangeScores) -> None:
        """Add the scores of a complete range. They are not written if a clip ended early."""
        self.ranges = self.ranges or [FrameRange()]
        self.scores[index] = scores
        if self.write is not None and not scores.problem:
            self.write(self._packed_end(index))

    def _packed_end(self, index: int) -> dict[str, Any]:
        scores = self.scores[index]
        facts = replace(scores, report=replace(scores.report, frames=[]), others=[])
        return {"range": bounds(self.ranges[index]), "end": to_json(facts), "count": len(scores.report.frames)}

    def earlier(self, frame_range: FrameRange) -> list[ScoredFrame]:
        """Return the scored frames of a range, from its first pair up to the first gap."""
        whole, own = self.frames.get(_WHOLE, {}), self.frames.get(bounds(frame_range), {})
        found: list[ScoredFrame] = []
        number = frame_range.first
        while number != frame_range.stop and (frame := own.get(number) or whole.get(number)) is not None:
            found.append(frame)
            number += 1
        return found

    def start_over(self) -> None:
        """Drop everything that was scored in ranges: their frames are not where the packets announced them."""
        self.ranges, self.packets, self.scores = [], None, {}
        self.frames = {of: frames for of, frames in self.frames.items() if of == _WHOLE}
        if self.write is not None:
            self.write({"over": True})

    def take(self, entry: Mapping[str, Any]) -> None:
        """Apply the change that an entry of the journal records. Raises ValueError, TypeError or KeyError for anything else."""
        if "division" in entry:
            division = from_json(_Division, entry["division"], "division")
            self.divide(division.ranges, division.packets)
        elif "over" in entry:
            self.start_over()
        else:
            first, stop = entry["range"]
            of = int(first), None if stop is None else int(stop)
            if "end" in entry:
                scores, ranges = from_json(RangeScores, entry["end"], "end"), self.ranges or [FrameRange()]
                index = [bounds(frame_range) for frame_range in ranges].index(of)
                found = self.earlier(ranges[index])
                if len(found) != entry["count"]:  # at a URL, an object with some of them may be damaged
                    raise ValueError(f"{len(found)} of {entry['count']} frames are there")
                scores.report.frames, scores.others = [frame for frame, _, _ in found], [other for _, other, _ in found]
                self.end(index, scores)
            else:
                self.add(of, int(entry["first"]), _unpacked_frames(entry))

    def entries(self) -> Iterator[dict[str, Any]]:
        """Yield the entries from which `take` restores the same scores."""
        if self.ranges:
            yield self._packed_division()
        for of, frames in self.frames.items():
            for numbers in _runs(frames):
                yield _packed_frames(of, numbers[0], [frames[number] for number in numbers])
        yield from (self._packed_end(index) for index, scores in self.scores.items() if not scores.problem)


def _runs(frames: Mapping[int, ScoredFrame]) -> Iterator[list[int]]:
    """Yield the consecutive numbers of frames that one backend scored."""
    placed = enumerate(sorted(frames))  # consecutive numbers differ from their places by the same amount
    for _, run in groupby(placed, lambda entry: (entry[1] - entry[0], frames[entry[1]][2])):
        yield [number for _, number in run]
