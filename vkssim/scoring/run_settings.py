"""Everything that a run is given besides its clips and options. None of it changes a score."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..report.frame_scores import FrameScores
from ..report.thresholds import Threshold
from .run_store import RunStore

Progress = Callable[[int, int | None], None]
"""Called with the frames scored so far and their total, None where it is not known."""

OnFrames = Callable[[Sequence[FrameScores]], None]
"""Called with frames that have just been scored, in order."""


@dataclass(frozen=True)
class RunSettings:
    """Whom a run tells what, and where it keeps what it has scored; see `score_files`.

    `thresholds` are the thresholds that its scores have to reach, and the pooled values that will be asked of them.
    """

    profile: bool = False
    progress: Progress | None = None
    on_frames: OnFrames | None = None
    thresholds: Sequence[Threshold] = ()
    store: RunStore | None = None
