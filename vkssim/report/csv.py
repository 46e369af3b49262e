"""CSV: a header, then a row a frame; a score that does not exist is an empty field."""

from __future__ import annotations

import csv
import io

from ..harmless import cell
from ..results import ScoreReport
from .numbers import NumberFormat


def render(report: ScoreReport, numbers: NumberFormat) -> str:
    """The report as CSV text."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["Frame", *map(cell, report.names)])
    for frame in report.frames:
        writer.writerow([frame.index, *(numbers.text(frame.metrics[name], "") for name in report.names)])
    return text.getvalue()
