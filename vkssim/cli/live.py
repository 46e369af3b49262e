"""Scores on standard output while the run goes on: one JSON object a line, one line a frame."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ..errors import OutputError
from ..report.numbers import NumberFormat
from ..scorer import FrameScores
from .output import discard_standard_output, print_text


class LiveLines:
    """Prints the line of each frame and flushes it. Raises OutputError where nobody reads on, so that the run ends."""

    def __init__(self, precision: str) -> None:
        self._numbers = NumberFormat.parse(precision)

    def __call__(self, frames: Sequence[FrameScores]) -> None:
        """Print the lines of these frames."""
        try:
            print_text("".join(json.dumps(self._entry(frame), allow_nan=False) + "\n" for frame in frames))
        except BrokenPipeError:
            discard_standard_output()
            raise OutputError("nobody reads standard output any more, the run ended there") from None

    def _entry(self, frame: FrameScores) -> dict[str, object]:
        return {
            "frameNum": frame.index,
            "time": None if frame.time is None else round(frame.time, 6),
            "metrics": {name: self._numbers.number(value) for name, value in frame.metrics.items()},
        }
