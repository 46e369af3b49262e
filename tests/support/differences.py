"""Compares numbers within a tolerance, says precisely what differs, and remembers the largest difference of the run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from .tolerances import Tolerance

_LARGEST: dict[tuple[str, str], tuple[float, float, str]] = {}


def check_number(tolerance: Tolerance, family: str, where: str, got: float | None, expected: float | None) -> None:
    """Fail unless both are missing (None or NaN) or both are there and within the tolerance."""
    missing = [value is None or math.isnan(value) for value in (got, expected)]
    assert missing[0] == missing[1], f"{where}: got {got}, expected {expected}: one of them is missing"
    if got is None or expected is None or missing[0]:
        return
    delta = 0.0 if got == expected else abs(got - expected)
    add([(tolerance.name, family, delta, tolerance.value, where)])
    assert delta <= tolerance.value, f"{where}: got {got!r}, expected {expected!r}, delta {delta:.3g} > {tolerance.value:.3g}"


def check_scores(tolerance: Tolerance, where: str, got: Mapping[str, float], expected: Mapping[str, float | None]) -> None:
    """Fail unless both have the same metrics, each within the tolerance."""
    assert set(got) == set(expected), f"{where}: metrics differ: {sorted(set(got) ^ set(expected))}"
    for name, value in expected.items():
        check_number(tolerance, name.split("_scale")[0], f"{where}, {name}", got[name], value)


def check_array(tolerance: Tolerance, where: str, got: npt.NDArray[Any], expected: npt.NDArray[Any]) -> None:
    """Fail unless the arrays are alike everywhere; the message has the index, both values and the delta of the worst place."""
    assert got.shape == expected.shape, f"{where}: shape {got.shape}, expected {expected.shape}"
    delta = np.abs(got.astype(np.float64) - expected)
    delta[np.isnan(delta)] = np.inf
    index = np.unravel_index(int(delta.argmax()), delta.shape)
    worst = float(delta[index])
    add([(tolerance.name, "", worst, tolerance.value, where)])
    assert worst <= tolerance.value, (
        f"{where}: at {tuple(map(int, index))} got {got[index]!r}, expected {expected[index]!r}, delta {worst:.3g} >"
        f" {tolerance.value:.3g}; {int((delta > tolerance.value).sum())} of {delta.size} differ"
    )


def add(measured: Iterable[tuple[str, str, float, float, str]]) -> None:
    """Remember tolerance and family with the difference, what is allowed, and where it was, if it is the largest of them."""
    for name, family, delta, allowed, where in measured:
        if (name, family) not in _LARGEST or delta > _LARGEST[name, family][0]:
            _LARGEST[name, family] = float(delta), allowed, where


def largest() -> list[tuple[str, str, float, float, str]]:
    """Return the arguments of `add`, for another process."""
    return [(*key, *value) for key, value in _LARGEST.items()]


def summary() -> Iterator[str]:
    """One line for each tolerance and family of metrics that were compared."""
    for (name, family), (delta, allowed, where) in sorted(_LARGEST.items()):
        yield f"{name:34} {family:18} {delta:9.2e} of {allowed:.0e}   {where}"
