"""Follow the settings that were tried: what each of them gave, and what it lets expect of the others."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from ..errors import EncodeError
from .encoders import Parameter
from .model import Curve, Settings
from .recipe import Recipe
from .trial import HIGHEST, Target, Trial

MOST_UNUSABLE = 3
"""If the first so many settings cannot be used, no other one is tried."""


class Tried:
    """The trials by the place of their setting, and a model of each target over all settings.

    `curves` are those of the targets, without trials. `unusable` has the error of each setting that cannot be used.
    """

    def __init__(self, targets: Sequence[Target], parameter: Parameter, curves: Sequence[Curve]) -> None:
        self.targets = targets
        self.parameter = parameter
        self.settings = Settings(len(parameter.values), curves)
        self.unusable: list[EncodeError] = []
        self._trials: dict[int, Trial] = {}

    def __len__(self) -> int:
        """Return how many settings were tried, those that cannot be used among them."""
        return len(self._trials) + len(self.unusable)

    def __getitem__(self, place: int) -> Trial:
        return self._trials[place]

    def add(self, place: int, trial: Trial) -> None:
        """Add a trial; another one of the same setting replaces it."""
        self._trials[place] = trial
        learn(self.settings, place, trial, self.targets)

    def drop(self, place: int, error: EncodeError) -> None:
        """Note that a setting cannot be used: it meets no target, and says nothing of other settings."""
        self.unusable.append(error)
        self.settings.drop(place)
        self._trials.pop(place, None)

    def next(self, most: int) -> int | None:
        """Return the setting to try next; None if none is worth it, `most` were tried, or it seems that none can be used."""
        if len(self) >= (most if self._trials else min(most, MOST_UNUSABLE)):
            return None
        return self.settings.next()

    @property
    def notes(self) -> list[str]:
        """Return what the user has to know of settings that cannot be used, or that score far lower than cheaper ones."""
        unusable = [f"{error}; it counts as a setting that misses the targets" for error in self.unusable]
        return unusable + damage_notes(self.parameter, self.settings.outdone)

    @property
    def nearest(self) -> int:
        """Return the cheapest setting that met the targets, else the one that missed them by least.

        Raises EncodeError, the first one, if no setting could be used.
        """
        if not self._trials:
            raise self.unusable[0]
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


def damage_notes(parameter: Parameter, outdone: Iterable[int]) -> list[str]:
    """Return a note for each setting whose score is far lower than that of a cheaper one."""
    return [
        f"{parameter.name} {parameter.text(place)} scores far lower than a cheaper setting: its stream may be damaged, and no"
        " other setting is judged by it"
        for place in outdone
    ]


def learn(settings: Settings, place: int, trial: Trial, targets: Sequence[Target]) -> None:
    """Add a trial to the settings that were tried, with the value of each target in the unit of its curve."""
    settings.add(place, [target.unit(trial.values[target.name]) for target in targets], meets=trial.meets)
