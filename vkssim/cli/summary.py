"""Print the tables that `vkssim score` shows."""

from __future__ import annotations

import math
from typing import TextIO

from ..features import FEATURES
from ..report.numbers import time_code
from ..report.results import ScoreReport, worst_frames
from ..utils.wording import counted
from .tables import TableLayout, print_line, print_table

_HEADS = {
    "mean": "mean",
    "mean_db": "mean dB",
    "harmonic_mean": "harmonic",
    "min": "min",
    "p5": "p5",
    "p50": "p50",
    "max": "max",
    "stddev": "stddev",
}
"""The pooled values that are shown, and their headings."""
_LEFT_OUT_FIRST = ("stddev", "p50", "harmonic", "max", "mean dB", "p5")
"""The headings of the columns that a narrow terminal does without."""


def print_summary(report: ScoreReport, file: TextIO) -> None:
    """Print the pooled scores, and below them what was compared and how fast."""
    rows = [
        [name, *(_number(pooled[column], column) if column in pooled else "" for column in _HEADS)]
        for name, pooled in report.pooled().items()
    ]
    title = f"{report.distorted} against {report.reference}"
    print_table(title, ["score", *_HEADS.values()], rows, file, TableLayout(optional=_LEFT_OUT_FIRST))
    backend = report.backend
    print_line(
        file,
        f"{counted(len(report.frames), 'frame')} of {report.width}x{report.height}, {report.bits} bit,"
        f" {report.fps:.1f} frames/s on {backend.device} ({backend.driver}), {backend.backend}",
    )


def print_worst(report: ScoreReport, count: int, file: TextIO) -> None:
    """Print the frames with the lowest scores of the first metric, with all scores and, if known, presentation times."""
    if not (count and report.frames):
        return
    names = [name for name in report.names if name in FEATURES]
    frames = worst_frames(report, names[0], count)
    timed = any(frame.time is not None for frame in frames)
    rows = [
        [
            str(frame.index),
            *(["" if frame.time is None else time_code(frame.time)] if timed else []),
            *(_number(frame.metrics[name]) for name in names),
        ]
        for frame in frames
    ]
    print_line(file, (f"worst frames by {names[0]}", "italic"))
    print_table("", ["frame", *(["time"] if timed else []), *names], rows, file, TableLayout(texts=0, optional=names[:0:-1]))


def print_profile(report: ScoreReport, file: TextIO) -> None:
    """Print the milliseconds a frame of each stage, and the decoder of each clip.

    Stages overlap, so that they add up to more than the whole run.
    """
    frames = max(1, len(report.frames) - report.resumed)
    seconds = {**report.stage_seconds, "whole run": report.seconds}
    rows = [[stage, f"{value / frames * 1000:.3f}"] for stage, value in seconds.items()]
    print_table("where the time goes", ["stage", "ms a frame"], rows, file, TableLayout(total=True))
    if report.scoring is not None:
        for clip in (report.scoring.reference, report.scoring.distorted):
            reason = f" ({clip.decoder_reason})" if clip.decoder_reason else ""
            print_line(file, f"{clip.path}: decoder {clip.decoder or 'unknown'}{reason}")


def _number(value: float, column: str = "") -> str:
    if math.isnan(value):
        return "null"
    return f"{value:.3f}" if column == "mean_db" else f"{value:.6f}"
