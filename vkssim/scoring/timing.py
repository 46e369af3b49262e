"""Find out whether the frames of each pair have the same presentation time."""

from __future__ import annotations

from collections.abc import Callable, Iterable

PairTimes = tuple[int, float | None, float | None]
"""The number of a pair, and the presentation times of its frames, in seconds since the first frame of each clip."""
_ROUNDED = 2e-3
"""The largest rounding of a time in seconds, at both ends: many containers store milliseconds."""

PTS_ADVICE = "; --sync pts pairs frames by time"
"""The end of a message about clips whose frames were paired by their numbers although their times differ."""

_SAME_PACE = 5e-4
"""The relative tolerance of the pace: half of the difference between 23.976 and 24 frames a second."""


class Clock:
    """Compare the times of each pair, in order. `paths` are the clips, `rate` is the reference's in frames a second.

    `first_left` gives the times of the first frames that are not skipped. Where pairs are made by time, these two count as
    simultaneous. Without it, the frames of the first pair count as simultaneous.
    """

    def __init__(
        self, paths: tuple[str, str], rate: float | None, first_left: Callable[[], tuple[float, float]] | None = None
    ) -> None:
        self._paths = paths
        self._tolerance = None if rate is None else 0.5 / rate
        self._first_left = first_left
        self._starts: tuple[float, float] | None = None
        self._last: tuple[float, float] | None = None
        self.out_of_step: str | None = None
        """The message about the first pair whose frames are more than half a frame apart."""

    def compare(self, pairs: Iterable[PairTimes]) -> None:
        """Compare the times of the next pairs."""
        if self._tolerance is None:
            return
        for index, time, other in pairs:
            if time is None or other is None:
                continue
            self._last = time, other
            if self.out_of_step is None:
                self._compare(index, time, other, self._tolerance)

    @property
    def differs_in_pace(self) -> bool:
        """Return whether one clip shows the same frames in less time than the other; False where pairs are made by time."""
        if self._starts is None or self._last is None or self._first_left is not None:
            return False
        span, other = (last - start for last, start in zip(self._last, self._starts, strict=True))
        return abs(span - other) > _ROUNDED + _SAME_PACE * max(span, other)

    def _compare(self, index: int, time: float, other: float, tolerance: float) -> None:
        if self._starts is None:
            self._starts = (time, other) if self._first_left is None else self._first_left()
        since, other_since = time - self._starts[0], other - self._starts[1]
        if abs(since - other_since) > tolerance:
            first, advice = (
                ("frames compared", PTS_ADVICE)
                if self._first_left is None
                else ("frames that are not skipped", "; their packets announced other times")
            )
            self.out_of_step = (
                f"from frame {index} on {self._paths[0]} and {self._paths[1]} are out of step: {since:.3f} s and"
                f" {other_since:.3f} s after the first {first}{advice}"
            )
