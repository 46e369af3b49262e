"""Pack what a pair's scores consist of as values of JSON, for a run that continues later, and read these values back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ..frames.info import VideoPackets
from ..frames.outcome import ReadOutcome
from ..report.backend_info import BackendInfo
from ..report.frame_scores import FrameScores
from ..report.record import ScoringRecord
from ..report.results import ScoreReport
from ..utils.facts import from_json, to_json
from .options import ScoreOptions
from .ranges import Cut, FrameRange, RangeScores
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
        "behind": scores.behind,
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
    begins, behind = tuple(entry["begins"]), tuple(entry["behind"])
    ends, packets = (reference, distorted), _packets(entry["packets"])
    return RangeScores(report, others, ends, entry["shorter"], starts, entry["pairs"], begins, behind, packets)


def packed_cuts(ranges: Sequence[FrameRange], packets: ClipPackets | None) -> dict[str, Any]:
    """Return the division of clips into ranges, and the packets of their video streams."""
    cuts = [asdict(frame_range.start) for frame_range in ranges[1:] if frame_range.start is not None]
    return {"cuts": cuts, "packets": to_json(packets)}


def unpacked_cuts(entry: Mapping[str, Any]) -> tuple[list[FrameRange], ClipPackets | None]:
    """Return the division and the packets of `packed_cuts`. Raises ValueError, TypeError or KeyError for anything else."""
    cuts = [Cut(cut["pairs"], tuple(cut["last"]), tuple(cut["next"])) for cut in entry["cuts"]]
    return [FrameRange(start, end) for start, end in zip([None, *cuts], [*cuts, None], strict=True)], _packets(entry["packets"])


def _packets(entry: Any) -> ClipPackets | None:
    if entry is None:
        return None
    reference, distorted = (None if clip is None else from_json(VideoPackets, clip, "packets") for clip in entry)
    return reference, distorted
