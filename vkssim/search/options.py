"""Hold what a search was asked for, and open the store of its trials."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from ..report.thresholds import Threshold
from .recipe import Recipe
from .source import Source
from .store import TrialStore
from .trial import Progress, features_of


@dataclass(frozen=True)
class SearchOptions:
    """Hold what a search was asked for; see `search`."""

    thresholds: Sequence[Threshold]
    features: Sequence[str]
    seconds: float
    whole: bool
    output: str | None
    backend: str
    device: str | int | None
    most_trials: int
    resume: str | os.PathLike[str] | None
    progress: Progress | None


def open_store(stack: ExitStack, source: Source, recipe: Recipe, options: SearchOptions) -> TrialStore | None:
    """Return the store of a search, which a stack closes; None where nothing is to be stored. Raises VkssimError."""
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
