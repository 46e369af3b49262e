"""Follow the settings that were tried: what each of them gave, and what it lets expect of the others."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .model import Curve, Settings
from .recipe import Recipe
from .trial import HIGHEST, Target, Trial


class Tried:
    """Hold the trials by the place of their setting, and a model of each target over all settings.

    `curves` are those of the targets, without trials.
    """

    def __init__(self, targets: Sequence[Target], count: int, curves: Sequence[Curve]) -> None:
        self.targets = targets
        self.settings = Settings(count, curves)
        self._trials: dict[int, Trial] = {}

    def __len__(self) -> int:
        return len(self._trials)

    def __getitem__(self, place: int) -> Trial:
        return self._trials[place]

    def add(self, place: int, trial: Trial) -> None:
        """Add a trial; another one of the same setting replaces it."""
        self._trials[place] = trial
        learn(self.settings, place, trial, self.targets)

    @property
    def nearest(self) -> int:
        """Return the cheapest setting that met the targets, else the one that missed them by least."""
        if self.settings.best is not None:
            return self.settings.best

        def missing(place: int) -> tuple[float, int]:
            values = self._trials[place].values
            short = [target.unit(target.limit) - target.unit(values[target.name]) for target in self.targets]
            return max(math.inf if math.isnan(one) else one for one in short), -place

        return min(self._trials, key=missing)

    def curves_around(self, place: int, deviation: float, slope_spread: float) -> list[Curve]:
        """Return curves without trials for frames like these; see `Curve.around`."""
        return [curve.around(place, deviation, slope_spread) for curve in self.settings.curves]


def first_curves(recipe: Recipe, targets: Sequence[Target]) -> list[Curve]:
    """Return a curve without trials for each target."""
    curves = []
    for target in targets:
        name, pooling = target.threshold.name, target.threshold.pooling
        prior = recipe.encoder.prior(recipe.parameter, name, pooling, decibels=target.decibels)
        curves.append(Curve(prior, target.unit(target.limit), HIGHEST if target.decibels else math.inf))
    return curves


def learn(settings: Settings, place: int, trial: Trial, targets: Sequence[Target]) -> None:
    """Add a trial to the settings that were tried, with the value of each target in the unit of its curve."""
    settings.add(place, [target.unit(trial.values[target.name]) for target in targets], meets=trial.meets)
