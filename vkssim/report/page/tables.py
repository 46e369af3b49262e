"""The tables of a page: what was compared, pooled values, and luminance, contrast and structure scale by scale."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ...results import ScoreReport
from ...scoring_record import leaves

POOLED = {
    "mean": "mean",
    "mean_db": "mean dB",
    "harmonic_mean": "harmonic mean",
    "min": "min",
    "percentile_1": "1%",
    "percentile_5": "5%",
    "percentile_10": "10%",
    "percentile_50": "50%",
    "max": "max",
    "stddev": "std. dev.",
}
"""Pooled values and their headings, in the order of the columns."""

TERMS = {"l": "luminance", "c": "contrast", "s": "structure"}
_IN_FACTS = (
    *("version of vkssim", "width compared", "height compared", "depth compared"),
    *("reference: file", "distorted clip: file"),
)
_TERM = re.compile(r"(?P<metric>.+)_(?P<term>[lcs])(?:_scale(?P<scale>\d+))?")
_HEAT = (0.995, 0.99, 0.98, 0.95, 0.9, 0.8, 0.7, 0.5)  # each bound that a mean falls below makes its cell a shade darker


@dataclass(frozen=True)
class PooledGroup:
    """The pooled values of one metric: (rendition, values as text) rows."""

    metric: str
    rows: tuple[tuple[int, tuple[str, ...]], ...]


@dataclass(frozen=True)
class Heat:
    """A mean as text and its shade, 0 (nothing lost) to 8."""

    text: str
    shade: int


@dataclass(frozen=True)
class TermTable:
    """Means of l, c and s of one metric: of each term (rendition, cells) rows, in which a column is a scale."""

    metric: str
    scales: tuple[str, ...]
    groups: tuple[tuple[str, tuple[tuple[int, tuple[Heat | None, ...]], ...]], ...]


def labels(reports: Sequence[ScoreReport], files: Sequence[str]) -> list[str]:
    """A short name for each rendition: its file, with as many folders as tell it from the others, else a number.

    A report that does not name its distorted clip goes by its own file.
    """
    named = [report.distorted or file for report, file in zip(reports, files, strict=True)]
    paths = [path.replace(os.sep, "/").split("/") for path in named]
    found = []
    for number, parts in enumerate(paths):
        others = [path for path in paths if path != parts]
        depth = next(depth for depth in range(1, len(parts) + 1) if depth == len(parts) or _differs(parts, others, depth))
        same = paths[:number].count(parts)
        name = "/".join(parts[-depth:]) or "unnamed clip"
        found.append(f"{name} ({same + 1})" if same else name)
    return found


def _differs(parts: list[str], others: list[list[str]], depth: int) -> bool:
    return all(other[-depth:] != parts[-depth:] for other in others)


def split_names(reports: Sequence[ScoreReport]) -> tuple[list[str], list[str]]:
    """The metrics of all reports, and apart from them their l, c and s."""
    names = list(dict.fromkeys(name for report in reports for name in report.names))
    terms = [name for name in names if (match := _TERM.fullmatch(name)) and match["metric"] in names]
    return [name for name in names if name not in terms], terms


def pooled_groups(reports: Sequence[ScoreReport], names: Sequence[str]) -> list[PooledGroup]:
    """A group for each of these metrics, a row in it for each report that has it."""
    pooled = [report.pooled() for report in reports]
    return [
        PooledGroup(
            name,
            tuple(
                (series, tuple(number(values[name][key]) if key in values[name] else "" for key in POOLED))
                for series, values in enumerate(pooled)
                if name in values
            ),
        )
        for name in names
        if any(name in values for values in pooled)
    ]


def term_tables(reports: Sequence[ScoreReport], terms: Sequence[str]) -> list[TermTable]:
    """The l, c and s of each metric that they were scored of."""
    means = [
        {_parts(name): float(report.column(name).mean()) for name in terms if name in report.names and report.frames}
        for report in reports
    ]
    tables = []
    for metric in dict.fromkeys(_parts(name)[0] for name in terms):
        scales = tuple(dict.fromkeys(scale for found in means for owner, _, scale in found if owner == metric))
        groups = tuple(
            (
                title,
                tuple(
                    (series, tuple(_heat(found.get((metric, term, scale))) for scale in scales))
                    for series, found in enumerate(means)
                    if any((metric, term, scale) in found for scale in scales)
                ),
            )
            for term, title in TERMS.items()
        )
        if scales:
            tables.append(TermTable(metric, scales, groups))
    return tables


def _parts(name: str) -> tuple[str, str, str]:
    match = _TERM.fullmatch(name)
    assert match is not None
    return match["metric"], match["term"], match["scale"] or ""


def _heat(mean: float | None) -> Heat | None:
    return None if mean is None else Heat(number(mean), sum(mean < bound for bound in _HEAT))


def number(value: float) -> str:
    """Six decimals, or null where there is no number."""
    return f"{value:.6f}" if math.isfinite(value) else "null"


def time_code(seconds: float | None) -> str:
    """Hours, minutes, seconds and milliseconds; empty where the time is not known."""
    if seconds is None or not math.isfinite(seconds):
        return ""
    thousandths = round(abs(seconds) * 1000)
    minutes, rest = divmod(thousandths, 60_000)
    text = f"{minutes // 60:02d}:{minutes % 60:02d}:{rest // 1000:02d}.{rest % 1000:03d}"
    return "-" + text if seconds < 0 and thousandths else text


def facts(reports: Sequence[ScoreReport]) -> list[tuple[str, list[str]]]:
    """(what, one text a report) of the table of what was compared; rows that no report fills are left out."""
    rows = [
        ("reference", [report.reference for report in reports]),
        ("distorted", [report.distorted for report in reports]),
        ("size", [f"{report.width}×{report.height}" if report.width else "" for report in reports]),
        ("depth", [f"{report.bits} bit" if report.bits else "" for report in reports]),
        ("frames scored", [_frames(report) for report in reports]),
        ("frame rate", [f"{report.rate:.3f} frames/s" if report.rate else "" for report in reports]),
        ("skipped at the start", [_skipped(report) for report in reports]),
        ("notes", ["; ".join(report.notes) for report in reports]),
        ("device", [report.backend.device for report in reports]),
        ("driver", [report.backend.driver for report in reports]),
        ("backend", [report.backend.backend for report in reports]),
        ("version", [_version(report) for report in reports]),
    ]
    return [(title, texts) for title, texts in rows if any(texts)]


def scoring(reports: Sequence[ScoreReport]) -> list[tuple[str, list[str]]]:
    """Return how the reports were scored, as `facts`: all but what is in its rows, and what all of them left alone."""
    said = [
        {} if report.scoring is None else {title: (text, default) for title, text, default in leaves(report.scoring)}
        for report in reports
    ]
    titles = dict.fromkeys(title for facts in said for title in facts if title not in _IN_FACTS)
    return [
        (title, [facts.get(title, ("",))[0] for facts in said])
        for title in titles
        if not all(facts[title][1] for facts in said if title in facts)
    ]


def _frames(report: ScoreReport) -> str:
    if not report.frames:
        return "none"
    return f"{len(report.frames)}, numbers {report.frames[0].index} to {report.frames[-1].index}"


def _skipped(report: ScoreReport) -> str:
    skipped = report.selection.first_reference, report.selection.first_distorted
    return f"{skipped[0]} of the reference, {skipped[1]} of the distorted clip" if any(skipped) else ""


def _version(report: ScoreReport) -> str:
    """Libvmaf writes no backend; its version is not one of vkssim."""
    return f"vkssim {report.version}" if report.backend.backend else f"written by version {report.version} of another tool"
