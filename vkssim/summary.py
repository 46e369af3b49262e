"""The tables that the command line shows."""

from __future__ import annotations

import math
from typing import TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from .features import FEATURES
from .harmless import visible
from .results import ScoreReport
from .worst import time_code, worst_frames

_COLUMNS = {
    112: ("mean", "mean_db", "harmonic_mean", "min", "percentile_5", "percentile_50", "max", "stddev"),
    101: ("mean", "mean_db", "harmonic_mean", "min", "percentile_5", "percentile_50", "max"),
    0: ("mean", "mean_db", "min", "percentile_5", "max"),
}
"""What is shown on so many columns of text: as many as the longest name and the values need."""
_HEADS = {"mean_db": "mean dB", "harmonic_mean": "harmonic", "percentile_5": "p5", "percentile_50": "p50"}


def print_summary(report: ScoreReport, file: TextIO) -> None:
    """Pooled scores, what was compared and how fast."""
    screen = console(file)
    columns = next(columns for width, columns in _COLUMNS.items() if screen.width >= width)
    table = Table(title=Text(visible(f"{report.distorted} against {report.reference}")), title_justify="left")
    table.add_column("score", no_wrap=True)
    for column in columns:
        table.add_column(_HEADS.get(column, column), justify="right")
    for name, pooled in report.pooled().items():
        table.add_row(name, *(_number(pooled[column], column) if column in pooled else "" for column in columns))
    screen.print(table)
    screen.print(
        f"{len(report.frames)} frames of {report.width}x{report.height}, {report.bits} bit, {report.fps:.1f} frames/s on"
        f" {visible(report.backend.device)} ({visible(report.backend.driver)}), {report.backend.backend}",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )


def print_worst(report: ScoreReport, count: int, file: TextIO) -> None:
    """The worst frames by the first metric, with the scores of all metrics, and when they are shown where that is known."""
    if not (count and report.frames):
        return
    names = [name for name in report.names if name in FEATURES]
    frames = worst_frames(report, names[0], count)
    table = Table()
    table.add_column("frame", justify="right")
    timed = any(frame.time is not None for frame in frames)
    if timed:
        table.add_column("time", justify="right")
    for name in names:
        table.add_column(name, justify="right")
    for frame in frames:
        when: list[str] = [] if not timed else ["" if frame.time is None else time_code(frame.time)]
        table.add_row(str(frame.index), *when, *(_number(frame.metrics[name]) for name in names))
    screen = console(file)
    screen.print(f"worst frames by {names[0]}", style="italic", highlight=False)
    screen.print(table)


def print_profile(report: ScoreReport, file: TextIO) -> None:
    """Milliseconds a frame of each stage. Stages overlap: reading with the device, so that they add up to more than the run."""
    table = Table(title="where the time goes", title_justify="left")
    table.add_column("stage")
    table.add_column("ms a frame", justify="right")
    frames = max(1, len(report.frames) - report.resumed)
    for stage, seconds in report.stage_seconds.items():
        table.add_row(stage, f"{seconds / frames * 1000:.3f}")
    table.add_section()
    table.add_row("whole run", f"{report.seconds / frames * 1000:.3f}")
    console(file).print(table)


def console(file: TextIO) -> Console:
    """What writes tables to a file: as wide as its terminal, or 120 columns."""
    return Console(file=file, width=None if file.isatty() else 120)


def _number(value: float, column: str = "") -> str:
    if math.isnan(value):
        return "null"
    return f"{value:.3f}" if column == "mean_db" else f"{value:.6f}"
