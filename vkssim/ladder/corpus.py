"""Compare two results of a batch, or two folders of reports, pair by pair."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import InputError
from ..metrics.comparability import Findings, Scored, check_alike
from ..report.reading import read_report
from ..report.results import ScoreReport
from ..storage.location import suffix_of
from ..utils.wording import counted, listed
from .compare import Comparison, compare_pooled, compare_reports
from .manifest import JSON_LINES
from .row_reports import report_of_row
from .tables import FORMS, Row, is_results, labels_of, read_table, was_scored

_MAX_NAMED = 3


@dataclass(frozen=True)
class Entry:
    """A pair of a corpus, by its distorted clip, with its report."""

    name: str
    keys: tuple[Hashable, ...]
    """The names by which it can be matched: as they are written, without folders, and by its labels or its file."""
    report: ScoreReport | None
    """None if the pair could not be scored."""
    error: str = ""


@dataclass(frozen=True)
class PairChange:
    """The changes of a pair that both corpora have."""

    name: str
    compared: Comparison
    has_frames: bool


@dataclass(frozen=True)
class CorpusComparison:
    """The changes of all pairs. `lost` has (pair, reason) for those without a score in the second corpus alone."""

    pairs: Sequence[PairChange]
    lost: Sequence[tuple[str, str]]
    findings: Findings


def is_corpus(path: Path) -> bool:
    """Return whether a path is a folder or a table, not a single report."""
    return path.is_dir() or suffix_of(path) in (*FORMS, *JSON_LINES)


def read_corpus(path: Path) -> list[Entry]:
    """Return the pairs of results or of a folder of reports in JSON. Raises InputError if they cannot be read, or are none."""
    if not path.is_dir():
        rows = read_table(path)
        if not is_results(rows):
            raise InputError(f"{path} is not the results of `vkssim batch`")
        labels = labels_of(rows)
        return [_of_row(path, row, labels) for row in rows]
    files = sorted(path.glob("*.json"))
    if not files:
        raise InputError(f"{path} has no reports (*.json); `vkssim batch --frames {path}` writes them")
    return [_of_report(file, read_report(file)) for file in files]


def compare_corpora(before: Path, after: Path, *, force: bool) -> CorpusComparison:
    """Return the changes of the pairs that two corpora share. Pairs are matched by the names with which most of them match.

    Raises InputError if none match, or, without `force`, if pairs were not scored alike.
    """
    first, second = read_corpus(before), read_corpus(after)
    tables = [_by_key(first, place) for place in range(3)], [_by_key(second, place) for place in range(3)]
    old, new = max(zip(*tables, strict=True), key=lambda pair: len(pair[0].keys() & pair[1].keys()))
    if not old.keys() & new.keys():
        names = [listed([entry.name for entry in entries], most=_MAX_NAMED) for entries in (first, second)]
        raise InputError(
            f"no pair is in both: {before} has {names[0]}, {after} has {names[1]}; their names or labels must match"
        )

    pairs, lost, warnings, scored = [], [], [], []
    for key, entry in old.items():
        later = new.get(key)
        if entry.report is None:
            warnings.append(f"{before}: {entry.name} was not scored ({entry.error}) and is left out")
        elif later is None or later.report is None:
            lost.append((entry.name, f"not in {after}" if later is None else f"not scored: {later.error}"))
        else:
            reports = entry.report, later.report
            has_frames = bool(reports[0].frames and reports[1].frames)
            pairs.append(PairChange(later.name, (compare_reports if has_frames else compare_pooled)(*reports), has_frames))
            places = f"{before}: {entry.name}", f"{after}: {later.name}"
            scored += [Scored(place, str(key), report.scoring) for place, report in zip(places, reports, strict=True)]
    if not (pairs or lost):
        raise InputError(f"no pair of {before} that is in {after} was scored, so nothing can be compared")
    findings = check_alike(scored, force=force)
    findings.warnings += warnings
    if added := [entry.name for key, entry in new.items() if key not in old]:
        findings.notes.append(f"only {after} has {counted(len(added), 'pair')}: {listed(added, most=_MAX_NAMED)}")
    return CorpusComparison(pairs, lost, findings)


def _of_row(path: Path, row: Row, labels: Sequence[str]) -> Entry:
    reference, distorted = str(row["reference"]), str(row["distorted"])
    own = tuple("" if row[name] is None else f"{name}={row[name]}" for name in labels)
    keys = (reference, distorted), (_file(reference), _file(distorted)), (_file(reference), own if labels else distorted)
    report = report_of_row(path, row)[1] if was_scored(row) else None
    return Entry(distorted, keys, report, str(row["error"] or ""))


def _of_report(file: Path, report: ScoreReport) -> Entry:
    reference, distorted = report.reference, report.distorted
    keys = (reference, distorted), (_file(reference), _file(distorted)), (_file(reference), file.name)
    return Entry(distorted or file.name, keys, report)


def _file(path: str) -> str:
    return re.split(r"[/\\]", path)[-1]


def _by_key(entries: Sequence[Entry], place: int) -> dict[Hashable, Entry]:
    """Return entries by one of their keys; none at all if two have the same."""
    by_key = {entry.keys[place]: entry for entry in entries}
    return by_key if len(by_key) == len(entries) else {}
