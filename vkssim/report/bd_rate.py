"""The Bjøntegaard deltas of two ladders: the mean differences of bit rate and of quality."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import InputError
from ..types import Doubles
from ..utils.version import require_extra
from ..utils.wording import counted
from .results import decibel

MIN_POINTS = 2
"""The fewest points of a curve."""
ENOUGH_POINTS = 4
"""The fewest points that show how a curve bends. Between fewer, `FEW_POINTS` interpolates, which does not overshoot."""
FEW_POINTS = "pchip"

_ENOUGH_OVERLAP = 0.75


@dataclass(frozen=True)
class RateCurve:
    """A ladder: its name, its bit rates in ascending order, over 0 in any unit, and their scores, both (points,)."""

    name: str
    rates: Doubles
    scores: Doubles

    @classmethod
    def of(cls, name: str, points: Sequence[tuple[float, float]], *, decibels: bool = False) -> RateCurve:
        """Return the ladder of points (rate, score) in any order. Raises InputError if no curve can be drawn through them."""
        rates, scores = np.array(sorted(points), np.float64).reshape(-1, 2).T
        if decibels:
            scores = in_decibels(scores)
        if len(points) < MIN_POINTS:
            raise InputError(f"{name} has {counted(len(points), 'point')}; a Bjøntegaard delta needs {MIN_POINTS} or more")
        if rates[0] <= 0:
            raise InputError(f"{name} has a bit rate of {rates[0]:g}; all must be over 0")
        for what, values in (("bit rate", rates), ("score", np.sort(scores))):
            twice = values[1:][np.diff(values) == 0]
            if len(twice):
                raise InputError(f"{name} has more than one point with the {what} {twice[0]:g}; leave all but one out")
        return cls(name, rates, scores)


@dataclass(frozen=True)
class Deltas:
    """The differences between the test curve and the anchor."""

    bd_rate: float
    """The mean difference of bit rate at equal score in percent; below 0 if the test needs less."""
    bd_score: float
    """The mean difference of score at equal rate; above 0 if the test is better."""
    points: tuple[int, int]
    """The numbers of points of anchor and test."""
    method: str
    """The interpolation that was used."""
    warnings: list[str]
    """The reasons to trust the deltas less."""


def bjontegaard_deltas(anchor: RateCurve, test: RateCurve, method: str = "akima") -> Deltas:
    """Return both deltas, integrated over the range that the curves share, with logarithmic rates, by the package bjontegaard.

    `method` is the interpolation: `akima` or `pchip` (piecewise, through every point) or `cubic` (one least-squares polynomial,
    as in VCEG-M33). With fewer than `ENOUGH_POINTS` on a curve it is `FEW_POINTS`, which is a straight line through two points,
    and a warning says so. Raises InputError if the curves have no common range of scores or of rates, and OptionError if the
    package is not installed.
    """
    notes = [
        f"{curve.name}: the score does not always rise with the bit rate; its curve folds back and the deltas mean little"
        for curve in (anchor, test)
        if not (np.diff(curve.scores) > 0).all()
    ]
    few = [curve for curve in (anchor, test) if len(curve.rates) < ENOUGH_POINTS]
    if few:
        method = FEW_POINTS
        counts = " and ".join(f"{curve.name} has {counted(len(curve.rates), 'point')}" for curve in few)
        notes.append(f"{counts}: {method} draws the curves, and the deltas are less reliable than with {ENOUGH_POINTS}")
    for what, first, second in (("scores", anchor.scores, test.scores), ("bit rates", anchor.rates, test.rates)):
        share = _overlap(np.log(first), np.log(second)) if what == "bit rates" else _overlap(first, second)
        if share <= 0:
            ranges = [f"{values.min():g} to {values.max():g}" for values in (first, second)]
            named = f"the {what} of {anchor.name}, {ranges[0]}, and of {test.name}, {ranges[1]}"
            raise InputError(f"{named}, do not overlap, so they cannot be compared")
        if share < _ENOUGH_OVERLAP:
            notes.append(
                f"{anchor.name} and {test.name} share {share:.0%} of their {what} only; the deltas are more reliable with"
                " more overlap"
            )
    library = require_extra("bjontegaard", "report", "a Bjøntegaard delta")
    by_score = [column[np.argsort(curve.scores)] for curve in (anchor, test) for column in (curve.rates, curve.scores)]
    by_rate = [anchor.rates, anchor.scores, test.rates, test.scores]
    options = {"method": method, "require_matching_points": False, "min_overlap": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # polyfit warns about close points; the checks above cover the cases that matter
        rate, score = library.bd_rate(*by_score, **options), library.bd_psnr(*by_rate, **options)
    return Deltas(float(rate), float(score), (len(anchor.rates), len(test.rates)), method, notes)


def in_decibels(scores: Doubles) -> Doubles:
    """Return -10 log10(1 - score), which spreads scores near 1. Raises InputError if a score is 1 or more."""
    if (scores > 1).any():
        raise InputError(
            f"a score of {scores.max():g} is not a similarity, which is 1 at most; leave it out, or compare the scores as they"
            " are (`vkssim bd-rate --linear`)"
        )
    if (scores >= 1).any():
        raise InputError(
            "a score of 1 is infinite in dB; leave that point out, or compare the scores as they are"
            " (`vkssim bd-rate --linear`)"
        )
    return decibel(scores)


def _overlap(first: Doubles, second: Doubles) -> float:
    shared = min(first.max(), second.max()) - max(first.min(), second.min())
    return float(shared / (max(first.max(), second.max()) - min(first.min(), second.min())))
