"""The options of a search, and the checks of the arguments that all searches have."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from numbers import Integral, Real
from types import UnionType
from typing import Any, Self, get_args, get_origin, get_type_hints

import numpy as np

from ..errors import OptionError
from ..report.thresholds import Threshold, parse_threshold
from ..utils.progress import Progress

_MAX_SURE = 0.999
"""The largest `sure`: samples prove no more about a clip."""


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """The options of a search, see `search_setting`. Raises OptionError for a value that is not possible."""

    thresholds: Sequence[Threshold]
    """The targets. A ladder has the score that it is made for before them, without a limit."""
    features: Sequence[str] | str = ()
    samples: float | None = None
    """The length of the samples in seconds; None if there are none."""
    sure: float = 0.5
    """The least probability that the whole clip meets the targets; with 0.5 the scores of the samples count as they are."""
    whole: bool = False
    output: str | None = None
    backend: str
    device: str | int | None
    trials: int
    resume: str | os.PathLike[str] | None
    progress: Progress | None

    def __post_init__(self) -> None:
        if not self.thresholds:
            raise OptionError("a search needs a target: `targets` float_ms_ssim:p5=0.98 for instance")
        if self.trials < 1:
            raise OptionError(f"`trials` is {self.trials}; it must be 1 or more")
        if not 0.5 <= self.sure <= _MAX_SURE:
            meaning = "the probability that the whole clip meets the targets"
            raise OptionError(f"`sure` is {self.sure:g}; it must be 0.5 to {_MAX_SURE:g}, {meaning}")
        if self.samples is not None and not 0 < self.samples < math.inf:
            raise OptionError(f"`samples` is {self.samples:g} seconds; it must be a number above 0")

    @classmethod
    def of(cls, arguments: Mapping[str, Any], **more: Any) -> Self:
        """Return the options of a search from the arguments of its function; `more` takes the place of some."""
        return cls(**{option.name: arguments[option.name] for option in fields(cls) if option.name in arguments} | more)

    @property
    def metrics(self) -> list[str]:
        """Return the features to compute: those that are given, or the ones that the targets name."""
        return listed(self.features) or list(dict.fromkeys(threshold.name for threshold in self.thresholds))


def parse_targets(texts: Sequence[str] | str) -> list[Threshold]:
    """Return the thresholds of targets. Raises OptionError for any text that is none."""
    return [parse_threshold(text, "targets") for text in listed(texts)]


def listed(texts: Sequence[str] | str) -> list[str]:
    """Return one text, or several, as a list."""
    return [texts] if isinstance(texts, str) else list(texts)


def check_types(function: Callable[..., Any], arguments: Mapping[str, object]) -> None:
    """Raise OptionError if an argument of a function is not of the type that its signature states."""
    for name, hint in get_type_hints(function).items():
        if name in arguments and not _is_of(arguments[name], hint):
            stated = function.__annotations__[name]
            raise OptionError(f"`{name}` is {arguments[name]!r}, of type {type(arguments[name]).__name__}; it must be {stated}")


def _is_of(value: object, hint: Any) -> bool:
    """Return whether a value is of a type. NumPy's numbers are numbers, and whole numbers are those of type float as well."""
    kind = get_origin(hint) or hint
    if kind is UnionType:
        return any(_is_of(value, part) for part in get_args(hint))
    if kind is Sequence:
        return isinstance(value, Collection) and all(_is_of(part, get_args(hint)[0]) for part in value)
    if kind in (int, float):
        return isinstance(value, Integral if kind is int else Real) and not isinstance(value, bool)
    return isinstance(value, (bool, np.bool_) if kind is bool else kind)
