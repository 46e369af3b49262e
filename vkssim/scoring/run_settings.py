"""Hold the settings of a run besides its clips and options. None of them changes a score."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..report.frame_scores import FrameScores
from ..report.thresholds import Threshold
from .journal import Journal

Progress = Callable[[int, int | None], None]
"""A function that gets the number of frames scored so far and the total, which is None where it is not known."""

OnFrames = Callable[[Sequence[FrameScores]], None]
"""A function that gets frames that have just been scored, in order."""


@dataclass(frozen=True)
class RunSettings:
    """The callbacks of a run and the journal of its scores; see `score_files`.

    `thresholds` are the thresholds that the scores must reach, and the pooled values that the report will be asked for.
    """

    profile: bool = False
    progress: Progress | None = None
    on_frames: OnFrames | None = None
    thresholds: Sequence[Threshold] = ()
    journal: Journal | None = None
