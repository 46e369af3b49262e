"""Render a report as HTML for the output of a notebook's cell: a table of pooled scores, each with a small chart."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import numpy as np

from ..types import Doubles
from ..utils.sanitize import visible
from .results import ScoreReport

_POOLINGS = ("mean", "min", "p5", "p50", "max")
_WIDTH, _HEIGHT = 240, 32


def render(report: ScoreReport) -> str:
    """Return the report as HTML that needs no style or script of the notebook."""
    heads = "".join(f"<th>{text}</th>" for text in ("score", *_POOLINGS, "over the frames"))
    rows = "".join(_row(report, name, pooled) for name, pooled in report.pooled().items())
    warnings = "".join(f"<li>{escape(visible(text))}</li>" for text in report.warnings)
    title = escape(visible(report.title))
    return f"<p>{title}</p><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table><ul>{warnings}</ul>"


def _row(report: ScoreReport, name: str, pooled: Mapping[str, float]) -> str:
    numbers = (_number(pooled.get(pooling, np.nan)) for pooling in _POOLINGS)
    chart = _chart(report.column(name)) if report.frames else ""
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in (escape(visible(name)), *numbers, chart))}</tr>"


def _number(value: float) -> str:
    return f"{value:.6f}" if np.isfinite(value) else str(value)


def _chart(scores: Doubles) -> str:
    """Return a line of the scores from their lowest to their highest, with gaps in place of those that are not finite."""
    finite = np.isfinite(scores)
    if not finite.any():
        return ""
    lowest, highest = scores[finite].min(), scores[finite].max()
    heights = (scores - lowest) / max(highest - lowest, 1e-12)
    points = np.column_stack([np.linspace(0, _WIDTH, len(scores)), (1 - heights) * (_HEIGHT - 2) + 1])
    runs = np.split(np.arange(len(scores)), np.nonzero(np.diff(finite))[0] + 1)
    lines = "".join(
        f'<polyline fill="none" stroke="currentColor" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points[run])}"/>'
        for run in runs
        if finite[run[0]]
    )
    return f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-label="scores of the frames">{lines}</svg>'
