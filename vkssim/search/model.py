"""Model a pooled score over the settings of an encoder, and say which setting to try next.

A setting is known by its place, 0 for the best quality, higher for cheaper. A score falls with the place. The model of a score
is a Gaussian process: a straight line whose level and slope are known roughly, a cubic spline around it, and a little noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..types import Doubles

ENOUGH = 0.05
"""A setting that meets the targets with a smaller probability than this is not tried."""

_CERTAIN = 1e-9  # the least variance of a prediction: rounding must not make it negative


@dataclass(frozen=True)
class Prior:
    """Describe the curves that are expected before the first trial.

    Parameters
    ----------
    middle : float
        The place at which `level` is expected.
    level, level_deviation : float
        The score there, and its standard deviation.
    slope, slope_deviation : float
        The change of the score from one place to the next, and its standard deviation.
    bend : float
        The standard deviation of the change of the slope over one place.
    noise : float
        The standard deviation of a single trial from a smooth curve.

    """

    middle: float
    level: float
    level_deviation: float
    slope: float
    slope_deviation: float
    bend: float
    noise: float


@dataclass
class Curve:
    """Hold the scores of one target that trials have measured, and predict the others.

    `limit` is the score that the target asks for, in the unit of the scores. A score of `highest` may be any higher one.
    """

    prior: Prior
    limit: float
    highest: float = math.inf
    places: list[float] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)

    def add(self, place: float, score: float) -> None:
        """Add the score of a trial. The `highest` one teaches nothing where it is expected, or a higher one."""
        if score >= self.highest and float(self.predict([place])[0][0]) >= self.highest:
            return
        self.places.append(place)
        self.scores.append(score)

    def predict(self, places: Sequence[float]) -> tuple[Doubles, Doubles]:
        """Return the expected score at each place, and its standard deviation without the noise of a trial."""
        asked = np.asarray(places, np.float64)
        mean = self._line(asked)
        covariance = self._covariance(asked, asked)
        if self.places:
            tried = np.array(self.places)
            between = self._covariance(asked, tried)
            own = self._covariance(tried, tried) + self.prior.noise**2 * np.eye(len(tried))
            weights = np.linalg.solve(own, between.T).T
            mean = mean + weights @ (np.array(self.scores) - self._line(tried))
            covariance = covariance - weights @ between.T
        deviation: Doubles = np.sqrt(np.maximum(np.diag(covariance), _CERTAIN))
        return mean, deviation

    def probabilities(self, places: Sequence[float]) -> Doubles:
        """Return how probable it is that a trial at each place reaches the limit."""
        mean, deviation = self.predict(places)
        deviation = np.hypot(deviation, self.prior.noise)
        found: Doubles = np.array([normal_cdf(value) for value in (mean - self.limit) / deviation])
        return found

    def slope(self, place: float) -> float:
        """Return the expected change of the score from a place to the next one: negative, and never quite 0."""
        mean, _ = self.predict([place - 0.5, place + 0.5])
        return min(float(mean[1] - mean[0]), self.prior.slope / 10)

    def around(self, place: int, deviation: float, slope_spread: float) -> Curve:
        """Return a curve without trials that expects what this one has learned about a place, from frames like these.

        `deviation` is how far the level may be off, and `slope_spread` how far the slope, in parts of it.
        """
        mean, own = self.predict([place])
        slope = self.slope(place)
        prior = replace(
            self.prior,
            middle=float(place),
            level=float(mean[0]),
            level_deviation=math.hypot(float(own[0]), deviation),
            slope=slope,
            slope_deviation=abs(slope) * slope_spread,
        )
        return Curve(prior, self.limit, self.highest)

    def _line(self, places: Doubles) -> Doubles:
        line: Doubles = self.prior.level + self.prior.slope * (places - self.prior.middle)
        return line

    def _covariance(self, first: Doubles, second: Doubles) -> Doubles:
        """Return the covariance of the scores at two lists of places: level, slope, and an integrated Wiener process.

        The process starts at `middle` and runs to both sides of it, so that the line is what is expected there.
        """
        one, other = (array - self.prior.middle for array in (first[:, None], second[None, :]))
        near = np.minimum(np.abs(one), np.abs(other))
        spline = np.where(one * other > 0, near**3 / 3 + near**2 * np.abs(one - other) / 2, 0.0)
        line = self.prior.level_deviation**2 + self.prior.slope_deviation**2 * one * other
        covariance: Doubles = line + self.prior.bend**2 * spline
        return covariance


def normal_cdf(value: float) -> float:
    """Return the probability that a normal variable of mean 0 and deviation 1 is at most `value`."""
    return 0.5 * math.erfc(-value / math.sqrt(2))


class Settings:
    """Follow the trials of the settings from 0 to `count` - 1, and choose the next one.

    There is one curve for each target; a setting meets the targets where every score reaches its limit. Curves are correlated,
    so the probability that a setting meets them all is taken to be the smallest of theirs.
    """

    def __init__(self, count: int, curves: Sequence[Curve]) -> None:
        self.count = count
        self.curves = list(curves)
        self.tried: dict[int, bool] = {}

    def add(self, place: int, scores: Sequence[float], *, meets: bool) -> None:
        """Add a trial with its score for each curve. A score that does not exist teaches no curve."""
        self.tried[place] = meets
        for curve, score in zip(self.curves, scores, strict=True):
            if math.isfinite(score):
                curve.add(place, score)

    @property
    def best(self) -> int | None:
        """Return the cheapest setting that met the targets; None where none did."""
        return max((place for place, meets in self.tried.items() if meets), default=None)

    def probabilities(self) -> Doubles:
        """Return how probable it is that each setting meets all targets, 0 or 1 where a trial said so.

        Far from the trials a curve is uncertain. But a setting is as good as each cheaper one, so what is probable of that is
        probable of it as well, and what is improbable of a better one is improbable of it.
        """
        found: Doubles = np.min(np.stack([curve.probabilities(range(self.count)) for curve in self.curves]), axis=0)
        rather = found >= 0.5
        least = np.maximum.accumulate(np.where(rather, found, 0.0)[::-1])[::-1]
        most = np.minimum.accumulate(np.where(rather, 1.0, found))
        found = np.where(rather, least, most)
        for place, meets in self.tried.items():
            found[place] = float(meets)
        return found

    def next(self) -> int | None:
        """Return the setting whose trial teaches most, None where no other setting is worth a trial.

        A trial says yes or no, which teaches most where both are equally probable. A setting cheaper than the answer is worth
        a trial where it meets the targets with a probability of ENOUGH. Without an answer the best quality is tried last.
        """
        best = self.best
        low = -1 if best is None else best
        high = min((place for place, meets in self.tried.items() if not meets and place > low), default=self.count)
        found = self.probabilities()
        open_places = [place for place in range(low + 1, high) if place not in self.tried]
        worth = [place for place in open_places if found[place] >= ENOUGH]
        if best is None and not worth:
            worth = open_places[:1]
        return min(
            worth, key=lambda place: (abs(found[place] - 0.5), -place), default=None
        )  # of those that are sure, the cheapest

    def likely(self) -> int | None:
        """Return the cheapest setting that meets the targets rather than not, among those better than each that failed.

        Where there is none, it is what `next` returns.
        """
        low = min((place for place, meets in self.tried.items() if not meets), default=self.count)
        found = self.probabilities()
        open_places = [place for place in range(low) if place not in self.tried and found[place] >= 0.5]
        return max(open_places, default=self.next())

    def certainty(self) -> float:
        """Return how probable it is that no cheaper setting than the answer meets the targets, as trials would see it."""
        best = self.best
        low = -1 if best is None else best
        failed = [place for place, meets in self.tried.items() if not meets and place > low]
        rest = self.probabilities()[low + 1 : min(failed, default=self.count)]
        return float(1 - rest.max(initial=0.0))
