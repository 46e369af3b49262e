"""The options of a search, and the store of its trials."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from numbers import Integral, Real
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np

from ..errors import OptionError
from ..report.thresholds import Threshold
from ..utils.progress import Progress
from .defaults import MOST_SURE
from .recipe import Recipe
from .source import Source
from .store import TrialStore
from .trial import features_of, parse_targets


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """The options of a search; see `search_setting`.

    `thresholds` are the targets. A ladder has the score that it is made for before them, without a limit. `seconds` is the
    length of the samples, 0 if there are none. With a `sure` of 0.5, the scores of the samples count as they are.
    """

    thresholds: Sequence[Threshold]
    features: Sequence[str]
    seconds: float = 0.0
    sure: float = 0.5
    whole: bool = False
    output: str | None = None
    backend: str
    device: str | int | None
    most_trials: int
    resume: str | os.PathLike[str] | None
    progress: Progress | None


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
        return any(_is_of(value, one) for one in get_args(hint))
    if kind is Sequence:
        return isinstance(value, Collection) and all(_is_of(one, get_args(hint)[0]) for one in value)
    if kind in (int, float):
        return isinstance(value, Integral if kind is int else Real) and not isinstance(value, bool)
    return isinstance(value, (bool, np.bool_) if kind is bool else kind)


def listed(texts: Sequence[str] | str) -> list[str]:
    """Return one text, or several, as a list."""
    return [texts] if isinstance(texts, str) else list(texts)


def checked_targets(targets: Sequence[str] | str) -> list[Threshold]:
    """Return the thresholds of at least one target. Raises OptionError."""
    thresholds = parse_targets(listed(targets))
    if not thresholds:
        raise OptionError("a search needs a target: `targets` float_ms_ssim:p5=0.98 for instance")
    return thresholds


def check_trials(trials: int) -> None:
    """Raise OptionError if there would be no trial."""
    if trials < 1:
        raise OptionError(f"`trials` is {trials}; it must be 1 or more")


def check_sure(sure: float) -> None:
    """Raise OptionError for a probability that no answer can have, or that every answer has."""
    if not 0.5 <= sure <= MOST_SURE:
        raise OptionError(
            f"`sure` is {sure:g}; it must be 0.5 to {MOST_SURE:g}, the probability that the whole clip meets the targets"
        )


def check_samples(samples: float) -> None:
    """Raise OptionError if there would be no samples."""
    if not 0 < samples < math.inf:
        raise OptionError(f"`samples` is {samples:g} seconds; it must be a number above 0")


def open_store(stack: ExitStack, source: Source, recipe: Recipe, options: SearchOptions) -> TrialStore | None:
    """Return the store of a search, which a stack closes; None if nothing is to be stored. Raises VkssimError."""
    if options.resume is None:
        return None
    settings = {
        "encoder": recipe.encoder.name,
        "parameter": [recipe.parameter.name, *recipe.parameter.values],
        "format": recipe.format,
        "options": dict(recipe.options),
        "own": dict(recipe.own),
        "two_passes": recipe.two_passes,
        "features": features_of(options.thresholds, options.features),
        "seconds": options.seconds,
        "backend": options.backend,
    }
    return stack.enter_context(TrialStore(options.resume, source.path, settings))
