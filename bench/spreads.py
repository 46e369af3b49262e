"""Measure how far the rounds of a figure lie apart, and compare two figures only if their spreads do not overlap."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

Row = dict[str, Any]

_FEWEST_FOR_QUARTILES = 4


def spread(values: Sequence[float]) -> tuple[float, float]:
    """Return the quartiles of the values; of fewer than four values, the least and the greatest."""
    if len(values) < _FEWEST_FOR_QUARTILES:
        return min(values), max(values)
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high


def measured(values: Sequence[float]) -> Row:
    """Return the `value` and the `range` of a row: the median of rounds, and their spread."""
    return {"value": statistics.median(values), "range": list(spread(values))}


def overlap(first: Sequence[float], second: Sequence[float]) -> bool:
    """Return whether two ranges, each (lower end, upper end), have a number in common."""
    return max(first[0], second[0]) <= min(first[1], second[1])


def compared(first: Mapping[str, Any], second: Mapping[str, Any], unit: str, factor: float = 1.0) -> Row:
    """Return `value` and `unit` of a row: how many times the second figure the first one is, times a factor.

    The figures are rows with `value`, `range` and the same unit. If their ranges overlap, either may be the larger one in
    truth: then the row has a `text` with both ranges, and no value.
    """
    if overlap(first["range"], second["range"]):
        return {"text": overlapping(first["range"], second["range"], first["unit"])}
    return {"value": factor * first["value"] / second["value"], "unit": unit}


def overlapping(first: Sequence[float], second: Sequence[float], unit: str) -> str:
    """Return the sentence that takes the place of a ratio."""
    return f"spreads overlap: {_ends(first)} and {_ends(second)} {unit}"


def _ends(ends: Sequence[float]) -> str:
    return f"{ends[0]:.4g} to {ends[1]:.4g}"
