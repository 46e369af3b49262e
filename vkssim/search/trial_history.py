"""Follow the settings that were tried: what each of them gave, and what it lets expect of the others."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import NormalDist

from ..errors import EncodeError
from .encoders import Parameter
from .model import SettingCurve, SettingsModel
from .recipe import Recipe
from .trial import HIGHEST, Target, Trial

MOST_UNUSABLE = 3
"""If the first so many settings cannot be used, no other one is tried."""


class TrialHistory(SettingsModel):
    """The trials by the place of their setting, and a model of each target over all settings.

    `curves` are those of the targets, without trials. A setting meets the targets if the whole clip does with a probability of
    `sure`. `errors` has the error of each setting that cannot be used.
    """

    def __init__(
        self, targets: Sequence[Target], parameter: Parameter, curves: Sequence[SettingCurve], sure: float = 0.5
    ) -> None:
        super().__init__(len(parameter.values), curves)
        self.targets = targets
        self.sure = sure
        self.parameter = parameter
        self.errors: list[EncodeError] = []
        self._trials: dict[int, Trial] = {}

    def __len__(self) -> int:
        """Return how many settings were tried, those that cannot be used among them."""
        return len(self._trials) + len(self.errors)

    def __getitem__(self, place: int) -> Trial:
        return self._trials[place]

    def add_trial(self, place: int, trial: Trial) -> None:
        """Add a trial; a later trial of the same setting replaces it."""
        self._trials[place] = trial
        meets = trial.meets if self.sure == 0.5 else trial.probability >= self.sure
        self.add(place, [self._score(target, trial) for target in self.targets], meets=meets)

    def add_error(self, place: int, error: EncodeError) -> None:
        """Note that a setting cannot be used: it meets no target, and says nothing of other settings."""
        self.errors.append(error)
        self.drop(place)
        self._trials.pop(place, None)

    def next_of(self, most: int) -> int | None:
        """Return the setting to try next; None if none is worth it, `most` were tried, or it seems that none can be used.

        The last trial is for a setting that probably meets the targets, if there is one that is cheaper than the answer so far.
        """
        left = (most if self._trials else min(most, MOST_UNUSABLE)) - len(self)
        if left <= 0:
            return None
        return self.cheapest(self.sure, self.next()) if left == 1 else self.next()

    @property
    def notes(self) -> list[str]:
        """Return notes for the user on settings that cannot be used, or that score far lower than cheaper ones."""
        unusable = [f"{error}; it counts as a setting that misses the targets" for error in self.errors]
        return unusable + damage_notes(self.parameter, self.outdone)

    @property
    def nearest(self) -> int:
        """Return the cheapest setting that met the targets, else the one that missed them by least.

        Raises EncodeError, the first one, if no setting could be used.
        """
        if not self._trials:
            raise self.errors[0]
        if self.best is not None:
            return self.best

        def missing(place: int) -> tuple[float, int]:
            short = [target.unit(target.limit) - self._score(target, self._trials[place]) for target in self.targets]
            return max(math.inf if math.isnan(one) else one for one in short), -place

        return min(self._trials, key=missing)

    def _score(self, target: Target, trial: Trial) -> float:
        """Return the score of a target that counts for a trial, in the unit of its curve.

        A score of samples is lower than its value by as much as the whole clip's score may be, so that it reaches the limit if
        the whole clip does with a probability of `sure`.
        """
        score = target.score(trial)
        if target.decibels and score >= HIGHEST:
            return score
        return score - NormalDist().inv_cdf(self.sure) * trial.deviations[target.name]


def first_curves(recipe: Recipe, targets: Sequence[Target]) -> list[SettingCurve]:
    """Return a curve without trials for each target."""
    curves = []
    for target in targets:
        name, pooling = target.threshold.name, target.threshold.pooling
        prior = recipe.encoder.prior(recipe.parameter, name, pooling, decibels=target.decibels)
        curves.append(SettingCurve(prior, target.unit(target.limit), HIGHEST if target.decibels else math.inf))
    return curves


def damage_notes(parameter: Parameter, outdone: Iterable[int]) -> list[str]:
    """Return a note for each setting whose score is far lower than that of a cheaper one."""
    return [
        f"{parameter.name} {parameter.text(place)} scores far lower than a cheaper setting: its stream may be damaged, and no"
        " other setting is judged by it"
        for place in outdone
    ]
