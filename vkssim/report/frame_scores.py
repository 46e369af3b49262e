"""The scores of single frames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..types import Doubles


@dataclass(frozen=True, slots=True)
class FrameScores:
    """The scores of one frame.

    Parameters
    ----------
    index : int
        The number of the pair, counted from 0.
    metrics : mapping of str to float
        The score of each metric, NaN if it does not exist.
    time : float, optional
        The presentation time of the reference's frame, in seconds from its first frame; None if it is unknown.

    """

    index: int
    metrics: Mapping[str, float]
    time: float | None = None


def rows(
    columns: Mapping[str, Doubles], numbers: Iterable[int], times: Iterable[float | None] | None = None
) -> list[FrameScores]:
    """Return the FrameScores of each frame from columns of scores. Without `times`, the frames have no time."""
    names = tuple(columns)
    values = list(zip(*(column.tolist() for column in columns.values()), strict=True))
    return [
        FrameScores(number, dict(zip(names, row, strict=True)), time)
        for number, row, time in zip(numbers, values, times or [None] * len(values), strict=True)
    ]
