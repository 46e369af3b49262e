"""The data for the scripts of a page: frame numbers, times and scores by column, ladders, and the styles of lines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from ..report.numbers import finite, time_code
from ..report.results import ScoreReport
from ..types import Doubles
from ..utils.sanitize import visible
from .charts import MARKERS, Axis, LineStyle
from .ladders import Ladders
from .moments import MomentGroup, frame_time
from .tables import Pooled

_DECIMALS = 6
_DECIMALS_NEAR_1 = 8  # near 1, one decibel is a small difference of the score
_NEAR_1 = 0.99


def embedded(
    clips: Sequence[tuple[ScoreReport, Pooled, str, LineStyle]],
    names: Sequence[str],
    ladders: Ladders,
    ladder_styles: Sequence[LineStyle],
    moments: Sequence[MomentGroup],
) -> str:
    """Return the data of clips, each with its pooled values, its label and its style, for the scripts."""
    data = {
        "clips": [_columns(*clip, names) for clip in clips],
        "metrics": [
            {"name": visible(name), "decibels": any(name in report.similarities for report, *_ in clips)} for name in names
        ],
        "markers": MARKERS,
        "ladders": [
            {
                "name": visible(ladder.name),
                "reference": ladders.references.index(ladder.reference),
                "style": asdict(style),
                "rungs": [{"clip": rung.clip, "rate": rung.rate} for rung in ladder.rungs],
            }
            for ladder, style in zip(ladders.ladders, ladder_styles, strict=True)
        ],
        "references": [visible(reference) for reference in ladders.references],
        "unit": visible(ladders.unit),
        "moments": [
            [{"frame": moment.index, "time": moment.time, "clip": moment.clip} for moment in group.moments] for group in moments
        ],
    }
    return as_text(data)


def as_text(data: Any) -> str:
    """Return JSON in which no HTML parser finds the end of a script or a comment."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _columns(report: ScoreReport, pooled: Pooled, label: str, style: LineStyle, names: Sequence[str]) -> dict[str, Any]:
    """Return the data of a clip. Its scores and means have an entry for each name, None for a score that it lacks."""
    scored = set(report.names) if report.frames else set()
    is_timed = bool(report.rate) or any(frame.time is not None for frame in report.frames)
    return {
        "label": label,
        "style": asdict(style),
        "frames": [frame.index for frame in report.frames],
        "times": rounded([frame_time(report, frame) for frame in report.frames]) if is_timed else None,
        "scores": [rounded(report.column(name)) if name in scored else None for name in names],
        "means": finite([pooled.get(name, {}).get("mean") for name in names]),
    }


def tick_times(report: ScoreReport, axis: Axis) -> tuple[tuple[float, str], ...]:
    """Return (per cent, time code) of the ticks of a frame axis that are frames of the report."""
    times = {frame.index: frame_time(report, frame) for frame in report.frames if frame.index in axis.ticks}
    codes = [(place, time_code(times.get(int(tick)))) for tick, (place, _) in zip(axis.ticks, axis.labels(), strict=True)]
    return tuple((place, code) for place, code in codes if code)


def rounded(values: Doubles | list[float | None]) -> list[float | None]:
    """Return numbers as JSON has them. NaN and infinite values become None."""
    column = np.array(values, np.float64)
    near = np.round(column, _DECIMALS_NEAR_1)
    rounded_values: list[float | None] = finite(
        np.where((column >= _NEAR_1) & (column < 1), near, np.round(column, _DECIMALS)).tolist()
    )
    return rounded_values
