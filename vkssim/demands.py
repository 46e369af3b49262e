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


def unmet(demands: Sequence[Demand], report: ScoreReport) -> list[str]:
    """What is said of each demand that the report does not meet; a pooled value that does not exist meets none."""
    pooled = report.pooled() if demands else {}
    failed = []
    for demand in demands:
        value = pooled[demand.name][POOLINGS[demand.pooling]]
        if not value >= demand.limit:
            got = "null" if math.isnan(value) else f"{value:.9g}"
            failed.append(f"{demand.pooling} of {demand.name} is {got}, the limit is {demand.limit:.9g} (--fail-under)")
    return failed
