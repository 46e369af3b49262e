"""Render a report as CSV: a header, then a row for each frame. A score that does not exist is an empty field.

The last column has no name. Its first row holds the record of how the frames were scored, as JSON; its other rows are empty.
libvmaf ends each line with a comma, so programs that read its files skip such a column.
"""

from __future__ import annotations

import csv
import io
import json

from ..utils.facts import plain
from ..utils.sanitize import cell
from .numbers import NumberFormat
from .results import ScoreReport


def render(report: ScoreReport, numbers: NumberFormat) -> str:
    """Return the report as CSV text."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    scoring = [] if report.scoring is None else [json.dumps(plain(report.scoring), separators=(",", ":"))]
    writer.writerow(["Frame", *map(cell, report.names), *([""] * len(scoring))])
    for frame in report.frames:
        writer.writerow([frame.index, *(numbers.text(frame.metrics[name], "") for name in report.names), *scoring])
        scoring = [""] * len(scoring)
    return text.getvalue()
