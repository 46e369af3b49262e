"""Format the numbers of a report."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ..errors import OptionError
from ..utils.limits import abbreviated, whole_number

_MAX_DECIMALS = 17


@dataclass(frozen=True)
class NumberFormat:
    """Format numbers with this number of decimals, or for None as the shortest text that reads back to the same double."""

    decimals: int | None

    @classmethod
    def parse(cls, precision: str) -> NumberFormat:
        """Return the format for ``"max"`` or a number of decimals. Raises OptionError."""
        if precision == "max":
            return cls(None)
        decimals = whole_number(precision)
        if decimals is not None and decimals <= _MAX_DECIMALS:
            return cls(decimals)
        raise OptionError(
            f"precision is {abbreviated(precision)}; it must be max or a number of decimals, 0 to {_MAX_DECIMALS}"
        )

    def text(self, value: float, missing: str) -> str:
        """Return the number as text, or `missing` if it is NaN or infinite."""
        if not math.isfinite(value):
            return missing
        return repr(value) if self.decimals is None else f"{value:.{self.decimals}f}"

    def number(self, value: float) -> float | None:
        """Return the rounded number for JSON, or None if it is NaN or infinite."""
        if not math.isfinite(value):
            return None
        return value if self.decimals is None else round(value, self.decimals)


def told_apart(value: float, limit: float | None, digits: int = 6, kind: str = "f") -> str:
    """Return a number with `digits` digits of a format, or as many more as tell it from a limit; without the sign of a zero."""
    texts = (f"{value:z.{count}{kind}}" for count in range(digits, _MAX_DECIMALS + 1))
    if limit is None or value == limit or not (math.isfinite(value) and math.isfinite(limit)):
        return next(texts)
    limits = (f"{limit:z.{count}{kind}}" for count in range(digits, _MAX_DECIMALS + 1))
    return next((text for text, rounded_limit in zip(texts, limits, strict=True) if text != rounded_limit), repr(value))


def shortest(value: float) -> str:
    """Return a number as the shortest text that reads back to the same double, a whole one without decimals."""
    return repr(value).removesuffix(".0")


def percent(probability: float) -> str:
    """Return a probability in percent, rounded down, so that none looks larger than it is."""
    whole = math.floor(100 * probability)
    return "> 99 %" if whole >= 99 else f"{whole} %"


def time_code(seconds: float | None) -> str:
    """Return hours, minutes, seconds and milliseconds; empty if the time is unknown."""
    if seconds is None or not math.isfinite(seconds):
        return ""
    thousandths = round(abs(seconds) * 1000)
    minutes, rest = divmod(thousandths, 60_000)
    text = f"{minutes // 60:02d}:{minutes % 60:02d}:{rest // 1000:02d}.{rest % 1000:03d}"
    return "-" + text if seconds < 0 and thousandths else text


def finite(data: Any) -> Any:
    """Return nested dicts and sequences in which None replaces every number that is NaN or infinite, for JSON."""
    if isinstance(data, dict):
        return {key: finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data
