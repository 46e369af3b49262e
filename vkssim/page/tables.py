"""Prepare the tiles and the tables of a page: pooled values, limits, l, c and s by scale, and the compared clips."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..report.numbers import shortest, told_apart
from ..report.record import flatten
from ..report.results import ScoreReport, decibel, without_nan
from ..report.thresholds import Threshold

POOLED = {
    "mean": "mean",
    "mean_db": "mean dB",
    "min": "min",
    "p1": "p1",
    "p5": "p5",
    "p10": "p10",
    "p50": "p50",
    "max": "max",
    "harmonic_mean": "harmonic mean",
    "stddev": "std. dev.",
}
"""Pooled values and their headings, in the order of the columns."""

TERMS = {"l": "luminance", "c": "contrast", "s": "structure"}
_IN_FACTS = (
    *("version of vkssim", "width compared", "height compared", "depth compared"),
    *("reference: file", "distorted clip: file", "distorted clip: codec", "distorted clip: video bit rate"),
)
_OF_CLIPS = ("reference: ", "distorted clip: ", "command")
_TERM = re.compile(r"(?P<metric>.+)_(?P<term>[lcs])(?:_scale(?P<scale>\d+))?(?P<plane>_y|_cb|_cr)?")
_NEAR_1 = 0.999  # from here on four decimals say little
_HEAT = (0.995, 0.99, 0.98, 0.95, 0.9, 0.8, 0.7, 0.5)  # for each bound above the mean, its cell is one shade darker


Pooled = Mapping[str, Mapping[str, float]]
"""The pooled values of a report, by score: `ScoreReport.pooled`."""

PooledGroup = tuple[str, list[tuple[int, list[str]]]]
"""A score, and its pooled values as rows (clip, values as text)."""


@dataclass(frozen=True)
class TermTable:
    """The luminance, contrast and structure of one metric."""

    metric: str
    scales: list[str]
    groups: list[tuple[str, list[tuple[int, list[tuple[str, int] | None]]]]]
    """For each term rows (clip, cells); a cell is the mean of a scale and its shade, 0 to 8, None if the clip lacks it."""
    pooled: list[PooledGroup]


@dataclass(frozen=True)
class Limit:
    """A limit as text, the value of the clip, and whether the clip meets the limit."""

    text: str
    value: str
    met: bool

    @classmethod
    def of(cls, threshold: Threshold, limit: float, report: ScoreReport) -> Limit:
        """Return the limit of a page for a threshold on a report."""
        value = threshold.value(report)
        return cls(f"{threshold.name} {threshold.pooling} ≥ {shortest(limit)}", number(value, limit), value >= limit)


FactRow = tuple[str, list[str]]
"""The title of a fact, and its text for each report."""


@dataclass(frozen=True)
class Facts:
    """Facts of clips: `same` for all clips, as (title, text), and the others as a table with rows (clip, texts)."""

    same: tuple[tuple[str, str], ...]
    titles: tuple[str, ...]
    rows: tuple[tuple[int, tuple[str, ...]], ...]


def length_limit(report: ScoreReport) -> Limit:
    """Return the limit of `--strict`: both clips end together and have the same pace."""
    return Limit("clips of equal length and pace (--strict)", report.unequal or "they are", report.unequal is None)


def labels(reports: Sequence[ScoreReport], files: Sequence[str]) -> list[str]:
    """Return a short name for each clip, or for its report, see `short_names`."""
    return short_names([report.distorted or file for report, file in zip(reports, files, strict=True)], "unnamed clip")


def short_names(named: Sequence[str], unnamed: str) -> list[str]:
    """Return a short name for each path: the file, with folders or a number that make it unique."""
    paths = [path.replace(os.sep, "/").split("/") for path in named]
    names = []
    for number, parts in enumerate(paths):
        different, depth = [path for path in paths if path != parts], 1
        while depth < len(parts) and any(path[-depth:] == parts[-depth:] for path in different):
            depth += 1
        same = paths[:number].count(parts)
        name = "/".join(parts[-depth:]) or unnamed
        names.append(f"{name} ({same + 1})" if same else name)
    return names


def split_names(reports: Sequence[ScoreReport]) -> tuple[list[str], list[str]]:
    """Return the metrics of all reports, for each of their planes, and separately their l, c and s."""
    names = list(dict.fromkeys(name for report in reports for name in report.names))
    terms = [name for name in names if _TERM.fullmatch(name) and _parts(name)[0] in names]
    return [name for name in names if name not in terms], terms


def poolings_of(pooled: Sequence[Pooled], names: Collection[str]) -> list[str]:
    """Return the poolings that any report has of these scores, in the order of `POOLED`. Only similarities have dB."""
    present = {pooling for report in pooled for name, values in report.items() if name in names for pooling in values}
    return [pooling for pooling in POOLED if pooling in present]


def pooled_groups(pooled: Sequence[Pooled], names: Sequence[str], poolings: Sequence[str]) -> list[PooledGroup]:
    """Return a group for each of these scores, with a row for each report that has it, and a cell for each pooling."""

    def text(values: Mapping[str, float], pooling: str) -> str:
        if pooling not in values:
            return ""
        return decibel_text(values[pooling], 3) if pooling == "mean_db" else number(values[pooling])

    rows = {name: [(clip, report[name]) for clip, report in enumerate(pooled) if name in report] for name in names}
    return [
        (name, [(clip, [text(values, pooling) for pooling in poolings]) for clip, values in having])
        for name, having in rows.items()
        if having
    ]


def decibel_text(value: float, decimals: int) -> str:
    """Return a number of decibels as text; "null" if it is not a number."""
    return "infinite" if value == math.inf else f"{value:.{decimals}f}" if math.isfinite(value) else "null"


def term_tables(pooled: Sequence[Pooled], terms: Sequence[str], poolings: Sequence[str]) -> list[TermTable]:
    """Return the l, c and s of each metric whose terms were scored: the means by scale, and all pooled values."""
    means = [{_parts(name): report[name]["mean"] for name in terms if name in report} for report in pooled]

    def cell(mean: float | None) -> tuple[str, int] | None:
        return None if mean is None else (number(mean), sum(mean < bound for bound in _HEAT))

    tables = []
    for metric in dict.fromkeys(_parts(name)[0] for name in terms):
        scales = list(dict.fromkeys(scale for of_clip in means for owner, _, scale in of_clip if owner == metric))
        groups = []
        for term, title in TERMS.items():
            rows = [[cell(of_clip.get((metric, term, scale))) for scale in scales] for of_clip in means]
            groups.append((title, [(series, cells) for series, cells in enumerate(rows) if any(cells)]))
        own = [name for name in terms if _parts(name)[0] == metric]
        if scales:
            tables.append(TermTable(metric, scales, groups, pooled_groups(pooled, own, poolings)))
    return tables


def _parts(name: str) -> tuple[str, str, str]:
    """Return the metric to which a term belongs, in the term's plane, the term and its scale."""
    match = _TERM.fullmatch(name)
    assert match is not None
    return match["metric"] + (match["plane"] or ""), match["term"], match["scale"] or ""


def number(value: float, limit: float | None = None) -> str:
    """Return a score with six decimals, more if they tell it from a limit, or "null" if it is not a number."""
    return told_apart(value, limit) if math.isfinite(value) else "null"


def score_text(value: float, limit: float | None = None) -> str:
    """Return a score with four decimals, as a reader compares them; close to 1, or close to a limit, with more."""
    if not math.isfinite(value):
        return "null"
    return told_apart(value, limit, 6 if _NEAR_1 <= abs(value) < 1 else 4)


def rate_text(rate: float | None) -> str:
    """Return a bit rate with three significant digits at least; empty if it is unknown."""
    if rate is None or not math.isfinite(rate):
        return ""
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}"


def codec_and_kbps(report: ScoreReport) -> tuple[str, float | None]:
    """Return the codec of the distorted clip and the bit rate of its video in kbit/s; empty and None if they are unknown."""
    return ("", None) if report.scoring is None else (report.scoring.distorted.codec or "", report.scoring.distorted.kbps)


def facts(reports: Sequence[ScoreReport]) -> tuple[list[FactRow], list[FactRow], list[FactRow]]:
    """Return the facts about the comparison, about the source clips and the commands that score them, and about devices."""
    recorded = _recorded_facts(reports)
    compared = [row for row in recorded if not row[0].startswith(_OF_CLIPS)]
    of_clips = [row for row in recorded if row[0].startswith(_OF_CLIPS)]
    return [*_rows(map(_facts_of, reports)), *compared], of_clips, _rows(map(_device_facts, reports))


def facts_table(rows: Sequence[FactRow]) -> Facts:
    """Return facts, with those that all clips share separated from those in which they differ."""
    same = tuple((title, texts[0]) for title, texts in rows if len(set(texts)) == 1)
    different = [(title, texts) for title, texts in rows if len(set(texts)) > 1]
    columns = zip(*(texts for _, texts in different), strict=True)
    return Facts(same, tuple(title for title, _ in different), tuple(enumerate(columns)))


def _recorded_facts(reports: Sequence[ScoreReport]) -> list[FactRow]:
    """Return how the reports were scored, without the facts that `_facts_of` has and unchanged options."""
    of_reports = [
        {} if report.scoring is None else {title: (text, default) for title, text, default in flatten(report.scoring)}
        for report in reports
    ]
    titles = dict.fromkeys(title for facts in of_reports for title in facts if title not in _IN_FACTS)
    return [
        (title, [facts.get(title, ("",))[0] for facts in of_reports])
        for title in titles
        if not all(facts[title][1] for facts in of_reports if title in facts)
    ]


def _facts_of(report: ScoreReport) -> dict[str, str]:
    (codec, kbps), frames = codec_and_kbps(report), report.frames
    skipped = report.selection.first_reference, report.selection.first_distorted
    numbers = f"{len(frames)}, numbers {frames[0].index} to {frames[-1].index}" if frames else str(report.frame_count or "none")
    return {
        "reference": report.reference,
        "distorted": report.distorted,
        "codec": codec,
        "video bit rate": f"{rate_text(kbps)} kbit/s" if kbps else "",
        "size": f"{report.width}×{report.height}" if report.width else "",
        "depth": f"{report.bits} bit" if report.bits else "",
        "frames scored": numbers,
        "frame rate": f"{report.rate:g} frames/s" if report.rate else "",
        "skipped at the start": f"{skipped[0]} of the reference, {skipped[1]} of the distorted clip" if any(skipped) else "",
        "notes": "; ".join(report.notes),
    }


def _device_facts(report: ScoreReport) -> dict[str, str]:
    """Return the backend and the version. The reports of libvmaf have no backend, and a version of libvmaf."""
    info, version = report.backend, report.version
    tool = f"vkssim {version}" if info.backend else f"written by version {version} of another tool"
    return {"device": info.device, "driver": info.driver, "backend": info.backend, "version": tool if version else ""}


def _rows(facts: Iterable[Mapping[str, str]]) -> list[FactRow]:
    """Return a row for each fact that any of the reports has."""
    of_reports = list(facts)
    rows = ((title, [of_report[title] for of_report in of_reports]) for title in of_reports[0])
    return [(title, texts) for title, texts in rows if any(texts)]


# -- tiles ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tile:
    """A value with its name and a further remark."""

    name: str
    value: str
    more: str = ""
    clip: int | None = None
    """The number of the clip of the value; None for all clips."""
    frame: int | None = None
    """The number of the frame of the value; None for all frames."""
    state: str = ""
    """``"pass"``, ``"fail"`` or empty."""
    decibels: str = ""
    """The same value in dB; empty if it has none."""


def verdict_tile(limits: Sequence[Sequence[Limit]]) -> Tile | None:
    """Return whether all clips meet their limits; None if there are no limits."""
    count = len(limits)
    if not any(limits):
        return None
    failed = [clip for clip, of_clip in enumerate(limits) if not all(limit.met for limit in of_clip)]
    if count == 1:
        missed = [f"{limit.text}: {limit.value}" if limit.value else limit.text for limit in limits[0] if not limit.met]
        met = f"{len(limits[0])} of {len(limits[0])} limits" if len(limits[0]) > 1 else limits[0][0].text
        return Tile("limits", "fail" if failed else "pass", "; ".join(missed) or met, state="fail" if failed else "pass")
    if failed:
        return Tile("limits", f"{len(failed)} of {count} fail", clip=failed[0] if len(failed) == 1 else None, state="fail")
    return Tile("limits", f"all {count} pass", state="pass")


def rate_tile(rates: Sequence[float | None], codecs: Sequence[str], unit: str) -> Tile | None:
    """Return the range of the bit rates of the clips; None if no rate is known."""
    finite = [rate for rate in rates if rate is not None and math.isfinite(rate)]
    if not finite:
        return None
    low, high = rate_text(min(finite)), rate_text(max(finite))
    named = ", ".join(dict.fromkeys(filter(None, codecs)))
    return Tile(f"bit rate, {unit}", low if low == high else f"{low} – {high}", named)


def metric_tiles(reports: Sequence[ScoreReport], pooled: Sequence[Pooled], metric: str) -> list[Tile]:
    """Return the mean, p5 and lowest score of a metric. With several clips, each tile has the clip with the lowest value."""
    tiles = []
    for pooling in ("mean", "p5", "min"):
        values = {clip: of_clip[metric][pooling] for clip, of_clip in enumerate(pooled) if pooling in of_clip.get(metric, ())}
        if not values:
            continue
        clip = min(values, key=lambda clip: (without_nan(values[clip]), clip))
        more = "5 % of the frames score this or less" if pooling == "p5" and len(reports) == 1 else ""
        frame = None
        if pooling == "min" and reports[clip].frames and not np.isnan(scores := reports[clip].column(metric)).all():
            frame = reports[clip].frames[int(np.nanargmin(scores))].index
        title = pooling if len(reports) == 1 else f"lowest {pooling}"
        decibels = ""
        if metric in reports[clip].similarities:
            decibels = f"{decibel_text(float(decibel(np.array(values[clip]))), 2)} dB"
        tiles.append(Tile(title, score_text(values[clip]), more, None if len(reports) == 1 else clip, frame, decibels=decibels))
    return tiles
