"""Print scores to standard output while the run goes on: one line a frame, one JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ..errors import OutputError
from ..report.frame_scores import FrameScores
from ..report.numbers import NumberFormat
from .output import print_text


class LiveLines:
    """A printer of each frame's line, as soon as the frame is scored.

    Where a line cannot be written, a run with results to write elsewhere goes on without lines, and `failure` says why. With
    `ends_run` there is nothing else to go on for, and a call raises the failure, which is an OutputError.
    """

    def __init__(self, precision: str, *, ends_run: bool) -> None:
        self._numbers = NumberFormat.parse(precision)
        self._ends_run = ends_run
        self.failure: OutputError | None = None

    def __call__(self, frames: Sequence[FrameScores]) -> None:
        """Print the lines of these frames. Raises OutputError."""
        if self.failure is not None:
            return
        try:
            print_text("".join(json.dumps(self._entry(frame), allow_nan=False) + "\n" for frame in frames))
        except OutputError as error:
            self.failure = OutputError(f"{error}; {'the run ended there' if self._ends_run else 'the run went on without it'}")
            if self._ends_run:
                raise self.failure from None

    def _entry(self, frame: FrameScores) -> dict[str, object]:
        return {
            "frameNum": frame.index,
            "time": None if frame.time is None else round(frame.time, 6),
            "metrics": {name: self._numbers.number(value) for name, value in frame.metrics.items()},
        }
