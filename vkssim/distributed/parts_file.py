"""The scores of a part as bytes, so that a run cut off finds them again: JSON behind its CRC-32."""

from __future__ import annotations

import json
import re
import zlib
from dataclasses import asdict
from typing import Any

from ..backends.base import BackendInfo
from ..facts import plain, read
from ..frames.clip_facts import VideoPackets
from ..judging import ClipEnd
from ..parts import Cut, Part, PartScores
from ..results import ScoreReport
from ..score_options import ScoreOptions
from ..scorer import FrameScores
from ..scoring_record import ClipPackets, ScoringRecord

KEPT = re.compile(r"[0-9a-z]+/(parts|whole|\d{12}-\d*)")
"""The names of what is kept in a folder of parts, and of nothing else: the key of a pair, and what it is of."""

_FACTS = ("reference", "distorted", "width", "height", "bits", "names", "warnings", "notes", "rate", "seconds", "similarities")
_TUPLES = ("names", "similarities")


def packed(scores: PartScores) -> bytes:
    """The scores of a part that was read without a problem."""
    report = scores.report
    return _framed(
        {
            "report": {name: getattr(report, name) for name in _FACTS},
            "backend": asdict(report.backend),
            "frames": [
                [frame.index, frame.time, other, *frame.metrics.values()]
                for frame, other in zip(report.frames, scores.others, strict=True)
            ],
            "ends": [[end.path, end.damaged, end.claimed, end.found] for end in scores.ends],
            "shorter": scores.shorter,
            "starts": scores.starts,
            "pairs": scores.pairs,
            "begins": scores.begins,
            "behind": scores.behind,
            "scoring": plain(report.scoring),
            "packets": plain(scores.packets),
        }
    )


def unpacked(data: bytes, options: ScoreOptions) -> PartScores | None:
    """The same again, for how the clips were scored; None for anything that `packed` did not give."""
    entry = _unframed(data)
    if not (isinstance(entry, dict) and "scoring" in entry):
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
        ClipEnd(path, tuple(damaged), None, claimed, found) for path, damaged, claimed, found in entry["ends"]
    )
    starts = None if entry["starts"] is None else (entry["starts"][0], entry["starts"][1])
    others = [other for _, _, other, *_ in entry["frames"]]
    begins, behind = tuple(entry["begins"]), tuple(entry["behind"])
    ends = reference, distorted
    packets = _packets(entry["packets"])
    return PartScores(report, others, ends, entry["shorter"], starts, entry["pairs"], begins, behind, packets)


def packed_parts(parts: list[Part], packets: ClipPackets | None) -> bytes:
    """Return how clips were divided, and the packets of their video streams, as bytes."""
    cuts = [asdict(part.start) for part in parts[1:] if part.start is not None]
    return _framed({"cuts": cuts, "packets": plain(packets)})


def unpacked_parts(data: bytes) -> tuple[list[Part], ClipPackets | None] | None:
    """Return the same again; None for anything that `packed_parts` did not give."""
    entry = _unframed(data)
    if not isinstance(entry, dict):
        return None
    cuts = [Cut(cut["pairs"], tuple(cut["last"]), tuple(cut["next"])) for cut in entry["cuts"]]
    return [Part(start, end) for start, end in zip([None, *cuts], [*cuts, None], strict=True)], _packets(entry["packets"])


def _packets(entry: Any) -> ClipPackets | None:
    if entry is None:
        return None
    reference, distorted = (None if clip is None else read(VideoPackets, clip, "packets") for clip in entry)
    return reference, distorted


def _framed(entry: Any) -> bytes:
    text = json.dumps(entry, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _unframed(data: bytes) -> Any:
    text = data[9:-1]
    return json.loads(text) if data[:9] + data[-1:] == b"%08x \n" % zlib.crc32(text) else None
