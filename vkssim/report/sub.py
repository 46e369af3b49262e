"""MicroDVD subtitles that show the scores of each frame over the clip, as libvmaf writes them."""

from __future__ import annotations

from ..results import ScoreReport
from .numbers import NumberFormat


def render(report: ScoreReport, numbers: NumberFormat) -> str:
    """The report as subtitles."""
    lines = []
    for frame in report.frames:
        scores = "|".join(f"{name}: {numbers.text(value, 'null')}" for name, value in frame.metrics.items())
        lines.append(f"{{{frame.index}}}{{{frame.index + 1}}}frame: {frame.index}|{scores}\n")
    return "".join(lines)
