"""Demands on the pooled scores, such as `float_ms_ssim:p5=0.95`."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from .errors import OptionError
from .limits import check_option
from .results import PERCENTILES, ScoreReport

POOLINGS = {
    **{name: name for name in ("mean", "harmonic_mean", "min", "max", "mean_db")},
    **{f"p{rank}": f"percentile_{rank}" for rank in PERCENTILES},
}
"""What can be demanded, by the name it has in a demand; the values are the keys of `ScoreReport.pooled`."""


@dataclass(frozen=True)
class Demand:
    """A pooled value of a score has to be `limit` or more."""

    name: str
    pooling: str
    limit: float


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
    """A demand of the form ``NAME=LIMIT`` or ``NAME:POOLING=LIMIT``; the mean where no pooling is named. Raises OptionError."""
    name, pooling, limit = split_demand(text)
    if not name or not math.isfinite(limit):
        raise OptionError(f"--fail-under {text!r} is not of the form NAME=LIMIT or NAME:POOLING=LIMIT, LIMIT a number")
    if pooling is None:
        pooling = "mean"
    if pooling not in POOLINGS:
        raise OptionError(f"--fail-under {text!r}: unknown pooling {pooling!r}; there are {', '.join(POOLINGS)}")
    return Demand(name, pooling, limit)


def check_names(demands: Sequence[Demand], names: Collection[str], similarities: Collection[str]) -> None:
    """Raise OptionError for a demand on what is not scored, or on the dB of what has none."""
    for demand in demands:
        if demand.name not in names:
            raise OptionError(f"--fail-under: {demand.name} is not scored; there are {', '.join(names)}")
        if demand.pooling == "mean_db" and demand.name not in similarities:
            raise OptionError(
                f"--fail-under: {demand.name} has no mean_db: only a metric itself has, unless it is in dB already"
            )


@dataclass(frozen=True)
class Verdict:
    """What a report says to a demand: `value` is the pooled score, NaN where the report has none."""

    demand: Demand
    value: float

    @property
    def met(self) -> bool:
        """True where the value reaches the limit; a value that does not exist meets no demand."""
        return self.value >= self.demand.limit


def verdicts(demands: Sequence[Demand], report: ScoreReport) -> list[Verdict]:
    """Return the verdict of a report on each demand, in their order."""
    pooled = report.pooled() if demands else {}
    return [Verdict(demand, pooled.get(demand.name, {}).get(POOLINGS[demand.pooling], math.nan)) for demand in demands]


def unmet(demands: Sequence[Demand], report: ScoreReport) -> list[str]:
    """Return a sentence for each demand that the report does not meet."""
    failed = []
    for verdict in verdicts(demands, report):
        if not verdict.met:
            demand, value = verdict.demand, verdict.value
            got = "null" if math.isnan(value) else f"{value:.9g}"
            failed.append(f"{demand.pooling} of {demand.name} is {got}, the limit is {demand.limit:.9g} (--fail-under)")
    return failed
