"""The scores of a pair that is not finished, and their form as values of JSON, from which a later run continues."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

from ..frames.info import VideoPackets
from ..frames.outcome import ReadOutcome
from ..report.record import ScoringRecord
from ..report.results import BackendInfo, FrameScores, ScoreReport
from ..utils.facts import from_json, to_json
from .options import ScoreOptions
from .ranges import EarlierScores, FrameRange, RangeBoundary, RangeScores
from .record import ClipPackets

ScoredFrame = tuple[FrameScores, float | None, BackendInfo]
"""The scores of a frame, its presentation time in the distorted clip, and the backend that computed them."""

_FACTS = ("reference", "distorted", "width", "height", "bits", "names", "warnings", "notes", "rate", "seconds", "similarities")
_TUPLES = ("names", "similarities")


def packed_frames(first: int, scored: Sequence[ScoredFrame]) -> dict[str, Any]:
    """Return frames that one backend scored, from the pair of number `first` on."""
    return {
        "backend": asdict(scored[0][2]),
        "names": list(scored[0][0].metrics),
        "first": first,
        "frames": [[frame.index, frame.time, other, *frame.metrics.values()] for frame, other, _ in scored],
    }


def unpacked_frames(entry: Mapping[str, Any]) -> list[ScoredFrame]:
    """Return the frames of `packed_frames`. Raises ValueError, TypeError or KeyError for anything else."""
    backend, names = BackendInfo(**entry["backend"]), entry["names"]
    return [
        (FrameScores(int(index), dict(zip(names, map(float, values), strict=True)), time), other, backend)
        for index, time, other, *values in entry["frames"]
    ]


def packed_end(scores: RangeScores) -> dict[str, Any]:
    """Return all of a range's scores, except its frames, that was read without a problem."""
    report = scores.report
    return {
        "report": {name: getattr(report, name) for name in _FACTS},
        "backend": asdict(report.backend),
        "ends": [
            [end.path, end.damage, end.remarks, end.claimed, end.found, end.version, end.hidden, end.expected]
            for end in scores.ends
        ],
        "shorter": scores.shorter,
        "starts": scores.starts,
        "pairs": scores.pairs,
        "begins": scores.begins,
        "follows": scores.follows,
        "scoring": to_json(report.scoring),
        "packets": to_json(scores.packets),
    }


def unpacked_end(entry: Mapping[str, Any], scored: Sequence[ScoredFrame], options: ScoreOptions) -> RangeScores:
    """Return the scores of a range from `packed_end` and its frames, which were scored with `options`."""
    report = ScoreReport(
        **entry["report"] | {name: tuple(entry["report"][name]) for name in _TUPLES},
        backend=BackendInfo(**entry["backend"]),
        selection=options.selection,
        sync=options.sync,
        pictures=options.pictures,
        scoring=None if entry["scoring"] is None else from_json(ScoringRecord, entry["scoring"], "scoring"),
        frames=[frame for frame, _, _ in scored],
    )
    reference, distorted = (
        ReadOutcome(
            path, tuple(map(tuple, damage)), tuple(map(tuple, remarks)), None, claimed, found, version, hidden, expected
        )
        for path, damage, remarks, claimed, found, version, hidden, expected in entry["ends"]
    )
    starts = None if entry["starts"] is None else (entry["starts"][0], entry["starts"][1])
    others = [other for _, other, _ in scored]
    begins, follows = tuple(entry["begins"]), tuple(entry["follows"])
    ends, packets = (reference, distorted), _packets(entry["packets"])
    return RangeScores(report, others, ends, entry["shorter"], starts, entry["pairs"], begins, follows, packets)


def packed_cuts(ranges: Sequence[FrameRange], packets: ClipPackets | None) -> dict[str, Any]:
    """Return the division of clips into ranges, and the packets of their video streams."""
    cuts = [asdict(frame_range.start) for frame_range in ranges[1:] if frame_range.start is not None]
    return {"cuts": cuts, "packets": to_json(packets)}


def unpacked_cuts(entry: Mapping[str, Any]) -> tuple[list[FrameRange], ClipPackets | None]:
    """Return the division and the packets of `packed_cuts`. Raises ValueError, TypeError or KeyError for anything else."""
    cuts = [RangeBoundary(cut["pairs"], tuple(cut["last"]), tuple(cut["next"])) for cut in entry["cuts"]]
    return [FrameRange(start, end) for start, end in zip([None, *cuts], [*cuts, None], strict=True)], _packets(entry["packets"])


def _packets(entry: Any) -> ClipPackets | None:
    if entry is None:
        return None
    reference, distorted = (None if clip is None else from_json(VideoPackets, clip, "packets") for clip in entry)
    return reference, distorted


Bounds = tuple[int, int | None]
"""The first pair of a range, and the pair after its last one; None at the end of the clips."""


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
    index in `ranges`, and `ends` their facts as they are stored.
    """

    ranges: list[FrameRange] = field(default_factory=list)
    packets: ClipPackets | None = None
    frames: dict[Bounds, dict[int, ScoredFrame]] = field(default_factory=dict)
    ends: dict[Bounds, Any] = field(default_factory=dict)
    scores: dict[int, RangeScores] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Return True if every range was scored."""
        return bool(self.ranges) and len(self.scores) == len(self.ranges)

    def fits(self, index: int) -> bool:
        """Return whether a range begins and ends with the same frames that its neighbours found there."""
        seams = [(first, first + 1) for first in (index - 1, index) if {first, first + 1} <= self.scores.keys()]
        return all(self.scores[first].follows == self.scores[second].begins for first, second in seams)

    def add(self, of: Bounds, first: int, scored: Iterable[ScoredFrame]) -> dict[int, ScoredFrame]:
        """Add consecutive frames of a range, the first of which has that number, and return those that are new."""
        there = self.frames.setdefault(of, {})
        fresh = {number: frame for number, frame in enumerate(scored, first) if number not in there}
        there.update(fresh)
        return fresh

    def earlier(self, frame_range: FrameRange) -> EarlierScores:
        """Return the scored frames of a range, from its first pair up to the first gap."""
        found = self._scored(frame_range)
        backends = dict.fromkeys(backend for _, _, backend in found)
        return EarlierScores(frame_range.first, tuple(frame for frame, _, _ in found), tuple(backends))

    def _scored(self, frame_range: FrameRange) -> list[ScoredFrame]:
        whole, own = self.frames.get(_WHOLE, {}), self.frames.get(bounds(frame_range), {})
        found: list[ScoredFrame] = []
        number = frame_range.first
        while number != frame_range.stop and (frame := own.get(number) or whole.get(number)) is not None:
            found.append(frame)
            number += 1
        return found

    def read_ends(self, options: ScoreOptions) -> None:
        """Set the scores of the complete ranges of an earlier run, which were scored with `options`."""
        if not self.ranges and _WHOLE in self.ends:
            self.ranges = [FrameRange()]
        for index, frame_range in enumerate(self.ranges):
            end = self.ends.get(bounds(frame_range))
            if end is not None:
                with suppress(ValueError, TypeError, KeyError):
                    self.scores[index] = unpacked_end(end, self._scored(frame_range), options)

    def start_over(self) -> None:
        """Drop everything that was scored in ranges: their frames are not where the packets announced them."""
        self.ranges, self.packets, self.ends, self.scores = [], None, {}, {}
        self.frames = {of: frames for of, frames in self.frames.items() if of == _WHOLE}

    def take(self, entry: Mapping[str, Any]) -> None:
        """Add an entry of the journal. Raises ValueError, TypeError or KeyError for anything else."""
        if "cuts" in entry:
            self.ranges, self.packets = unpacked_cuts(entry)
        elif "over" in entry:
            self.start_over()
        else:
            first, stop = entry["range"]
            of = int(first), None if stop is None else int(stop)
            if "end" in entry:
                self.ends[of] = entry["end"]
            else:
                self.add(of, int(entry["first"]), unpacked_frames(entry))

    def entries(self) -> Iterator[dict[str, Any]]:
        """Yield the entries that make the same once more."""
        if self.ranges:
            yield packed_cuts(self.ranges, self.packets)
        for of, frames in self.frames.items():
            run: list[int] = []
            for number in sorted(frames):
                if run and (number != run[-1] + 1 or frames[number][2] != frames[run[0]][2]):
                    yield {"range": of} | packed_frames(run[0], [frames[one] for one in run])
                    run = []
                run.append(number)
            if run:
                yield {"range": of} | packed_frames(run[0], [frames[one] for one in run])
        for of, end in self.ends.items():
            yield {"range": of, "end": end}
