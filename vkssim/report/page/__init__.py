"""A report as one HTML page that needs nothing beside it: tables, charts and the worst frames.

Tables and charts are made here and are there without JavaScript; page.js adds the cursor, the choices and the comparison.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ... import __version__
from ...alike import Scored, find_differences
from ...errors import OptionError
from ...features.base import Doubles
from ...harmless import visible
from ...results import ScoreReport
from ...scorer import FrameScores
from . import tables
from .charts import HEIGHT, WIDTH, Axis, Chart, distribution_chart, score_chart
from .pictures import Gallery

_FOLDER = Path(__file__).parent
_DECIMALS = 6
_PACKAGES = {"jinja2": "jinja2", "PIL": "pillow", "matplotlib": "matplotlib"}  # the last colours SSIM maps


@dataclass(frozen=True)
class MetricCharts:
    """The charts of one metric; None where no frame has a score."""

    name: str
    scores: Chart | None
    distribution: Chart | None
    times: tuple[tuple[float, str], ...]


def check_installed() -> None:
    """Raise OptionError where a package that pages need is missing; asked before anything is scored."""
    from importlib.util import find_spec

    missing = [package for module, package in _PACKAGES.items() if find_spec(module) is None]
    if missing:
        raise OptionError(f"an HTML page needs {' and '.join(missing)}, not installed here: pip install 'vkssim[report]'")


def render_page(reports: Sequence[ScoreReport], galleries: Sequence[Gallery], files: Sequence[str] | None = None) -> str:
    """The page of one or several reports, a gallery of frames beside each. All text from outside is escaped in it.

    `files` are those that the reports were read from: reports of libvmaf's tools have no other name.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        finalize=lambda value: visible(value) if type(value) is str else value,  # Markup is escaped already
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style, script = ((_FOLDER / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    names = [visible(name) for name in tables.labels(reports, files or [""] * len(reports))]
    metrics, terms = tables.split_names(reports)
    return environment.get_template("page.html").render(
        version=__version__,
        policy=_policy(style, script),
        style=Markup(style),
        script=Markup(script),
        data=Markup(_embedded([_columns(report, name) for report, name in zip(reports, names, strict=True)])),
        title=_title(reports, names),
        labels=names,
        facts=tables.facts(reports),
        scoring=tables.scoring(reports),
        warnings=[*_unlike(reports, names), *_warnings(reports, names)],
        headings=tables.POOLED.values(),
        pooled=tables.pooled_groups(reports, metrics),
        charts=[_charts(reports, name) for name in (*metrics, *terms)],
        first_term=len(metrics),
        term_tables=tables.term_tables(reports, terms),
        pooled_terms=tables.pooled_groups(reports, terms),
        scale=next((gallery.scale for gallery in galleries if gallery.scale), ""),
        galleries=[_views(report, gallery, metrics) for report, gallery in zip(reports, galleries, strict=True)],
        plot=(WIDTH, HEIGHT),
    )


def _warnings(reports: Sequence[ScoreReport], names: Sequence[str]) -> list[tuple[str, list[str]]]:
    return [(name, report.warnings) for name, report in zip(names, reports, strict=True) if report.warnings]


def _unlike(reports: Sequence[ScoreReport], names: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Return what is to be said of all clips together: that they stand side by side says that they can be compared."""
    found = find_differences(scored(reports, names))
    said = [*found.refused, *found.warnings, *found.notes]
    return [("all clips", said)] if said else []


def scored(reports: Sequence[ScoreReport], names: Sequence[str]) -> list[Scored]:
    """Return how reports were scored, by these names."""
    return [Scored(name, report.reference, report.scoring) for name, report in zip(names, reports, strict=True)]


def _policy(style: str, script: str) -> str:
    """The Content-Security-Policy: nothing is fetched, and only this style and this script count."""
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script)]
    return (
        f"default-src 'none'; style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'; img-src data:;"
        " base-uri 'none'; form-action 'none'"
    )


def _embedded(data: Any) -> str:
    """JSON that no HTML parser finds an end of a script or a comment in."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _columns(report: ScoreReport, label: str) -> dict[str, Any]:
    """What the cursor of the charts reads: frame numbers, times and scores, column by column."""
    return {
        "label": label,
        "frames": [frame.index for frame in report.frames],
        "times": _rounded([_time(report, frame) for frame in report.frames]) if _timed(report) else None,
        "scores": {name: _rounded(report.column(name)) for name in report.names},
    }


def _timed(report: ScoreReport) -> bool:
    return bool(report.rate) or any(frame.time is not None for frame in report.frames)


def _time(report: ScoreReport, frame: FrameScores) -> float | None:
    """When a frame is shown: as its clip says, else by the frame rate."""
    if frame.time is not None:
        return frame.time
    return frame.index / report.rate if report.rate else None


def _rounded(values: Doubles | list[float | None]) -> list[float | None]:
    """As JSON has them: what is no number, or infinite, is None."""
    rounded = np.round(np.array(values, np.float64), _DECIMALS).tolist()
    return [value if math.isfinite(value) else None for value in rounded]


def _title(reports: Sequence[ScoreReport], names: Sequence[str]) -> str:
    references = {Path(report.reference).name for report in reports}
    if len(references) > 1:
        return f"{len(reports)} comparisons"
    what = names[0] if len(names) == 1 else f"{len(names)} renditions"
    reference = references.pop()
    return f"{what} against {reference}" if reference else what


def _charts(reports: Sequence[ScoreReport], name: str) -> MetricCharts:
    series: list[tuple[int, Doubles, Doubles]] = []
    for number, report in enumerate(reports):
        if name in report.names and report.frames:
            series.append((number, np.array([frame.index for frame in report.frames], np.float64), report.column(name)))
    chart = score_chart(series) if series else None
    distribution = distribution_chart([(number, scores) for number, _, scores in series])
    return MetricCharts(name, chart, distribution, _tick_times(reports[series[0][0]], chart.across) if chart else ())


def _tick_times(report: ScoreReport, axis: Axis) -> tuple[tuple[float, str], ...]:
    """(per cent, time code) of those ticks of an axis of frames that are frames of the report."""
    ticks = set(axis.ticks)
    times = {frame.index: _time(report, frame) for frame in report.frames if frame.index in ticks}
    codes = [(place, tables.time_code(times.get(int(text)))) for place, text in axis.labels()]
    return tuple((place, code) for place, code in codes if code)


def _views(report: ScoreReport, gallery: Gallery, metrics: Sequence[str]) -> dict[str, Any]:
    frames = {frame.index: frame for frame in report.frames}
    views = []
    for view in gallery.frames:
        frame = frames[view.index]
        scores = [(name, tables.number(frame.metrics[name])) for name in metrics if name in frame.metrics]
        views.append({"pictures": view, "time": tables.time_code(_time(report, frame)), "scores": scores})
    return {"views": views, "reason": gallery.reason}
