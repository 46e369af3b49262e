"""Render a report as MicroDVD subtitles, which show the scores of each frame over the clip, as libvmaf writes them."""

from __future__ import annotations

from ..utils.sanitize import visible
from .numbers import NumberFormat
from .results import ScoreReport

_COMMANDS = str.maketrans("{}|", "()/")


def render(report: ScoreReport, numbers: NumberFormat) -> str:
    """Return the report as subtitles."""
    lines = []
    for frame in report.frames:
        scores = "|".join(f"{_shown(name)}: {numbers.text(value, 'null')}" for name, value in frame.metrics.items())
        lines.append(f"{{{frame.index}}}{{{frame.index + 1}}}frame: {frame.index}|{scores}\n")
    return "".join(lines)


def _shown(name: str) -> str:
    """Return a name without the characters that end a line of a subtitle or begin a command."""
    return visible(name).translate(_COMMANDS)
