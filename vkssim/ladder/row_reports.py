"""Read the report of a row of results."""

from __future__ import annotations

import math
from pathlib import Path

from ..errors import InputError, VkssimError
from ..page.tables import POOLED
from ..report.reading import read_report
from ..report.results import PooledReport, ScoreReport
from ..storage.location import is_url, redact_url
from ..types import BackendInfo
from ..utils.limits import LARGEST_NUMBER
from .tables import Row, number, scores_of, scoring_of


def report_of_row(path: Path, row: Row) -> tuple[Path, ScoreReport]:
    """Return the report of a row and its file: with the scores of each frame, otherwise with the pooled scores only."""
    place = str(row["report"] or "")
    if not place:
        return path, _pooled(row)
    if is_url(place):
        shown = redact_url(place)
        return path, _pooled(row, f"the scores of its frames are at {shown}; a page is made of files on this machine")
    places = [Path(place), path.parent / place]
    file = next((place for place in places if place.is_file()), places[0])
    try:
        return file, read_report(file)
    except VkssimError as error:
        return path, _pooled(row, f"the scores of its frames are missing: {error}")


def _pooled(row: Row, warning: str = "") -> PooledReport:
    """Return the pooled scores of a row. An empty cell stands for null, which is NaN; only a metric itself has dB."""
    scoring, names = scoring_of(row), tuple(scores_of([row]))
    values = {
        name: {
            pooling: math.nan if row[column] in (None, "") else number(row, column)
            for pooling in POOLED
            if (column := f"{name}_{pooling}") in row and (pooling != "mean_db" or row[column] not in (None, ""))
        }
        for name in names
    }
    return PooledReport(
        reference=str(row["reference"] if scoring is None else scoring.reference.path),
        distorted=str(row["distorted"] if scoring is None else scoring.distorted.path),
        width=_whole(row, "width"),
        height=_whole(row, "height"),
        bits=_whole(row, "bitdepth"),
        names=names,
        backend=BackendInfo(*(str(row[name] or "") for name in ("backend", "device", "driver"))),
        warnings=[str(text) for text in (row["warnings"], warning) if text],
        notes=[str(row["notes"])] if row["notes"] else [],
        rate=None if scoring is None else scoring.reference.fps,
        similarities=tuple(name for name, pooled in values.items() if "mean_db" in pooled),
        version="" if scoring is None else scoring.version,
        scoring=scoring,
        values=values,
        count=_whole(row, "frames"),
    )


def _whole(row: Row, name: str) -> int:
    """Return a cell as a whole number, 0 if it is empty. Raises InputError if it is not a whole number."""
    if row[name] in (None, ""):
        return 0
    value = number(row, name)
    if not 0 <= value <= LARGEST_NUMBER:
        raise InputError(f"{row['distorted']}: {name} is {value:g}; it must be within 0 to {LARGEST_NUMBER}")
    return int(value)
