"""Demands on the pooled scores, such as `float_ms_ssim:p5=0.95`."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ..errors import OptionError
from ..utils.limits import check_option
from ..utils.wording import did_you_mean
from .results import PERCENTILES, ScoreReport

POOLINGS = ("mean", "harmonic_mean", "min", "max", "mean_db", *(f"p{rank}" for rank in PERCENTILES))
"""The pooled values that can be demanded: keys of `ScoreReport.pooled`."""


@dataclass(frozen=True)
class Demand:
    """A pooled value of a score has to be `limit` or more; with None for a limit it only has to be there.

    `parameter` is the name of what asked for it, for messages.
    """

    name: str
    pooling: str
    limit: float | None
    parameter: str = "fail_under"

    def value(self, report: ScoreReport) -> float:
        """Return the value that it is about."""
        return report.pooled()[self.name][self.pooling]


def split_demand(text: str) -> tuple[str, str | None, float]:
    """``NAME=X`` or ``NAME:POOLING=X`` in its parts: no pooling is None, an X that is no number NaN."""
    check_option("a demand", text)
    left, _, right = text.rpartition("=")
    name, colon, pooling = left.partition(":")
    try:
        value = float(right)
    except ValueError:
        value = math.nan
    return name, pooling if colon else None, value


def parse_demand(text: str) -> Demand:
    """Return a demand of the form ``NAME=LIMIT`` or ``NAME:POOLING=LIMIT``; the mean where no pooling is named.

    Raises OptionError.
    """
    name, pooling, limit = split_demand(text)
    if not name or not math.isfinite(limit):
        raise OptionError(f"`fail_under` {text!r} is not of the form NAME=LIMIT or NAME:POOLING=LIMIT, LIMIT a number")
    return Demand(name, _pooling(pooling, f"`fail_under` {text!r}"), limit)


def parse_pooled(text: str, parameter: str = "pooled") -> Demand:
    """Return what ``NAME`` or ``NAME:POOLING`` names, the mean where no pooling is named. Raises OptionError."""
    check_option(f"`{parameter}`", text)
    name, colon, pooling = text.partition(":")
    if not name or "=" in text:
        raise OptionError(f"`{parameter}` {text!r} is not of the form NAME or NAME:POOLING")
    return Demand(name, _pooling(pooling if colon else None, f"`{parameter}` {text!r}"), None, parameter)


def _pooling(name: str | None, where: str) -> str:
    """Return the name of a pooling, the mean where none is named. Raises OptionError for one that there is not."""
    if name is None:
        return "mean"
    if name in POOLINGS:
        return name
    meant = " (did you mean p50?)" if name == "median" else did_you_mean(name.replace("percentile", "p"), POOLINGS)
    raise OptionError(f"{where}: unknown pooling {name!r}{meant}; there are {', '.join(POOLINGS)}")


def check_names(demands: Sequence[Demand], names: Collection[str], similarities: Collection[str]) -> None:
    """Raise OptionError for a demand on what is not scored, or on the dB of what has none."""
    for demand in demands:
        if demand.name not in names:
            meant = did_you_mean(demand.name, names)
            raise OptionError(f"`{demand.parameter}`: {demand.name} is not scored{meant}; there are {', '.join(names)}")
        if demand.pooling == "mean_db" and demand.name not in similarities:
            raise OptionError(
                f"`{demand.parameter}`: {demand.name} has no mean_db: only a metric itself has, unless it is in dB already"
            )


@dataclass(frozen=True)
class Verdict:
    """What a report says to a demand: `value` is the pooled score, NaN where the report has none, `limit` the demand's."""

    demand: Demand
    value: float
    limit: float

    @property
    def met(self) -> bool:
        """Return True where the value reaches the limit; a value that does not exist meets no demand."""
        return self.value >= self.limit


def verdicts(demands: Sequence[Demand], report: ScoreReport) -> list[Verdict]:
    """Return the verdict of a report on each demand that has a limit, in their order."""
    return [Verdict(demand, demand.value(report), demand.limit) for demand in demands if demand.limit is not None]


def unmet(demands: Sequence[Demand], report: ScoreReport) -> list[str]:
    """Return a sentence for each demand that the report does not meet."""
    failed = []
    for verdict in verdicts(demands, report):
        if not verdict.met:
            demand, value = verdict.demand, verdict.value
            got = "null" if math.isnan(value) else f"{value:.9g}"
            failed.append(f"{demand.pooling} of {demand.name} is {got}, the limit is {verdict.limit:.9g} (`fail_under`)")
    return failed
