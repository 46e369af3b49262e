"""The gate's rule of agreement between two sets of scores, for the matrix and for single clips."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Scores = Mapping[int, Mapping[str, float | None]]
"""The scores of each frame by name, by the number of the frame; None or NaN if a score does not exist."""


@dataclass(frozen=True)
class Comparison:
    """One score compared over all frames.

    `greatest` is the greatest difference, `frame` the first frame that has it, and `values` are the two scores of that frame.
    `mismatches` are the frames whose difference is beyond the tolerance.
    """

    name: str
    frames: int
    greatest: float
    frame: int
    values: tuple[float | None, float | None]
    mismatches: tuple[int, ...]


def tolerance_of(places: int) -> float:
    """Return the absolute difference that agreement to `places` decimal places allows: half a unit of the last place."""
    return 0.5 * 10.0**-places


def difference(first: float | None, second: float | None) -> float:
    """Return the absolute difference of two scores: 0 if neither exists, infinite if only one does."""
    missing = [score is None or math.isnan(score) for score in (first, second)]
    if first is None or second is None or any(missing):
        return 0.0 if all(missing) else math.inf
    return 0.0 if first == second else abs(first - second)


def compare(tested: Scores, trusted: Scores, tolerance: float) -> list[Comparison]:
    """Compare every score of every frame that either side has. A score or a frame that one side lacks is a mismatch."""
    numbers = sorted({*tested, *trusted})
    comparisons = []
    for name in dict.fromkeys(name for side in (tested, trusted) for metrics in side.values() for name in metrics):
        gaps = {number: _gap(tested, trusted, number, name) for number in numbers}
        frame = max(gaps, key=lambda number: gaps[number])
        values = tested.get(frame, {}).get(name), trusted.get(frame, {}).get(name)
        mismatches = tuple(number for number, gap in gaps.items() if not gap <= tolerance)
        comparisons.append(Comparison(name, len(numbers), gaps[frame], frame, values, mismatches))
    return comparisons


def _gap(tested: Scores, trusted: Scores, number: int, name: str) -> float:
    sides = [side.get(number, {}) for side in (tested, trusted)]
    if any(name not in metrics for metrics in sides):
        return math.inf
    return difference(*(metrics[name] for metrics in sides))


def worst(comparisons: Sequence[Comparison]) -> Comparison:
    """Return the comparison with the greatest difference."""
    return max(comparisons, key=lambda comparison: comparison.greatest)
