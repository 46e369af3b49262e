"""Read the clips of a page from reports in JSON and from the results of a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..errors import InputError, OptionError
from ..page.tables import codec_and_kbps
from ..report.reading import read_report
from ..report.results import ScoreReport
from ..storage.location import suffix_of
from .ladder_columns import are_steps, grouped, ladder_columns
from .manifest import JSON_LINES
from .row_reports import report_of_row
from .tables import FORMS, RATES, Row, is_results, labels_of, number, read_table, was_scored

MAX_CLIPS = 500
"""The most clips of a page."""

_TABLES = (*FORMS, *JSON_LINES)
_MEASURED = "kbit/s"
_MAX_NAMED = 3


@dataclass(frozen=True)
class PageClip:
    """A clip with its scores."""

    file: str
    """The name of the clip if its report has none."""
    source: Path
    """The file from which the scores were read."""
    report: ScoreReport
    ladder: str | None
    """The name of the ladder that it belongs to; None if it belongs to none."""
    rate: float | None
    """Its bit rate in that ladder."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Its labels in the manifest."""


def read_clips(
    paths: Sequence[Path], *, ladder: Sequence[str] = (), rate: str | None = None
) -> tuple[list[PageClip], str, list[tuple[str, str]]]:
    """Return the clips of reports of `vkssim score` in JSON and of results of `vkssim batch`, recognised by their endings.

    After them come the unit of their bit rates, and (distorted clip, error) of the pairs that a batch could not score.

    `ladder` are the columns of tables that identify a ladder; without them those of `ladder_columns`, and no two clips are a
    ladder unless they are steps of one. `rate` is the column with the bit rates; without it ``bitrate`` if all clips come from
    tables that have it, otherwise the measured bit rate of the video in kbit/s. Raises InputError for a file that cannot be
    read, or is neither a report nor results, and OptionError for a column that does not exist, or more than `MAX_CLIPS` clips.
    """
    tables = {path: read_table(path) for path in paths if suffix_of(path) in _TABLES}
    for path, rows in tables.items():
        if not is_results(rows):
            raise InputError(f"{path} is not the results of `vkssim batch`; for single clips give the JSON reports")

    if rate is None:
        rate = RATES[0] if tables and all(path in tables and RATES[0] in tables[path][0] for path in paths) else RATES[1]
    labels = {path: [name for name in labels_of(rows) if name != rate] for path, rows in tables.items()}

    clips: list[PageClip] = []
    failed: list[tuple[str, str]] = []
    for path in paths:
        if path not in tables:
            report = read_report(path)
            if rate != RATES[1]:
                raise OptionError(f"`rate={rate}` is a column of a table; {path} is the report of a single clip")
            clips.append(PageClip(str(path), path, report, *codec_and_kbps(report)))
            continue
        columns = tables[path][0]
        if unknown := [name for name in (*ladder, rate) if name not in columns]:
            raise OptionError(f"{path} has no column {unknown[0]!r}. The columns are {', '.join(columns)}")
        names = ladder or ladder_columns(tables[path], labels[path])
        for row in tables[path]:
            if not was_scored(row):
                failed.append((str(row["distorted"]), str(row["error"])))
            else:
                clips.append(_of_row(path, row, names, rate, labels[path]))

    if not clips:
        errors = "; ".join(f"{name} was not scored: {error}" for name, error in failed[:_MAX_NAMED])
        raise InputError(f"{', '.join(map(str, paths))}: no clip was scored; {errors}")
    if len(clips) > MAX_CLIPS:
        raise OptionError(f"{len(clips)} clips; a page has {MAX_CLIPS} at most. Make several pages")
    if not ladder and rate == RATES[1]:
        groups = grouped(clips, lambda clip: (clip.report.reference, clip.ladder))
        apart = {id(clip) for group in groups if not are_steps([clip.labels for clip in group]) for clip in group}
        clips = [replace(clip, ladder=None) if id(clip) in apart else clip for clip in clips]
    return clips, _MEASURED if rate == RATES[1] else rate, failed


def _of_row(path: Path, row: Row, ladder: Sequence[str], rate: str, labels: Sequence[str]) -> PageClip:
    source, report = report_of_row(path, row)
    name = " ".join(str(row[column]) for column in ladder if row[column] not in (None, ""))
    kbps = None if row[rate] in (None, "") else number(row, rate)
    given = {label: row[label] for label in labels if row[label] not in (None, "")}
    texts = {label: f"{value:g}" if isinstance(value, float) else str(value) for label, value in given.items()}
    return PageClip(str(row["distorted"]), source, report, name, kbps, texts)
