"""Find scene cuts, and choose the samples of a clip that are encoded in place of the whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from .source import Scan

_LEAST_CHANGE = 6.0  # of the mean block of a picture, on the 0..255 scale
_TIMES_NEIGHBOURS = 3.0
_NEIGHBOURS = 3
SHORTEST_SHOT = 12
"""Frames of a shot at least. What is shorter belongs to the shot before it."""


@dataclass(frozen=True)
class Sample:
    """Describe a range of frames that is encoded by itself.

    `weight` is how many frames of the clip each of its frames stands for. `at_cut` is whether it begins where a shot begins:
    the whole clip has a key frame there as well.
    """

    first: int
    count: int
    weight: float = 1.0
    at_cut: bool = True


@dataclass(frozen=True)
class Sampling:
    """Hold the samples of a clip, and what a forecast of its size needs.

    `frames` is the length of the clip, and `cuts` is how many shots it has.
    """

    samples: tuple[Sample, ...]
    frames: int
    cuts: int

    @property
    def is_whole(self) -> bool:
        """Return whether the samples are the clip itself, in one piece."""
        return len(self.samples) == 1 and self.samples[0].count == self.frames


def find_cuts(changes: Sequence[float]) -> list[int]:
    """Return the numbers of the frames that begin a shot, 0 first.

    A cut is a frame that differs from the one before it by _LEAST_CHANGE, and _TIMES_NEIGHBOURS times as much as its neighbours
    do from theirs: a flash has two such changes, and fast motion has many.
    """
    array = np.asarray(changes, np.float64)
    cuts = [0]
    for place in range(1, len(array)):
        around = np.r_[array[max(1, place - _NEIGHBOURS) : place], array[place + 1 : place + 1 + _NEIGHBOURS]]
        is_cut = array[place] >= max(_LEAST_CHANGE, _TIMES_NEIGHBOURS * around.max(initial=0.0))
        if is_cut and place - cuts[-1] >= SHORTEST_SHOT and len(array) - place >= SHORTEST_SHOT:
            cuts.append(place)
    return cuts


def choose_samples(scan: Scan, *, length: int, most: int) -> Sampling:
    """Choose samples of about `length` frames, `most` frames altogether; the clip itself where it is not much longer.

    Shots are divided into pieces. The pieces are sorted by how hard they look, by their detail and by their motion, and divided
    into groups of equal length; the piece in the middle of a group is a sample, and stands for the group.
    """
    cuts = find_cuts(scan.changes)
    if scan.count <= most * 1.25:
        return Sampling((Sample(0, scan.count),), scan.count, len(cuts))
    pieces = _pieces(cuts, scan, length)
    lengths = np.array([piece.count for piece in pieces])
    groups = max(1, round(most / float(lengths.mean())))
    middles = np.cumsum(lengths) - lengths / 2
    bounds = [scan.count * number / groups for number in range(groups + 1)]
    samples = []
    for low, high in pairwise(bounds):
        inside = np.flatnonzero((middles >= low) & (middles < high))
        if len(inside):
            middle = inside[np.argmin(np.abs(middles[inside] - (low + high) / 2))]
            piece = pieces[middle]
            samples.append(Sample(piece.first, piece.count, float(lengths[inside].sum()) / piece.count, piece.at_cut))
    return Sampling(tuple(sorted(samples, key=lambda sample: sample.first)), scan.count, len(cuts))


def _pieces(cuts: Sequence[int], scan: Scan, length: int) -> list[Sample]:
    """Return the pieces of all shots, the ones that look easiest first."""
    pieces = []
    for first, end in zip(cuts, [*cuts[1:], scan.count], strict=True):
        number = max(1, round((end - first) / length))
        marks = np.linspace(first, end, number + 1).round().astype(int)
        pieces += [Sample(int(low), int(high - low), at_cut=place == 0) for place, (low, high) in enumerate(pairwise(marks))]

    def hardness(piece: Sample) -> float:
        inside = slice(piece.first + 1, piece.first + piece.count)
        motion = float(np.mean(scan.changes[inside])) if piece.count > 1 else 0.0
        return (1.0 + motion) * (1.0 + float(np.mean(scan.details[piece.first : piece.first + piece.count])))

    return sorted(pieces, key=hardness)
