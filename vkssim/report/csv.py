"""Render a report as CSV: a header, then a row for each frame. A score that does not exist is an empty field.

The column `time` has seconds from the first frame of the reference; it is there if the times of all frames are known.
The last column has no name. Its first row holds the record of how the frames were scored, as JSON; its other rows are empty.
libvmaf ends each line with a comma, so programs that read its files skip such a column.
"""

from __future__ import annotations

import csv
import io
import json

from ..utils.facts import to_json
from ..utils.sanitize import cell
from .numbers import NumberFormat, shortest
from .results import ScoreReport


def render(report: ScoreReport, numbers: NumberFormat) -> str:
    """Return the report as CSV text."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    scoring = [] if report.scoring is None else [json.dumps(to_json(report.scoring), separators=(",", ":"))]
    timed = bool(report.frames) and all(frame.time is not None for frame in report.frames)
    writer.writerow(["Frame", *map(cell, report.names), *(["time"] if timed else []), *([""] * len(scoring))])
    for frame in report.frames:
        scores = [numbers.text(frame.metrics[name], "") for name in report.names]
        time = [shortest(frame.time)] if timed and frame.time is not None else []
        writer.writerow([frame.index, *scores, *time, *scoring])
        scoring = [""] * len(scoring)
    return text.getvalue()
