"""The scores of a part as bytes, so that a run cut off finds them again: JSON behind its CRC-32."""

from __future__ import annotations

import json
import re
import zlib
from dataclasses import asdict
from typing import Any

from ..backends.base import BackendInfo
from ..judging import ClipEnd
from ..parts import Cut, Part, PartScores
from ..results import ScoreReport
from ..score_options import ScoreOptions
from ..scorer import FrameScores

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
        }
    )


def unpacked(data: bytes, options: ScoreOptions) -> PartScores | None:
    """The same again, for how the clips were scored; None for anything that `packed` did not give."""
    entry = _unframed(data)
    if entry is None:
        return None
    facts = entry["report"] | {name: tuple(entry["report"][name]) for name in _TUPLES}
    report = ScoreReport(
        **facts,
        backend=BackendInfo(**entry["backend"]),
        selection=options.selection,
        sync=options.sync,
        pictures=options.pictures,
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
    return PartScores(report, others, (reference, distorted), entry["shorter"], starts, entry["pairs"], begins, behind)


def packed_parts(parts: list[Part]) -> bytes:
    """How clips were divided."""
    return _framed([asdict(part.start) for part in parts[1:] if part.start is not None])


def unpacked_parts(data: bytes) -> list[Part] | None:
    """The same again; None for anything that `packed_parts` did not give."""
    entry = _unframed(data)
    if entry is None:
        return None
    cuts = [Cut(cut["pairs"], tuple(cut["last"]), tuple(cut["next"])) for cut in entry]
    return [Part(start, end) for start, end in zip([None, *cuts], [*cuts, None], strict=True)]


def _framed(entry: Any) -> bytes:
    text = json.dumps(entry, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _unframed(data: bytes) -> Any:
    text = data[9:-1]
    return json.loads(text) if data[:9] + data[-1:] == b"%08x \n" % zlib.crc32(text) else None
