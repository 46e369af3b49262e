"""The tables that the command line shows."""

from __future__ import annotations

import math
from typing import TextIO

from rich.console import Console
from rich.table import Table

from .results import ScoreReport

_COLUMNS = ("mean", "harmonic_mean", "min", "percentile_5", "percentile_50", "max", "stddev")
_NARROW_COLUMNS = ("mean", "min", "percentile_5", "max")
_WIDE = 104  # columns of text that the longest name and all values need


def print_summary(report: ScoreReport, file: TextIO) -> None:
    """Pooled scores, what was compared and how fast."""
    screen = console(file)
    columns = _COLUMNS if screen.width >= _WIDE else _NARROW_COLUMNS
    table = Table(title=f"{report.distorted} against {report.reference}", title_justify="left")
    table.add_column("score", no_wrap=True)
    for column in columns:
        table.add_column(column.replace("harmonic_mean", "harmonic").replace("percentile_", "p"), justify="right")
    for name, pooled in report.pooled().items():
        table.add_row(name, *(_number(pooled[column]) for column in columns))
    screen.print(table)
    screen.print(
        f"{len(report.frames)} frames of {report.width}x{report.height}, {report.bits} bit, {report.fps:.1f} frames/s on"
        f" {report.backend.device} ({report.backend.driver}), {report.backend.backend}",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )


def print_profile(report: ScoreReport, file: TextIO) -> None:
    """Milliseconds a frame of each stage. Stages overlap: reading with the device, so that they add up to more than the run."""
    table = Table(title="where the time goes", title_justify="left")
    table.add_column("stage")
    table.add_column("ms a frame", justify="right")
    frames = max(1, len(report.frames))
    for stage, seconds in report.stage_seconds.items():
        table.add_row(stage, f"{seconds / frames * 1000:.3f}")
    table.add_section()
    table.add_row("whole run", f"{report.seconds / frames * 1000:.3f}")
    console(file).print(table)


def console(file: TextIO) -> Console:
    """What writes tables to a file: as wide as its terminal, or 120 columns."""
    return Console(file=file, width=None if file.isatty() else 120)


def _number(value: float) -> str:
    return f"{value:.6f}" if math.isfinite(value) else "null"
