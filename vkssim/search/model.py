"""Model a pooled score over the settings of an encoder, and say which setting to try next.

A setting is known by its place, 0 for the best quality, higher for cheaper. A score falls with the place. The model of a score
is a Gaussian process: a straight line whose level and slope are known roughly, a cubic spline around it, and a little noise.
A score far too low for that comes from a damaged stream, and says nothing of other settings. Streams of neighbours may be
damaged alike, so that they do not confirm each other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist

import numpy as np

from ..errors import EncodeError
from ..types import Doubles

ENOUGH = 0.05
"""A setting that meets the targets with a smaller probability than this is not tried."""

_USUAL = 10.0  # trials: the prior's deviations count as much as those of so many trials
# the share of searches with a curve that no model expects, measured in docs/notes/2026-11-29-how-good-a-search-is.md
_ODD = 0.005
_FAR = 25.0  # deviations of a trial, 1 dB of a mean: sound scores rise by less from a setting to a cheaper one
_FAR_OFF = 2.0  # deviations of the forecast: a score may be so much lower than that
_APART = 1.5  # dB by the usual slope: trials that are so far apart are not damaged alike
_MAX_APART = 20  # places, however flat the usual slope is
_CERTAIN = 1e-9  # the least variance of a prediction: rounding must not make it negative


@dataclass(frozen=True)
class Prior:
    """The curves that are expected before the first trial."""

    middle: float
    """The place at which a score of `level` is expected."""
    level: float
    level_deviation: float
    """The standard deviation of the level."""
    slope: float
    """The expected change of the score from one place to the next."""
    slope_deviation: float
    """The standard deviation of the slope."""
    bend: float
    """The standard deviation of the change of the slope over one place."""
    noise: float
    """The standard deviation of a single trial from a smooth curve."""


@dataclass
class SettingCurve:
    """A curve of one target's score over the settings: the scores of trials, and predictions between them."""

    prior: Prior
    limit: float
    """The score of the target, in the unit of the scores."""
    highest: float = math.inf
    """The score that may stand for any higher one."""
    trials: list[tuple[float, float]] = field(default_factory=list)
    """The places of the trials, with their scores."""
    damaged: set[float] = field(default_factory=set)
    """The places of trials that miss the limit with a score far lower than that of a cheaper trial or, if there is none, than
    the forecast. They predict nothing. The next trial may show that the score was sound.
    """

    def add(self, place: float, score: float) -> None:
        """Add the score of a trial. The `highest` score teaches nothing if it, or a higher one, is expected."""
        if score >= self.highest and self.at(place)[0] >= self.highest:
            return
        self.trials.append((place, score))
        self.damaged = self.outdone
        while self.limit < math.inf and (group := self._too_low()):
            self.damaged.update(group)

    @property
    def near(self) -> int:
        """Return the distance in places from which on one trial confirms another."""
        return max(2, min(math.ceil(_APART / abs(self.prior.slope)), _MAX_APART))

    @property
    def outdone(self) -> set[float]:
        """Return the places of the trials that miss the limit although a cheaper one has a far higher score."""
        outdone: set[float] = set()
        highest = -math.inf
        for place, score in sorted(self.trials, reverse=True):
            if score < min(highest - _FAR * self.prior.noise, self.limit):
                outdone.add(place)
            highest = max(highest, score)
        return outdone

    def _too_low(self) -> list[float]:
        """Return the places of one trial, or of two neighbours, whose scores the other trials do not let expect; [] if none."""
        trials = sorted((trial for trial in self.trials if trial[0] not in self.damaged), reverse=True)
        for length in (1, 2):
            for first in range(len(trials) - length + 1):
                group, rest = trials[first : first + length], [*trials[:first], *trials[first + length :]]
                places = [place for place, _ in group]
                if places[0] - places[-1] >= self.near or any(score >= self.limit for _, score in group):
                    continue
                without = replace(self, trials=rest, damaged=set())
                means, deviations, surprise = without._forecast(places)
                off = _FAR_OFF * np.hypot(deviations, self.prior.noise) * surprise + _FAR * self.prior.noise
                if all(score < least for (_, score), least in zip(group, means - off, strict=True)):
                    return places
        return []

    def _sound(self) -> tuple[Doubles, Doubles, Doubles]:
        """Return the places of the undamaged trials, how far their scores are off the line, and the covariance."""
        sound = [(place, score) for place, score in self.trials if place not in self.damaged]
        places, scores = np.array([place for place, _ in sound]), np.array([score for _, score in sound])
        own: Doubles = self._covariance(places[:, None], places) + self.prior.noise**2 * np.eye(len(places))
        return places, scores - self._line(places), own

    def predict(self, places: Sequence[float]) -> tuple[Doubles, Doubles]:
        """Return the expected score at each place, and its standard deviation without the noise of a trial."""
        mean, deviation, _ = self._forecast(places)
        return mean, deviation

    def _forecast(self, places: Sequence[float]) -> tuple[Doubles, Doubles, float]:
        """Return the results of `predict`, and the factor by which deviations are too small: some encoders are less smooth."""
        at = np.asarray(places, np.float64)
        mean, variance = self._line(at), self._covariance(at, at)
        tried, off, own = self._sound()
        between = self._covariance(at[:, None], tried)
        solved = np.linalg.solve(own, np.column_stack([between.T, off]))
        weights = solved[:, :-1].T
        deviation: Doubles = np.sqrt(np.maximum(variance - np.sum(weights * between, axis=1), _CERTAIN))
        surprise = math.sqrt((_USUAL + float(off @ solved[:, -1])) / (_USUAL + len(tried)))
        return mean + weights @ off, deviation, surprise

    def at(self, place: float) -> tuple[float, float]:
        """Return the expected score at one place, and its standard deviation; see `predict`."""
        (mean,), (deviation,) = self.predict([place])
        return float(mean), float(deviation)

    def probabilities(self, places: Sequence[float]) -> Doubles:
        """Return how probable it is that a trial at each place reaches the limit."""
        mean, deviation, surprise = self._forecast(places)
        deviation = np.hypot(deviation, self.prior.noise) * surprise
        return np.array([NormalDist().cdf(value) for value in (mean - self.limit) / deviation])

    def slope(self, place: float) -> float:
        """Return the expected change of the score from a place to the next one: negative, and never quite 0."""
        mean, _ = self.predict([place - 0.5, place + 0.5])
        return min(float(mean[1] - mean[0]), self.prior.slope / 10)

    def around(self, place: int, deviation: float, slope_spread: float) -> SettingCurve:
        """Return a curve without trials that expects what this one has learned about a place, from frames like these.

        `deviation` is how far the level may be off, and `slope_spread` how far the slope, in parts of it.
        """
        (level, own), slope = self.at(place), self.slope(place)
        level_deviation, slope_deviation = math.hypot(own, deviation), abs(slope) * slope_spread
        prior = Prior(float(place), level, level_deviation, slope, slope_deviation, self.prior.bend, self.prior.noise)
        return SettingCurve(prior, self.limit, self.highest)

    def _line(self, places: Doubles) -> Doubles:
        return np.asarray(self.prior.level + self.prior.slope * (places - self.prior.middle), np.float64)

    def _covariance(self, first: Doubles, second: Doubles) -> Doubles:
        """Return the covariance of the scores at places that broadcast: level, slope, and an integrated Wiener process.

        The process starts at `middle` and runs to both sides of it.
        """
        left, right = first - self.prior.middle, second - self.prior.middle
        near = np.minimum(np.abs(left), np.abs(right))
        spline = np.where(left * right > 0, near * near * (near / 3 + np.abs(left - right) / 2), 0.0)
        line = self.prior.level_deviation**2 + self.prior.slope_deviation**2 * left * right
        return np.asarray(line + self.prior.bend**2 * spline, np.float64)


class SettingsModel:
    """The trials of the settings from 0 to `count` - 1, and the choice of the next one.

    There is one curve for each target; a setting meets the targets if every score reaches its limit. Curves are correlated,
    so the probability that a setting meets them all is taken to be the smallest of their probabilities.
    """

    def __init__(self, count: int, curves: Sequence[SettingCurve]) -> None:
        self.count = count
        self.curves = list(curves)
        self.tried: dict[int, bool] = {}
        self.unusable: dict[int, EncodeError] = {}

    def add(self, place: int, scores: Sequence[float], *, meets: bool) -> None:
        """Add a trial with its score for each curve. A score that does not exist teaches no curve."""
        self.tried[place] = meets
        for curve, score in zip(self.curves, scores, strict=True):
            if math.isfinite(score):
                curve.add(place, score)

    def drop(self, place: int, error: EncodeError) -> None:
        """Note the error of a setting that cannot be used: it meets no target, and shows nothing about other settings."""
        self.unusable[place] = error
        self.tried.pop(place, None)

    @property
    def damaged(self) -> list[int]:
        """Return the settings whose score is far too low for the scores of other settings; see `SettingCurve`."""
        return sorted(place for place in self.tried if any(place in curve.damaged for curve in self.curves))

    @property
    def outdone(self) -> list[int]:
        """Return the settings of `damaged` whose damage a cheaper setting proves: an encoder may also get worse all at once."""
        return sorted(place for place in self.tried if any(place in curve.outdone for curve in self.curves))

    @property
    def failed(self) -> list[int]:
        """Return the settings that missed the targets, so that no cheaper one is expected to meet them."""
        damaged = self.damaged
        return [place for place, meets in self.tried.items() if not meets and place not in damaged]

    @property
    def best(self) -> int | None:
        """Return the cheapest setting that met the targets; None if none did."""
        return max((place for place, meets in self.tried.items() if meets), default=None)

    def probabilities(self) -> Doubles:
        """Return how probable it is that each setting meets all targets, 0 or 1 after a trial of it.

        Far from the trials a curve is uncertain. But a setting is at least as good as each cheaper setting. So if a cheaper
        setting probably meets the targets, it probably does too, and if a better setting probably misses them, so does it.
        """
        chances = self._alone()
        rather = chances >= 0.5
        least = np.maximum.accumulate(np.where(rather, chances, 0.0)[::-1])[::-1]
        most = np.minimum.accumulate(np.where(rather, 1.0, chances))
        chances = np.where(rather, least, most)
        chances[list(self.tried)] = list(self.tried.values())
        chances[list(self.unusable)] = 0.0
        return chances

    def _alone(self) -> Doubles:
        """Return how probable it is that a trial of each setting meets all targets, whatever other trials say."""
        return np.asarray(np.min([curve.probabilities(range(self.count)) for curve in self.curves], axis=0), np.float64)

    def _untried(self) -> list[int]:
        """Return the settings without a trial that are cheaper than the answer, those beyond one that failed among them."""
        first = 0 if self.best is None else self.best + 1
        return [place for place in range(first, self.count) if place not in self.tried and place not in self.unusable]

    def _open(self) -> list[int]:
        """Return the settings without a trial between the answer and the first one beyond it that failed."""
        low = -1 if self.best is None else self.best
        high = min((place for place in self.failed if place > low), default=self.count)
        return [place for place in self._untried() if place < high]

    def between(self) -> int | None:
        """Return the only setting between the answer and the first one beyond it that failed; None if it is not one."""
        places, best = self._open(), self.best
        failed = best is not None and any(place > best for place in self.failed)
        return places[0] if failed and len(places) == 1 else None

    def next(self) -> int | None:
        """Return the setting whose trial teaches most, or None if no other setting is worth a trial.

        A trial says yes or no, which teaches most if both are equally probable. A setting cheaper than the answer is worth a
        trial if it meets the targets with a probability of ENOUGH, or if it is the only one between the answer and one that
        failed. Without an answer the best quality is tried last; if it fails narrowly, other settings may still meet the
        targets.
        """
        # A cheapest trial that seems damaged is compared with one so much cheaper that it is not damaged in the same way.
        doubted = {*self.damaged, *(() if self.tried else self.unusable)}
        cheapest = max([*self.tried, *doubted], default=-1)
        check = cheapest + max(curve.near for curve in self.curves)
        if cheapest in doubted and check < self.count and check not in self.unusable:
            return check
        places, chances = self._open(), self.probabilities()
        worth = [place for place in places if chances[place] >= ENOUGH]
        if worth:
            return min(worth, key=lambda place: (abs(chances[place] - 0.5), -place))  # of those that are sure, the cheapest
        if self.best is not None:
            return self.between()
        # A setting after one that failed beside damaged or unusable ones: that may have suffered as well.
        bad = {*self.damaged, *self.unusable}
        after = [place + 1 for place in sorted(self.failed) if place - 1 in bad]
        edges = [place for place in after if place < self.count and place not in {*self.tried, *bad}]
        # Those that probably meet the targets although a better one failed.
        alone = self._alone()
        farther = sorted((place for place in self._untried() if alone[place] >= ENOUGH), key=lambda place: -alone[place])
        return next(iter([*places, *edges, *farther]), None)

    def likely(self) -> int | None:
        """Return the cheapest setting that meets the targets rather than not, among those better than each that failed.

        If there is none, it is the setting that `next` returns.
        """
        low, chances = min(self.failed, default=self.count), self.probabilities()
        rather = [place for place in range(low) if place not in self.tried and chances[place] >= 0.5]
        return max(rather, default=self.next())

    def certainty(self) -> float:
        """Return how probable it is that no cheaper setting than the answer meets the targets, as trials would see it.

        Scores need not fall from each setting to the next, so those beyond one that failed count as well.
        """
        rest = self._untried()
        return float(1 - self._alone()[rest].max()) * (1 - _ODD) if rest else 1.0
