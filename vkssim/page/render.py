"""Render reports as one self-contained HTML page: its tables and charts work without JavaScript."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..metrics.comparability import find_differences, scored_reports
from ..report.numbers import finite
from ..report.results import ScoreReport, decibel
from ..types import Doubles
from ..utils.sanitize import visible
from ..utils.wording import counted
from . import WORST, tables
from .charts import MARKERS, Chart, LineStyle, Scale, distribution_chart, page_styles, rate_chart, score_chart
from .ladders import UNNAMED, Ladders
from .moments import MomentGroup, frame_time, listed_moments, moment_group, tick_times
from .pictures import Gallery
from .template import render_template

_DECIMALS, _DECIMALS_NEAR_1 = 6, 8
_NEAR_1 = 0.99


@dataclass(frozen=True)
class MetricCharts:
    """The charts of one metric; None if no frame has a score. `moments` has (per cent across, per cent down, rank)."""

    name: str
    """Of the metric, and of the reference if each has charts of its own."""
    scores: Chart | None
    distribution: Chart | None
    times: tuple[tuple[float, str], ...]
    moments: tuple[tuple[float, float, int], ...]


@dataclass(frozen=True)
class PageDetails:
    """The facts of a page besides its reports and pictures. Sequences have an entry for each report, or are empty."""

    files: Sequence[str] = ()
    """The files of the reports: those of libvmaf's tools have no other name."""
    limits: Sequence[Sequence[tables.Limit]] = ()
    ladders: Ladders = Ladders()  # noqa: RUF009 - frozen
    rates: Sequence[float | None] = ()
    """In the unit of `ladders`; without them those in the reports are used, in kbit/s."""
    manifest: Sequence[Mapping[str, str]] = ()
    """The labels of each clip in its batch."""
    failed: Sequence[tuple[str, str]] = ()
    """The pairs that could not be scored: (distorted clip, error)."""


def render_page(reports: Sequence[ScoreReport], gallery: Gallery, details: PageDetails = PageDetails()) -> str:
    """Return the page of reports, one for each distorted clip, with the pictures of `pictures.worst_frames`."""
    labels = [visible(name) for name in tables.labels(reports, details.files or [""] * len(reports))]
    metrics, terms = tables.split_names(reports)
    names, ladders, pooled = (*metrics, *terms), details.ladders, [report.pooled() for report in reports]
    poolings, term_poolings = (tables.poolings_of(pooled, of_page) for of_page in (metrics, terms))
    moments = [moment_group(reports, group.clips, [view.index for view in group.frames]) for group in gallery.groups]
    moments = moments or listed_moments(reports, WORST)
    metrics_of = [{frame.index: frame.metrics for frame in report.frames} for report in reports]
    styles, ladder_styles = page_styles(
        len(reports), [(ladders.names.index(ladder.name), [rung.clip for rung in ladder.rungs]) for ladder in ladders.ladders]
    )
    references = list(dict.fromkeys(report.reference for report in reports))
    titles = dict(zip(references, map(visible, tables.short_names(references, "unnamed reference")), strict=True))
    headlines = [ladders.headlines(name) for name in metrics]
    similarities = {name for report in reports for name in report.similarities}
    codecs, measured = zip(*map(tables.codec_and_kbps, reports), strict=True)
    rates, limits = details.rates or measured, details.limits or [()] * len(reports)
    common = tables.verdict_tile(limits), tables.rate_tile(rates, codecs, ladders.unit)
    verdict = "" if common[0] is None else f"limits: {common[0].value}"
    pairs = _title(reports, labels, len(details.failed))
    apart = references if ladders.ladders else []

    return render_template(
        "page.html",
        data=_script_values(
            list(zip(reports, pooled, labels, styles, strict=True)), names, ladders, ladder_styles, moments, titles
        ),
        title=next((found[0].text for found in headlines if found), pairs),
        headlines=headlines if any(headlines) else [],
        titles=titles,
        unnamed=UNNAMED,
        reports=reports,
        labels=labels,
        ladders=ladders,
        names=names,
        first_term=len(metrics),
        similarities=similarities,
        rate_charts=[
            _rate_charts(pooled, ladders, name, _scale(reports, name), decibels=name in similarities) for name in metrics
        ],
        charts=[
            _charts(reports, name, moments, reference, f"{name}, {titles[reference]}" if len(titles) > 1 else name)
            for name in names
            for reference in apart
        ]
        or [_charts(reports, name, moments, None, name) for name in names]
        if any(report.frames for report in reports)
        else [],
        gallery=gallery,
        groups=gallery.groups,
        moments=moments,
        scores_of=lambda clip, index: [
            (name, tables.score_text(metrics_of[clip][index][name])) for name in metrics if name in metrics_of[clip][index]
        ],
        seen_at={},
        line_style=styles.__getitem__,
        ladder_style=ladder_styles.__getitem__,
        metric_tiles=[tables.metric_tiles(reports, pooled, name) for name in names],
        **_fact_values(reports, labels, details, [pairs, verdict] if any(headlines) else []),
        common_tiles=[tile for tile in common if tile is not None],
        limits=limits if any(limits) else [],
        passed=[all(limit.met for limit in of_clip) for of_clip in limits],
        rates=[tables.rate_text(rate) for rate in rates] if any(rates) else [],
        headings=[tables.POOLED[pooling] for pooling in poolings],
        pooled=tables.pooled_groups(pooled, metrics, poolings),
        term_headings=[tables.POOLED[pooling] for pooling in term_poolings],
        term_tables=tables.term_tables(pooled, terms, term_poolings),
    )


def _script_values(
    clips: Sequence[tuple[ScoreReport, tables.Pooled, str, LineStyle]],
    names: Sequence[str],
    ladders: Ladders,
    ladder_styles: Sequence[LineStyle],
    moments: Sequence[MomentGroup],
    titles: Mapping[str, str],
) -> dict[str, Any]:
    """Return the data for the scripts: scores by column, ladders, and moments. References are numbered as in `titles`."""
    references = list(titles)
    return {
        "clips": [{**_columns(*clip, names), "reference": references.index(clip[0].reference)} for clip in clips],
        "metrics": [
            {
                "name": visible(name),
                "decibels": any(name in report.similarities for report, *_ in clips),
                "scale": _scale([report for report, *_ in clips], name),
            }
            for name in names
        ],
        "markers": MARKERS,
        "ladders": [
            {
                "name": visible(ladder.name),
                "reference": references.index(ladder.reference),
                "style": asdict(style),
                "rungs": [asdict(rung) for rung in ladder.rungs],
            }
            for ladder, style in zip(ladders.ladders, ladder_styles, strict=True)
        ],
        "references": list(titles.values()),
        "unit": visible(ladders.unit),
        "moments": [
            [{"frame": moment.index, "time": moment.time, "clip": moment.clip} for moment in group.moments] for group in moments
        ],
    }


def _columns(report: ScoreReport, pooled: tables.Pooled, label: str, style: LineStyle, names: Sequence[str]) -> dict[str, Any]:
    """Return the data of a clip. Its scores and means have an entry for each name, None for a score that it lacks."""
    scored = set(report.names) if report.frames else set()
    is_timed = bool(report.rate) or any(frame.time is not None for frame in report.frames)
    return {
        "label": label,
        "style": asdict(style),
        "frames": [frame.index for frame in report.frames],
        "times": _rounded([frame_time(report, frame) for frame in report.frames]) if is_timed else None,
        "scores": [_rounded(report.column(name)) if name in scored else None for name in names],
        "means": finite([pooled.get(name, {}).get("mean") for name in names]),
    }


def _rounded(values: Doubles | list[float | None]) -> Any:
    """Return numbers for JSON: with more decimals near 1, for one decibel is little there, and None for NaN and infinity."""
    column = np.array(values, np.float64)
    decimals = np.where((column >= _NEAR_1) & (column < 1), np.round(column, _DECIMALS_NEAR_1), np.round(column, _DECIMALS))
    return finite(decimals.tolist())


def _fact_values(
    reports: Sequence[ScoreReport], labels: Sequence[str], details: PageDetails, first: Sequence[str]
) -> dict[str, Any]:
    """Return how the clips were scored, in a line too, which begins with `first`, the warnings, and the labels of the clips."""
    rows, of_clips, of_devices = tables.facts(reports)
    compared = tables.facts_table([row for row in rows if len(reports) == 1 or row[1] != labels])
    return {
        "lead": " · ".join(filter(None, [*first, _lead(compared)])),
        "compared": compared,
        "clip_facts": tables.facts_table(of_clips),
        "device_facts": tables.facts_table(of_devices),
        "warnings": _warnings(reports, labels, details.failed),
        "manifest": details.manifest or [{}] * len(reports),
        "columns": list(dict.fromkeys(name for of_clip in details.manifest for name in of_clip)),
    }


def _lead(compared: tables.Facts) -> str:
    """Return a line with the facts that all clips share."""
    shared = dict(compared.same)
    texts = [shared.get(title, "") for title in ("size", "depth", "frame rate", "notes")]
    if "planes" in shared:
        texts.insert(3, f"planes {shared['planes']}")
    frames = shared.get("frames scored", "").partition(",")[0]
    return " · ".join(filter(None, [*texts[:2], f"{frames} frames" if frames.isdigit() else "", *texts[2:]]))


@dataclass(frozen=True)
class PageWarning:
    """A warning, once for all clips that have it. `who` is the clip, or the number of clips, whose `names` follow."""

    text: str
    who: str
    names: tuple[str, ...] = ()


def _warnings(reports: Sequence[ScoreReport], labels: Sequence[str], failed: Sequence[tuple[str, str]]) -> list[PageWarning]:
    """Return the warnings about all clips, which look comparable on one page, the pairs that failed, and those of each clip."""
    differences = find_differences(scored_reports(reports, labels))
    of_clips = [
        (label, report.distorted, text) for label, report in zip(labels, reports, strict=True) for text in report.warnings
    ]
    return [
        *(PageWarning(text, "all clips") for text in (*differences.refused, *differences.warnings, *differences.notes)),
        *_once([(name, name, f"not scored: {error}") for name, error in failed], "pair"),
        *_once(of_clips, "clip"),
    ]


def _once(warnings: Sequence[tuple[str, str, str]], noun: str) -> Iterator[PageWarning]:
    """Yield warnings (name, path, text), each text once. The path of a clip does not tell two texts apart."""
    by_text: dict[str, dict[str, str]] = {}
    for name, path, text in warnings:
        by_text.setdefault(text.replace(path, "…") if path else text, {})[name] = text
    for common, texts in by_text.items():
        if len(texts) > 1:
            yield PageWarning(common, counted(len(texts), noun), tuple(texts))
        else:
            ((name, text),) = texts.items()
            yield PageWarning(text, name)


def _title(reports: Sequence[ScoreReport], names: Sequence[str], failed: int) -> str:
    references = {Path(report.reference).name for report in reports}
    if failed:
        what = counted(len(reports) + failed, "pair")
    else:
        what = names[0] if len(names) == 1 else f"{len(names)} {'clips' if len(references) == 1 else 'comparisons'}"
    against = f" against {next(iter(references))}" if len(references) == 1 and all(references) else ""
    return f"{what}{against}, {failed} failed" if failed else what + against


def _charts(
    reports: Sequence[ScoreReport], name: str, moments: Sequence[MomentGroup], reference: str | None, title: str
) -> MetricCharts:
    """Return the charts of a score of all clips, or of those of one reference."""
    series = [
        (number, np.array([frame.index for frame in report.frames], np.float64), report.column(name))
        for number, report in enumerate(reports)
        if name in report.names and report.frames and reference in (None, report.reference)
    ]
    moments = [group for group in moments if reference in (None, reports[group.clips[0]].reference)]
    scale = _scale(reports, name)
    chart = score_chart(series, scale)
    if chart is None:
        return MetricCharts(title, None, None, (), ())
    distribution = distribution_chart([(number, scores) for number, _, scores in series], scale)
    marked = []
    shared = moments[0].moments if len(moments) == 1 else ()  # each group has moments of its own
    for rank, moment in enumerate(shared, 1):
        score = next(frame.metrics.get(name, math.nan) for frame in reports[moment.clip].frames if frame.index == moment.index)
        if math.isfinite(score):
            across, down = chart.across.share(moment.index), 1 - chart.up.share(score)
            marked.append((round(100 * across, 2), round(100 * down, 2), rank))
    return MetricCharts(title, chart, distribution, tick_times(reports[series[0][0]], chart.across), tuple(marked))


def _scale(reports: Sequence[ScoreReport], name: str) -> Scale | None:
    """Return the scale of a score if charts show all of it: people know the scores of VMAF by their place between 0 and 100."""
    records = [report.scoring for report in reports if report.scoring is not None]
    metrics = {feature.options.get("name", feature.name): feature.name for record in records for feature in record.features}
    return (0.0, 100.0) if metrics.get(name, name) == "vmaf" else None


def _rate_charts(
    pooled: Sequence[tables.Pooled], ladders: Ladders, name: str, scale: Scale | None, *, decibels: bool
) -> list[tuple[str, Chart]]:
    """Return the charts of a score's means over bit rates, one for each reference with ladders."""
    charts = []
    for reference in ladders.references:
        series = []
        for number, ladder in ladders.of_reference(reference):
            means = [(rung, pooled[rung.clip][name]["mean"]) for rung in ladder.rungs if name in pooled[rung.clip]]
            scores = decibel(np.array([mean for _, mean in means])).tolist() if decibels else [mean for _, mean in means]
            series.append((number, [(rung.rate, score, rung.clip) for (rung, _), score in zip(means, scores, strict=True)]))
        chart = rate_chart(series, scale)
        if chart is not None:
            charts.append((reference, chart))
    return charts
