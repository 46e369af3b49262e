"""Thresholds on pooled scores, such as `float_ms_ssim:p5=0.95`."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ..errors import OptionError, ThresholdError
from ..utils.limits import check_option
from ..utils.wording import did_you_mean
from .numbers import shortest, told_apart
from .results import PERCENTILES, ScoreReport

POOLINGS = ("mean", "harmonic_mean", "min", "max", "mean_db", *(f"p{rank}" for rank in PERCENTILES))
"""The pooled values that a threshold can be set on: keys of `ScoreReport.pooled`."""


@dataclass(frozen=True)
class Threshold:
    """The requirement that a pooled value of a score is `limit` or more."""

    name: str
    """The score."""
    pooling: str
    limit: float | None
    """None if the value only has to exist."""
    parameter: str = "fail_under"
    """The parameter that stated the threshold, for messages."""

    @property
    def pooled_name(self) -> str:
        """Return the name of the pooled value, such as ``float_ms_ssim:p5``."""
        return f"{self.name}:{self.pooling}"

    def value(self, report: ScoreReport) -> float:
        """Return the pooled value of a report that the threshold limits."""
        return report.pooled()[self.name][self.pooling]


def split_threshold(text: str) -> tuple[str, str | None, float]:
    """Split ``NAME=X`` or ``NAME:POOLING=X``. A missing pooling is None, and an X that is not a number is NaN."""
    check_option("a demand", text)
    left, _, right = text.rpartition("=")
    name, colon, pooling = left.partition(":")
    try:
        value = float(right)
    except ValueError:
        value = math.nan
    return name, pooling if colon else None, value


def parse_threshold(text: str, parameter: str = "fail_under") -> Threshold:
    """Return a threshold of the form ``NAME=LIMIT``, which limits the mean, or ``NAME:POOLING=LIMIT``. Raises OptionError."""
    name, pooling, limit = split_threshold(text)
    if not name or not math.isfinite(limit):
        raise OptionError(f"`{parameter}` {text!r} is not of the form NAME=LIMIT or NAME:POOLING=LIMIT, LIMIT a number")
    return Threshold(name, _pooling(pooling, f"`{parameter}` {text!r}"), limit, parameter)


def parse_pooled(text: str, parameter: str = "pooled") -> Threshold:
    """Return a threshold without a limit for ``NAME``, which means its mean, or ``NAME:POOLING``. Raises OptionError."""
    check_option(f"`{parameter}`", text)
    name, colon, pooling = text.partition(":")
    if not name or "=" in text:
        raise OptionError(f"`{parameter}` {text!r} is not of the form NAME or NAME:POOLING")
    return Threshold(name, _pooling(pooling if colon else None, f"`{parameter}` {text!r}"), None, parameter)


def _pooling(name: str | None, where: str) -> str:
    """Return the name of a pooling, or ``"mean"`` for None. Raises OptionError for an unknown pooling."""
    if name is None:
        return "mean"
    if name in POOLINGS:
        return name
    meant = " (did you mean p50?)" if name == "median" else did_you_mean(name.replace("percentile", "p"), POOLINGS)
    raise OptionError(f"{where}: unknown pooling {name!r}{meant}. Available poolings: {', '.join(POOLINGS)}")


def check_names(thresholds: Sequence[Threshold], names: Collection[str], similarities: Collection[str]) -> None:
    """Raise OptionError for a threshold on a score that does not exist, or on the ``mean_db`` of a score that has none."""
    for threshold in thresholds:
        if threshold.name not in names:
            meant = did_you_mean(threshold.name, names)
            raise OptionError(
                f"`{threshold.parameter}`: {threshold.name} is not scored{meant}. Available scores: {', '.join(names)}"
            )
        if threshold.pooling == "mean_db" and threshold.name not in similarities:
            raise OptionError(
                f"`{threshold.parameter}`: {threshold.name} has no mean_db: only a metric itself has, unless it is in dB"
                " already"
            )


def check_limits(thresholds: Sequence[Threshold], report: ScoreReport) -> None:
    """Raise ThresholdError if the report does not reach a limit."""
    if failed := unmet(thresholds, report):
        raise ThresholdError("; ".join(failed))


def unmet(thresholds: Sequence[Threshold], report: ScoreReport) -> list[str]:
    """Return a sentence for each threshold whose limit the report does not reach; a value that does not exist reaches none."""
    failed = []
    for threshold in thresholds:
        value, limit = threshold.value(report), threshold.limit
        if limit is not None and not value >= limit:
            got = "null" if math.isnan(value) else told_apart(value, limit, 9, "g")
            failed.append(f"{threshold.pooling} of {threshold.name} is {got}, the limit is {shortest(limit)} (`fail_under`)")
    return failed
