"""The worst frames of a run, and their presentation times as text."""

from __future__ import annotations

import math

from .frame_scores import FrameScores
from .results import ScoreReport

_METRICS_OF_CHOICE = ("float_ms_ssim", "float_ssim")


def worst_frames(report: ScoreReport, name: str, count: int) -> list[FrameScores]:
    """Return the frames with the lowest scores, the worst first.

    Parameters
    ----------
    report : ScoreReport
        The report.
    name : str
        The score by which frames are sorted, one of `report.names`.
    count : int
        The largest number of frames to return.

    Returns
    -------
    list of FrameScores
        Frames without a score come before all others, and of equal frames the earlier one comes first.

    Raises
    ------
    KeyError
        No score of that name was computed.

    """

    def badness(frame: FrameScores) -> float:
        score = frame.metrics[name]
        return -math.inf if math.isnan(score) else score

    return sorted(report.frames, key=badness)[:count]


def time_code(seconds: float) -> str:
    """Return a time in seconds, 0 or more, as HH:MM:SS.mmm, rounded to the millisecond."""
    minutes, milliseconds = divmod(round(seconds * 1000), 60_000)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02d}:{minutes:02d}:{milliseconds // 1000:02d}.{milliseconds % 1000:03d}"


def metric_of_choice(report: ScoreReport) -> str:
    """Return the score by which the worst frames of a report are chosen. The report has to have scores."""
    return next((name for name in _METRICS_OF_CHOICE if name in report.names), report.names[0])
