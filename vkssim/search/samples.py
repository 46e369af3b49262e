"""Find scene cuts, and choose the samples of a clip that are encoded in place of the whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..types import Doubles
from .source import Scan

GROUP = 32
"""The most frames that encoders code as one group; samples begin and end with groups. SVT-AV1 has groups of 16 or 32."""

LEAD = GROUP + 1
"""The frames before each sample that are encoded and not counted: a key frame and a group."""

TAIL = 16
"""The frames after each sample that are encoded and not counted."""

_MIN_CHANGE = 6.0  # of the mean block of a picture, on the 0..255 scale
_TIMES_NEIGHBOURS = 3.0
_NEIGHBOURS = 3
SHORTEST_SHOT = 12
"""The least frames of a shot. Shorter ones belong to the previous shot."""

_MAX_CORRECTION = 2.0  # a weight is not corrected by more than this factor
_ROUNDS = 30


@dataclass(frozen=True)
class Sample:
    """A range of frames that is encoded by itself, with frames around it, so that it is encoded as it is within the clip."""

    first: int
    """The number of its first frame."""
    count: int
    """The number of its frames."""
    weight: float = 1.0
    """How many frames of the clip each of its frames stands for."""
    lead: int = 0
    """The number of frames before it that are encoded and not counted."""
    tail: int = 0
    """The number of frames after it that are encoded and not counted."""

    @property
    def encoded(self) -> int:
        """Return how many frames are encoded."""
        return self.lead + self.count + self.tail


@dataclass(frozen=True)
class Sampling:
    """The samples of a clip, and the data for forecasting its size."""

    samples: tuple[Sample, ...]
    frames: int
    """The length of the clip in frames."""
    cuts: tuple[int, ...] = (0,)
    """The numbers of the frames that begin its shots, 0 first."""

    @classmethod
    def whole(cls, frames: int, cuts: Sequence[int] = (0,)) -> Sampling:
        """Return the clip itself, in one piece."""
        return cls((Sample(0, frames),), frames, tuple(cuts))

    @property
    def is_whole(self) -> bool:
        """Return whether the samples are the clip itself, in one piece."""
        return len(self.samples) == 1 and self.samples[0].count == self.frames


def find_cuts(changes: Sequence[float]) -> list[int]:
    """Return the numbers of the frames that begin a shot, 0 first.

    A cut is a frame that differs from the one before it by _MIN_CHANGE, and _TIMES_NEIGHBOURS times as much as its neighbours
    do from theirs: a flash has two such changes, and fast motion has many.
    """
    array = np.asarray(changes, np.float64)
    cuts = [0]
    for place in range(1, len(array)):
        around = np.r_[array[max(1, place - _NEIGHBOURS) : place], array[place + 1 : place + 1 + _NEIGHBOURS]]
        is_cut = array[place] >= max(_MIN_CHANGE, _TIMES_NEIGHBOURS * around.max(initial=0.0))
        if is_cut and place - cuts[-1] >= SHORTEST_SHOT and len(array) - place >= SHORTEST_SHOT:
            cuts.append(place)
    return cuts


def choose_samples(scan: Scan, *, length: int, most: int) -> Sampling:
    """Choose samples of about `length` frames, `most` frames altogether; the clip itself if that is not much longer.

    The clip is divided into pieces that begin where encoders begin a group of frames. They are sorted by how hard they are to
    encode and divided into groups of equal length. The piece in the middle of a group is a sample, and stands for the group.
    The weights are corrected so that the samples stand for all frames, and for how hard these are altogether.
    """
    cuts = find_cuts(scan.changes)
    length = max(1, round(length / GROUP)) * GROUP

    # Frame 0 is a key frame, and groups begin after it. The rest at the end belongs to the last piece.
    pieces = list(pairwise([0, *range(1 + length, scan.count - length // 2, length), scan.count]))
    lengths = np.array([end - first for first, end in pieces], np.float64)
    groups = max(1, round(most / float(lengths.mean())))
    if groups * (lengths.mean() + LEAD + TAIL) >= scan.count:
        return Sampling.whole(scan.count, cuts)

    costs = np.array([sum(scan.costs[first:end]) for first, end in pieces], np.float64)
    order = np.argsort(costs / lengths, kind="stable")
    middles = np.cumsum(lengths[order]) - lengths[order] / 2
    chosen, weights = [], []
    for low, high in pairwise(scan.count * number / groups for number in range(groups + 1)):
        inside = np.flatnonzero((middles >= low) & (middles < high))
        if len(inside):
            middle = inside[np.argmin(np.abs(middles[inside] - (low + high) / 2))]
            chosen.append(order[middle])
            weights.append(float(lengths[order[inside]].sum() / lengths[order[middle]]))

    corrected = corrected_weights(np.array(weights), np.stack([lengths, costs]), np.array(chosen))
    samples = [
        Sample(first, end - first, weight, min(LEAD, first), min(TAIL, scan.count - end))
        for (first, end), weight in zip((pieces[place] for place in chosen), corrected.tolist(), strict=True)
    ]
    return Sampling(tuple(sorted(samples, key=lambda sample: sample.first)), scan.count, tuple(cuts))


def corrected_weights(weights: Doubles, columns: Doubles, chosen: np.ndarray) -> Doubles:
    """Return weights of samples with which they have the totals of all pieces, changed as little as that allows.

    This is the calibration of survey statistics by exponential factors. If these would be large, because too few samples cannot
    have the totals, only the first column's total is met. `weights` is (samples,), `columns` has the numbers to total of every
    piece, (columns, pieces), and `chosen` are the pieces that are samples.
    """
    scale = columns.mean(axis=1, keepdims=True)
    seen, totals = (columns / scale)[:, chosen], (columns / scale).sum(axis=1)
    factors = np.zeros(len(columns))
    if len(weights) > len(columns):
        for _ in range(_ROUNDS):
            current = weights * np.exp(factors @ seen)
            slope = (seen * current) @ seen.T
            factors = factors + np.linalg.lstsq(slope, totals - seen @ current, rcond=1e-9)[0]
            if np.abs(factors @ seen).max() > np.log(_MAX_CORRECTION):
                factors = np.zeros(len(columns))
                break
    current = weights * np.exp(factors @ seen)
    corrected: Doubles = current * (totals[0] / (seen[0] @ current))
    return corrected
