"""Measure how well scores predict opinions: correlations and the error of a fit, with confidence intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from ..errors import InputError
from ..types import Doubles
from ..utils.version import require_extra
from ..utils.wording import counted

MIN_PAIRS = 6

_PARAMETERS = 4
_CONFIDENCE = 0.95
# Bounds of the fit, in standard deviations: how far its middle may lie beyond the scores, and its smallest and largest width.
_REACH, _NARROWEST, _WIDEST = 3.0, 0.01, 100.0
# The squared variation below which a rise of 0..1 is the same at all scores, but for rounding.
_NO_RISE = 1e-28


@dataclass(frozen=True)
class Estimate:
    """A value and its 95 % confidence interval; NaN if there is none."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Correlation:
    """The correlation of scores and opinions. All but `plcc` and `rmse` are negative if opinions fall as quality rises."""

    pairs: int
    """The number of scores and opinions."""
    plcc: Estimate
    """Pearson's correlation of the opinions with the fitted scores."""
    plcc_raw: Estimate
    """Pearson's correlation with the scores themselves, as in papers that do not fit."""
    srocc: Estimate
    """Spearman's correlation with the scores."""
    krocc: Estimate
    """Kendall's correlation with the scores (tau-b)."""
    rmse: Estimate
    """The error of the fit in units of the opinions."""
    fit: tuple[float, ...]
    """The four parameters of `logistic`."""


def logistic(scores: Doubles, best: float, worst: float, middle: float, width: float) -> Doubles:
    """Return the monotonic logistic function with four parameters of VQEG's FR-TV Phase I report (2000).

    worst + (best - worst) / (1 + exp(-(scores - middle) / |width|))
    """
    from scipy.special import expit

    with np.errstate(over="ignore"):
        steps = (scores - middle) / max(abs(width), np.finfo(np.float64).tiny)
    return np.asarray(worst + (best - worst) * expit(steps), np.float64)


def correlate(scores: Doubles, opinions: Doubles) -> Correlation:
    """Return the correlation of scores with mean opinions, both (pairs,), finite.

    Intervals: PLCC, before and after the fit, uses Fisher's z. SROCC uses z with the variance (1 + r²/2) / (N - 3) of Bonett
    and Wright (2000). KROCC uses z with the variance 0.437 / (N - 4) of Fieller, Hartley and Pearson (1957). RMSE uses
    chi-squared with N - 4 degrees of freedom, as in ITU-T P.1401. Raises InputError if there are fewer than MIN_PAIRS pairs,
    or if all scores or all opinions are equal.
    """
    stats = require_extra("scipy.stats", "report", "a correlation")
    count = len(scores)
    if count < MIN_PAIRS:
        raise InputError(f"{counted(count, 'pair')}; a fit of {_PARAMETERS} parameters and its error need {MIN_PAIRS} or more")
    for what, values in (("scores", scores), ("opinions", opinions)):
        if np.ptp(values) == 0:
            raise InputError(f"all {what} are {values[0]:g}; equal values cannot be correlated")

    fit = _fit(scores, opinions)
    fitted = logistic(scores, *fit)
    plcc, plcc_raw = (float(np.corrcoef(values, opinions)[0, 1]) for values in (fitted, scores))
    srocc = float(stats.spearmanr(scores, opinions).statistic)
    krocc = float(stats.kendalltau(scores, opinions).statistic)

    freedom = count - _PARAMETERS
    squares = float(np.sum((fitted - opinions) ** 2))
    edges = [math.sqrt(squares / stats.chi2.ppf(share, freedom)) for share in ((1 + _CONFIDENCE) / 2, (1 - _CONFIDENCE) / 2)]
    return Correlation(
        count,
        _by_fisher(plcc, 1 / (count - 3)),
        _by_fisher(plcc_raw, 1 / (count - 3)),
        _by_fisher(srocc, (1 + srocc**2 / 2) / (count - 3)),
        _by_fisher(krocc, 0.437 / (count - 4)),
        Estimate(math.sqrt(squares / freedom), *edges),
        fit,
    )


def _fit(scores: Doubles, opinions: Doubles) -> tuple[float, float, float, float]:
    """Return the parameters of `logistic` with the least squared error.

    For a given middle and width, the best `best` and `worst` are a linear regression. The bounds of middle and width handle
    opinions on a straight line, whose logistic function has no finite ends. The sine keeps to them, because MINPACK, which
    searches, has no bounds: any angle is allowed.
    """
    from scipy.optimize import least_squares
    from scipy.special import expit

    centre, spread = float(np.mean(scores)), float(np.std(scores))
    steps = (scores - centre) / spread
    mean = float(np.mean(opinions))
    rest = opinions - mean

    low = np.array([steps.min() - _REACH, math.log(_NARROWEST)])
    high = np.array([steps.max() + _REACH, math.log(_WIDEST)])
    between, reach = (low + high) / 2, (high - low) / 2

    def shape(angles: Doubles) -> tuple[float, float]:
        middle, log_width = between + reach * np.sin(angles)
        return float(middle), math.exp(log_width)

    def regress(rise: Doubles) -> tuple[Doubles, float, float]:
        varied = rise - rise.mean()
        squares = float(varied @ varied)
        return varied, squares, float(varied @ rest) / squares if squares > _NO_RISE else 0.0

    def errors(angles: Doubles) -> Doubles:
        middle, width = shape(angles)
        varied, _, gain = regress(expit((steps - middle) / width))
        return np.asarray(gain * varied - rest)

    def derivatives(angles: Doubles) -> Doubles:
        middle, width = shape(angles)
        offsets = (steps - middle) / width
        rise = expit(offsets)
        varied, squares, gain = regress(rise)
        if gain == 0:
            return np.zeros((len(steps), 2))
        slope = rise * (1 - rise)
        change = np.stack([-slope / width, -slope * offsets], 1) * (reach * np.cos(angles))
        change -= change.mean(0)
        return np.asarray(gain * change + np.outer(varied, (rest @ change - 2 * gain * (varied @ change)) / squares))

    starts = [(middle, math.log(width)) for middle in np.quantile(steps, (0.2, 0.8)) for width in (0.1, 1.0)]
    searches = [least_squares(errors, np.arcsin((start - between) / reach), derivatives, method="lm") for start in starts]
    middle, width = shape(min(searches, key=lambda search: float(search.cost)).x)
    rise = expit((steps - middle) / width)
    gain = regress(rise)[2]
    worst = mean - gain * float(rise.mean())
    return worst + gain, worst, middle * spread + centre, width * spread


def _by_fisher(value: float, variance: float) -> Estimate:
    """Return the interval by Fisher's z = artanh(r), treated as normal with that variance."""
    if abs(value) >= 1:
        return Estimate(value, value, value)
    reach = NormalDist().inv_cdf((1 + _CONFIDENCE) / 2) * math.sqrt(variance)
    return Estimate(value, math.tanh(math.atanh(value) - reach), math.tanh(math.atanh(value) + reach))
