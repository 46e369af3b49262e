"""Convert arguments that stand for numbers: those of Python, NumPy and PyTorch, fractions and decimals."""

from __future__ import annotations

import math
from decimal import Decimal
from numbers import Real
from typing import Any

from ..errors import OptionError
from .limits import LARGEST_NUMBER, abbreviated


def plain_value(value: object) -> Any:
    """Return the value of an array or a tensor without axes, or of a scalar of NumPy; anything else as it is."""
    has_value = getattr(value, "ndim", None) == 0 and hasattr(value, "item")
    return value.item() if has_value else value  # type: ignore[attr-defined]


def real_number(name: str, value: Any) -> float:
    """Return a number as a float, or as the int that it is.

    Raises OptionError for a truth value, a text, None, and anything else that is no number.
    """
    # torch.compile traces floats and ints, but no type below, and it has a bug in float() of an int that changes from call to
    # call ("Guard failed on the same frame it was created", PyTorch 2.13).
    if type(value) is float or (type(value) is int and abs(value) < LARGEST_NUMBER):
        return value
    number = plain_value(value)
    if isinstance(number, Real | Decimal) and not isinstance(number, bool):
        try:
            return float(number)
        except (OverflowError, ValueError):  # ValueError: a signalling NaN
            pass
    raise OptionError(f"{name} is {abbreviated(value)}; it must be a number that a float can hold")


def real_numbers(name: str, values: Any) -> tuple[float, ...]:
    """Return numbers as floats. Raises OptionError if they are no sequence of numbers."""
    try:
        entries = tuple(values)
    except TypeError:
        raise OptionError(f"{name} is {abbreviated(values)}; it must be a sequence of numbers") from None
    return tuple([real_number(name, value) for value in entries])


def whole_value(value: object) -> int | None:
    """Return the whole number that a value stands for, also if its type has fractions; None for anything else."""
    number = plain_value(value)
    if isinstance(number, bool) or not isinstance(number, Real | Decimal):
        return None
    try:
        whole: int = math.trunc(number)  # type: ignore[assignment]
    except (OverflowError, ValueError):  # infinite, or NaN
        return None
    return whole if whole == number else None


def integer(name: str, value: object) -> int:
    """Return a whole number as an int. Raises OptionError for anything else."""
    number = whole_value(value)
    if number is None:
        raise OptionError(f"{name} is {abbreviated(value)}; it must be a whole number")
    return number
