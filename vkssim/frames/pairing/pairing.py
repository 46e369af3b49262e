"""Pair the frames of the distorted clip with those of the reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

ROUNDING = 1e-6  # seconds: times are sums of rounded ticks


class Pairing(Protocol):
    """The frames of each pair. All pairs are counted from 0, also those left out.

    `skips` are the frames of the first pair.
    """

    skips: tuple[int, int]

    def reference(self, pairs: range) -> Sequence[int]:
        """Return the numbers of the reference's frames."""

    def distorted(self, pairs: range) -> Sequence[int]:
        """Return the numbers of the distorted clip's frames."""

    def indices(self, pairs: range) -> Sequence[int]:
        """Return the numbers that the pairs have in a report."""

    def pair_of(self, index: int) -> int:
        """Return the first pair whose number in a report is at least `index`."""


class ByIndex:
    """Pairs by number: first with first and second with second, after the skipped frames of each clip."""

    def __init__(self, skip_reference: int, skip_distorted: int) -> None:
        self.skips = skip_reference, skip_distorted

    def reference(self, pairs: range) -> range:
        """See Pairing."""
        return range(pairs.start + self.skips[0], pairs.stop + self.skips[0], pairs.step)

    def distorted(self, pairs: range) -> range:
        """See Pairing."""
        return range(pairs.start + self.skips[1], pairs.stop + self.skips[1], pairs.step)

    def indices(self, pairs: range) -> range:
        """See Pairing."""
        return pairs

    def pair_of(self, index: int) -> int:
        """See Pairing."""
        return index


class ByTime:
    """Pairs by presentation time, counted from the first frame of each clip that is not skipped.

    A frame of the reference forms a pair with the nearest frame of the distorted clip that is less than half its duration away.
    A frame is in one pair at most. Times are (frames,) seconds, rising. In a report, a pair has the number of its reference's
    frame.
    """

    def __init__(
        self,
        reference: npt.NDArray[np.float64],
        distorted: npt.NDArray[np.float64],
        skip_reference: int,
        skip_distorted: int,
    ) -> None:
        first, second = reference[skip_reference:], distorted[skip_distorted:]
        self.skips = skip_reference, skip_distorted
        self._lengths = len(first), len(second)
        if not (len(first) and len(second)):
            self._pairs = np.empty((0, 2), int)
            return
        first, second = first - first[0], second - second[0]
        partner = _nearest(second, first)
        mutual = _nearest(first, second)[partner] == np.arange(len(first))
        close = np.abs(second[partner] - first) < _durations(first) / 2 - ROUNDING
        (matched,) = (mutual & close).nonzero()
        self._pairs = np.stack([matched, partner[matched]], axis=1)

    def __len__(self) -> int:
        return len(self._pairs)

    def reference(self, pairs: range) -> list[int]:
        """See Pairing."""
        return self._column(pairs, 0, self.skips[0])

    def distorted(self, pairs: range) -> list[int]:
        """See Pairing."""
        return self._column(pairs, 1, self.skips[1])

    def indices(self, pairs: range) -> list[int]:
        """See Pairing."""
        return self._column(pairs, 0, 0)

    def pair_of(self, index: int) -> int:
        """See Pairing; `index` is the number of the reference's frame, counted after the skipped ones."""
        return int(np.searchsorted(self._pairs[:, 0], index))

    def left_over(self, start: int = 0, stop: int | None = None) -> tuple[int, int]:
        """Return the number of frames of each clip without a partner, from pair `start` to before `stop`.

        Frames before the first of all pairs count as part of it, and frames after the last pair count as part of that.
        """
        pairs = self._pairs[start:stop]
        begins = pairs[0] if start > 0 and len(pairs) else (0, 0)
        ends = self._lengths if stop is None or stop >= len(self) or not len(pairs) else pairs[-1] + 1
        first, second = (int(end - begin) - len(pairs) for begin, end in zip(begins, ends, strict=True))
        return first, second

    def _column(self, pairs: range, column: int, skip: int) -> list[int]:
        chosen: list[int] = (self._pairs[pairs.start : pairs.stop : pairs.step, column] + skip).tolist()
        return chosen


def _nearest(times: npt.NDArray[np.float64], to: npt.NDArray[np.float64]) -> npt.NDArray[np.intp]:
    """Return the index of the nearest of `times` for each of `to`; if two are equally near, the earlier one."""
    after = np.clip(np.searchsorted(times, to), 1, max(1, len(times) - 1))
    before = after - 1
    after = np.minimum(after, len(times) - 1)
    return np.where(times[after] - to < to - times[before], after, before)


def _durations(times: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the duration of each frame, which ends at the next frame. The last frame lasts as long as the one before it."""
    if len(times) == 1:
        return np.array([np.inf])
    durations = np.diff(times)
    return np.append(durations, durations[-1])
