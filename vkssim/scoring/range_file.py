"""Pack the scores of a range into bytes, as a checked line bound to the range's name, for a run that continues later."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from typing import Any

from ..frames.clip_end import ClipEnd
from ..frames.clip_facts import VideoPackets
from ..report.backend_info import BackendInfo
from ..report.frame_scores import FrameScores
from ..report.record import ScoringRecord
from ..report.results import ScoreReport
from ..storage.checked_lines import pack_record, unpack_record
from ..utils.facts import plain, read
from .options import ScoreOptions
from .ranges import Cut, FrameRange, RangeScores
from .record import ClipPackets

_SCORES, _DIVISION = b"vkssim scores 3 ", b"vkssim division 1 "

_FACTS = ("reference", "distorted", "width", "height", "bits", "names", "warnings", "notes", "rate", "seconds", "similarities")
_TUPLES = ("names", "similarities")


def packed(scores: RangeScores, name: str) -> bytes:
    """Return the content of the file of a range that was read without a problem."""
    report = scores.report
    return pack_record(
        _SCORES,
        {
            "report": {name: getattr(report, name) for name in _FACTS},
            "backend": asdict(report.backend),
            "frames": [
                [frame.index, frame.time, other, *frame.metrics.values()]
                for frame, other in zip(report.frames, scores.others, strict=True)
            ],
            "ends": [
                [end.path, end.damage, end.remarks, end.claimed, end.found, end.version, end.hidden, end.expected]
                for end in scores.ends
            ],
            "shorter": scores.shorter,
            "starts": scores.starts,
            "pairs": scores.pairs,
            "begins": scores.begins,
            "behind": scores.behind,
            "scoring": plain(report.scoring),
            "packets": plain(scores.packets),
        },
        name,
    )


def unpacked(data: bytes, name: str, options: ScoreOptions) -> RangeScores | None:
    """Return the scores of a range, scored with `options`; None if `packed` did not write these bytes for this name."""
    entry = _unpacked(_SCORES, data, name)
    if entry is None:
        return None
    facts = entry["report"] | {name: tuple(entry["report"][name]) for name in _TUPLES}
    report = ScoreReport(
        **facts,
        backend=BackendInfo(**entry["backend"]),
        selection=options.selection,
        sync=options.sync,
        pictures=options.pictures,
        scoring=None if entry["scoring"] is None else read(ScoringRecord, entry["scoring"], "scoring"),
        frames=[
            FrameScores(index, dict(zip(facts["names"], values, strict=True)), time)
            for index, time, _, *values in entry["frames"]
        ],
    )
    reference, distorted = (
        ClipEnd(path, tuple(map(tuple, damage)), tuple(map(tuple, remarks)), None, claimed, found, version, hidden, expected)
        for path, damage, remarks, claimed, found, version, hidden, expected in entry["ends"]
    )
    starts = None if entry["starts"] is None else (entry["starts"][0], entry["starts"][1])
    others = [other for _, _, other, *_ in entry["frames"]]
    begins, behind = tuple(entry["begins"]), tuple(entry["behind"])
    ends = reference, distorted
    packets = _packets(entry["packets"])
    return RangeScores(report, others, ends, entry["shorter"], starts, entry["pairs"], begins, behind, packets)


def packed_division(ranges: list[FrameRange], packets: ClipPackets | None, name: str) -> bytes:
    """Return the content of the file that holds the division of clips into ranges, and the packets of their video streams."""
    cuts = [asdict(frame_range.start) for frame_range in ranges[1:] if frame_range.start is not None]
    return pack_record(_DIVISION, {"cuts": cuts, "packets": plain(packets)}, name)


def unpacked_division(data: bytes, name: str) -> tuple[list[FrameRange], ClipPackets | None] | None:
    """Return the division and the packets; None if `packed_division` did not write these bytes for this name."""
    entry = _unpacked(_DIVISION, data, name)
    if entry is None:
        return None
    cuts = [Cut(cut["pairs"], tuple(cut["last"]), tuple(cut["next"])) for cut in entry["cuts"]]
    return [FrameRange(start, end) for start, end in zip([None, *cuts], [*cuts, None], strict=True)], _packets(entry["packets"])


def _packets(entry: Any) -> ClipPackets | None:
    if entry is None:
        return None
    reference, distorted = (None if clip is None else read(VideoPackets, clip, "packets") for clip in entry)
    return reference, distorted


def _unpacked(kind: bytes, data: bytes, name: str) -> Any:
    with suppress(ValueError):
        return unpack_record(kind, data, name)
    return None
