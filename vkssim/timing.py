"""When the frames of a run are shown, and whether those of a pair are shown together."""

from __future__ import annotations

from collections.abc import Sequence

from .frames.source import FrameSource
from .pairing import Pairing


class Clock:
    """Looks at the times of each pair that was read, in order."""

    def __init__(self, sources: Sequence[FrameSource], pairing: Pairing, sync: str) -> None:
        self._reference, self._distorted = sources
        self._pairing = pairing
        self._by_time = sync == "pts"
        self._starts: tuple[float, float] | None = None
        rate = self._reference.info.fps
        self._tolerance = None if rate is None else 0.5 / float(rate)
        self.out_of_step: str | None = None
        """What to say of the first pair whose frames are more than half a frame apart.

        By number the first pair that is compared counts as together, by time the first frames that are not skipped do.
        """

    def times(self, pairs: range) -> list[float | None]:
        """When the reference shows the frames of these pairs, in seconds from its first frame."""
        numbers = self._pairing.reference(pairs)
        times = [self._reference.time(number) for number in numbers]
        if self.out_of_step is None and self._tolerance is not None:
            others = [self._distorted.time(number) for number in self._pairing.distorted(pairs)]
            for index, time, other in zip(self._pairing.indices(pairs), times, others, strict=True):
                self._compare(index, time, other, self._tolerance)
        return times

    def _compare(self, index: int, time: float | None, other: float | None, tolerance: float) -> None:
        if time is None or other is None or self.out_of_step is not None:
            return
        if self._starts is None:
            self._starts = self._first_left() if self._by_time else (time, other)
        since, other_since = time - self._starts[0], other - self._starts[1]
        if abs(since - other_since) > tolerance:
            paths = self._reference.info.path, self._distorted.info.path
            first, advice = (
                ("frames that are not skipped", "their packets promised other times")
                if self._by_time
                else ("frames compared", "--sync pts pairs frames by time")
            )
            self.out_of_step = (
                f"from frame {index} on {paths[0]} and {paths[1]} are out of step: {since:.3f} s and {other_since:.3f} s after"
                f" the first {first}; {advice}"
            )

    def _first_left(self) -> tuple[float, float]:
        skipped, other_skipped = self._pairing.skips
        return self._reference.time(skipped) or 0.0, self._distorted.time(other_skipped) or 0.0
