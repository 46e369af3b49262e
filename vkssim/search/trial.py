"""The trials of a search: forecasts for the whole clip from its samples, and the history of the settings that were tried."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist

import numpy as np

from ..errors import OptionError
from ..report.results import PERCENTILES, decibel, pool
from ..report.thresholds import POOLINGS, Threshold, check_names
from ..scorer import Scorer
from ..types import Doubles
from .encode import EncodedSample
from .encoders import Parameter, noise_of
from .model import SettingCurve, SettingsModel
from .recipe import Recipe
from .source import Sampling

_DEVIATION_OF_ONE = 0.5  # dB: how far the whole clip is off a single sample, which itself does not show it
# dB: the effect of frames that are in no sample, measured in docs/notes/2026-11-29-how-good-a-search-is.md
_DEVIATION_OF_RARE = {"min": 1.0, "p1": 0.2}
HIGHEST = 50.0
"""In dB: beyond it encodes become lossless, and scores leave their curve."""

MAX_UNUSABLE = 3
"""The number of settings after which no further one is tried if none of them can be used."""


@dataclass(frozen=True)
class Trial:
    """The outcome of encoding with one setting."""

    setting: float
    """The value of the parameter: a CRF, a QP, or kbit/s."""
    values: dict[str, float]
    """The pooled value of each target, such as ``{"float_ms_ssim:p5": 0.9871}``; NaN if it does not exist."""
    meets: bool
    """Whether every value reaches its target, on the frames that were encoded."""
    bytes: int
    """The size of the video stream of the whole clip; a forecast unless `whole`."""
    kbps: float
    """Its bit rate in kbit/s, over the time in which the clip is shown."""
    frames: int
    """The number of frames that were encoded."""
    seconds: float
    """The time that encoding and scoring took."""
    whole: bool
    """Whether the clip was encoded in one piece."""
    deviations: dict[str, float]
    """The standard deviation of each value from that of the whole clip, because samples stand for it, in dB; 0 if `whole`."""
    probability: float
    """The probability that the whole clip meets the targets: 0 or 1 if `whole`."""


@dataclass(frozen=True)
class Shot:
    """The outcome for one shot."""

    first: int
    """The number of its first frame."""
    count: int
    """The number of its frames."""
    setting: float
    """The value of the parameter; if no setting meets the targets, the value that comes nearest."""
    meets: bool
    """Whether it meets every target on the frames of the shot."""
    trial: Trial
    """The trial of that setting."""
    trials: int
    """The number of settings that were tried."""
    scores: dict[str, list[float]]
    """The scores of each frame with that setting."""
    tried: tuple[Trial, ...] = ()
    """All trials, in the order of their settings."""


@dataclass(frozen=True)
class Target:
    """A threshold, and the unit of its score in the model: dB for a similarity, else that of the score."""

    threshold: Threshold
    decibels: bool

    @property
    def name(self) -> str:
        """Return the name of the pooled value, such as ``float_ms_ssim:p5``."""
        return self.threshold.pooled_name

    @property
    def limit(self) -> float:
        """Return the least value that meets the target; every value meets a score that is only looked at."""
        return -math.inf if self.threshold.limit is None else self.threshold.limit

    def unit(self, value: float) -> float:
        """Return a value in the unit of the model: a similarity in dB, HIGHEST at most."""
        return min(float(decibel(np.array(value))), HIGHEST) if self.decibels else value

    def score(self, trial: Trial) -> float:
        """Return the value of a trial in the unit of the model."""
        return self.unit(trial.values[self.name])

    def value(self, encoded: Sequence[EncodedSample], weights: Sequence[float]) -> float:
        """Return the pooled value over samples."""
        return pooled_values(
            [sample.column(self.threshold.name) for sample in encoded], weights, similarity=self.threshold.pooling == "mean_db"
        )[self.threshold.pooling]

    def deviation(self, encoded: Sequence[EncodedSample], weights: Sequence[float]) -> float:
        """Return the standard deviation of the value over choices of samples, by leaving out one of them at a time.

        It includes how far a trial is off the curve of the settings. Pooled values that few frames decide have more: these
        frames are seldom in a sample.
        """
        count, pooling = len(encoded), self.threshold.pooling
        rare = math.hypot(_DEVIATION_OF_RARE.get(pooling, 0.0), noise_of(pooling))
        if count < 2:
            return math.hypot(_DEVIATION_OF_ONE, rare)
        others = ([n for n in range(count) if n != without] for without in range(count))
        left: Doubles = np.array(
            [self.unit(self.value([encoded[n] for n in rest], [weights[n] for n in rest])) for rest in others]
        )
        return math.hypot(float(np.sqrt((count - 1) / count * np.sum((left - left.mean()) ** 2))), rare)

    def probability(self, value: float, deviation: float) -> float:
        """Return the probability that the whole clip meets the target, for a value of samples and its standard deviation."""
        if self.decibels and self.unit(value) >= HIGHEST:
            return float(value >= self.limit)
        above = self.unit(value) - self.unit(self.limit)
        return 0.0 if math.isnan(above) else NormalDist(sigma=deviation).cdf(above)


def targets_of(scorer: Scorer, thresholds: Sequence[Threshold]) -> list[Target]:
    """Return the targets of thresholds. Raises OptionError for a score that is not computed."""
    check_names(thresholds, scorer.names, scorer.similarities)
    targets = [
        Target(threshold, threshold.name in scorer.similarities and threshold.pooling != "mean_db") for threshold in thresholds
    ]
    for target in targets:
        if target.decibels and target.limit > 1:
            raise OptionError(f"`targets` {target.name}={target.limit:g}: it is 1 at most; mean_db is in dB")
    return targets


def forecast_bytes(encoded: Sequence[EncodedSample], sampling: Sampling, recipe: Recipe) -> int:
    """Return the size of the video stream of the whole clip in bytes.

    The samples stand for all frames, those after cuts among them. The headers and the key frame that begin the clip, and the
    key frames that it has every so many frames, come on top, since a sample is too short to have these.
    """
    if sampling.is_whole:
        return encoded[0].bytes
    pairs = list(zip(encoded, sampling.samples, strict=True))
    header = encoded[0].header_bytes
    keys, frames = sum(coded.key_frames for coded in encoded), sum(coded.frames for coded in encoded)
    ordinary = sum(coded.other_bytes for coded in encoded) / max(1, frames - keys)
    extra_of_key = sum(coded.first_bytes for coded in encoded) / len(encoded) - header - ordinary
    size = header + extra_of_key
    for coded, sample in pairs:
        begins = 0 if sample.lead else header + extra_of_key  # that is in the sample, and no other part of the clip has it
        size += sample.weight * (coded.bytes - begins)

    cuts = sampling.cuts if recipe.keys_at_cuts else (0,)
    shots = [end - first for first, end in pairwise((*cuts, sampling.frames))]
    if recipe.key_frames >= max(sample.encoded for sample in sampling.samples):
        more_keys: float = sum((count - 1) // recipe.key_frames for count in shots)
    else:
        stood_for = sum(sample.weight * (coded.key_frames - (sample.lead == 0)) for coded, sample in pairs)
        more_keys = sum(math.ceil(count / recipe.key_frames) for count in shots) - 1 - stood_for
    return round(size + extra_of_key * more_keys)


def pooled_values(scores: Sequence[Doubles], weights: Sequence[float], *, similarity: bool) -> dict[str, float]:
    """Return the pooled values of one score over samples that stand for different numbers of frames.

    `scores` has the score of each frame of each sample, and `weights` how many frames of the clip each of them stands for. The
    values are those of `POOLINGS`, as `ScoreReport.pooled` has them for equal weights; NaN if a frame has no score. A
    `similarity` has a ``mean_db`` too.
    """
    values = np.concatenate(scores)
    if len(set(weights)) == 1:
        pooled = pool(values)
    elif np.isnan(values).any():
        pooled = dict.fromkeys(POOLINGS, math.nan)
    else:
        share = np.repeat(np.asarray(weights, np.float64), [len(sample) for sample in scores])
        pooled = {
            "mean": float(np.average(values, weights=share)),
            "harmonic_mean": float(share.sum() / np.sum(share / (values + 1.0)) - 1.0),
            "min": float(values.min()),
            "max": float(values.max()),
            **{f"p{rank}": percentile for rank, percentile in zip(PERCENTILES, _percentiles(values, share), strict=True)},
        }
    if similarity:
        pooled["mean_db"] = float(decibel(np.array(pooled["mean"])))
    return {name: pooled[name] for name in POOLINGS if similarity or name != "mean_db"}


def _percentiles(values: Doubles, share: Doubles) -> list[float]:
    """Return the percentiles of PERCENTILES, interpolated between the two nearest scores: NumPy's, if all shares are equal."""
    order = np.argsort(values)
    sorted_share = share[order]
    places = np.cumsum(sorted_share) - sorted_share / 2
    places -= places[0]
    shares = np.array(PERCENTILES) / 100
    return list(np.interp(shares, places / max(float(places[-1]), 1e-12), values[order]).tolist())


class TrialHistory(SettingsModel):
    """The trials by the place of their setting, and a model of each target over all settings."""

    def __init__(
        self, targets: Sequence[Target], parameter: Parameter, curves: Sequence[SettingCurve], sure: float = 0.5
    ) -> None:
        super().__init__(len(parameter.values), curves)
        self.targets = targets
        self.sure = sure  # a setting meets the targets if the whole clip does with this probability
        self.parameter = parameter
        self._trials: dict[int, Trial] = {}

    def __len__(self) -> int:
        """Return how many settings were tried, those that cannot be used among them."""
        return len(self.tried) + len(self.unusable)

    def __getitem__(self, place: int) -> Trial:
        return self._trials[place]

    def add_trial(self, place: int, trial: Trial) -> None:
        """Add a trial; a later trial of the same setting replaces it."""
        self._trials[place] = trial
        meets = trial.meets if self.sure == 0.5 else trial.probability >= self.sure
        self.add(place, [self._score(target, trial) for target in self.targets], meets=meets)

    def next_of(self, most: int) -> int | None:
        """Return the setting to try next; None if none is worth it, `most` were tried, or it seems that none can be used.

        The last trial is for a setting that probably meets the targets, if there is one that is cheaper than the answer so far.
        """
        left = (most if self.tried else min(most, MAX_UNUSABLE)) - len(self)
        following = self.next() if left > 0 else None
        if left > 1 or following is None:
            return following
        sure = np.flatnonzero(self.probabilities() >= self.sure)
        return following if not len(sure) or sure[-1] in self.tried else int(sure[-1])

    @property
    def notes(self) -> list[str]:
        """Return notes for the user on settings that cannot be used, or that score far lower than cheaper ones."""
        unusable = [f"{error}; it counts as a setting that misses the targets" for error in self.unusable.values()]
        return unusable + damage_notes(self.parameter, self.outdone)

    @property
    def nearest(self) -> int:
        """Return the cheapest setting that met the targets, else the one that missed them by least.

        Raises EncodeError, the first one, if no setting could be used.
        """
        if not self.tried:
            raise next(iter(self.unusable.values()))
        if self.best is not None:
            return self.best

        def missing(place: int) -> tuple[float, int]:
            short = [target.unit(target.limit) - self._score(target, self._trials[place]) for target in self.targets]
            return max(math.inf if math.isnan(gap) else gap for gap in short), -place

        return min(self.tried, key=missing)

    def _score(self, target: Target, trial: Trial) -> float:
        """Return the score of a target for a trial, in the unit of its curve, lower by as much as the whole clip's may be.

        So it reaches the limit if the whole clip does with a probability of `sure`.
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
    damage = "scores far lower than a cheaper setting: its stream may be damaged, and no other setting is judged by it"
    return [f"{parameter.name} {parameter.text(place)} {damage}" for place in outdone]
