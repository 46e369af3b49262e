"""Model the renditions of a ladder, one for each size, choose the next encode, and in the end the rungs of them all."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from ..errors import VkssimError
from ..report.bd_rate import Deltas, RateCurve, bjontegaard_deltas
from .encoders import Encoder, Parameter
from .model import Prior, SettingCurve
from .trial import Target, Trial, TrialHistory

NEW, FIXED = "the new ladder", "the fixed ladder"
"""The names of the ladders in messages and on a page."""

_NEAR = 1.09  # a trial may have so much more than the bit rate of its rung: half the distance of two settings

_ALIKE = 0.05  # dB: a rendition that is better by less is not looked for
_UNSURE = 0.05  # a rendition that may be the better one with a smaller probability is not encoded

# docs/notes/2026-11-29-search.md says where these numbers come from.
_BITS_OF_PIXEL = 0.06  # at the middle setting of an encoder
_OCTAVES_OF_DECIBEL = 0.33  # the usual change of the bit rate, in octaves, if the score changes by 1 dB
_RATE_DEVIATION = 1.5  # octaves
_RATE_SLOPE_SPREAD = 0.3  # in parts of the slope
_RATE_BEND = 0.1  # in parts of the slope
_RATE_NOISE = 0.02  # octaves
_RATE_OF_SIZE = 0.8  # the bit rate goes with this power of the pixels
_OFF_RATE, _SLOPE_OF_RATE = 0.4, 0.2  # how a rendition's bit rate differs from its forecast: octaves, and parts
_SCORE_OF_SIZE = 2.5  # dB that are lost if a rendition has half as many pixels, at the same setting
_OFF_SCORE, _SLOPE_OF_SCORE = 2.0, 0.5  # how the score differs from that: dB, and parts of the slope
_BEND_OF_SCORE = 2.0  # a rendition's curve bends so much more: the loss by scaling stays


@dataclass
class Rendition:
    """The trials of one size."""

    size: tuple[int, int]
    """The width and the height."""
    rate: SettingCurve
    """The curve of the bit rate, in octaves (log2 of kbit/s), over the places of the settings."""
    score: SettingCurve
    """The curve of the score, with an infinite limit: a cheaper trial may show damage, however high the score is."""
    history: TrialHistory
    """The trials, with a curve for each target."""
    is_rung: bool = True
    """Whether the ladder may have this size, or only the fixed one has it."""

    @property
    def pixels(self) -> int:
        """Return the pixels of a frame."""
        return self.size[0] * self.size[1]

    @property
    def damaged(self) -> list[int]:
        """Return the settings whose score is far too low for the scores of other settings; see `SettingCurve`."""
        return sorted({*map(int, self.score.damaged), *self.history.damaged})

    @property
    def outdone(self) -> list[int]:
        """Return the settings of `damaged` whose damage a cheaper setting proves."""
        return sorted({*map(int, self.score.outdone), *self.history.outdone})

    def add(self, place: int, trial: Trial, score: float) -> None:
        """Learn from a trial with its score in the unit of the curve."""
        self.history.add_trial(place, trial)
        if trial.kbps > 0:
            self.rate.add(place, math.log2(trial.kbps))
        if math.isfinite(score):
            self.score.add(place, score)

    def place_of(self, rate: float) -> int:
        """Return the setting whose bit rate is probably nearest to `rate`, in octaves, of those that are not damaged."""
        rates, _ = self.rate.predict(range(self.history.count))
        off = np.abs(rates - rate)
        off[[*self.history.unusable, *self.damaged]] = math.inf
        return int(np.argmin(off))

    def score_at(self, rate: float) -> tuple[float, float]:
        """Return the expected score at a bit rate, and its standard deviation; a setting beyond the last is not expected."""
        place = self.place_of(rate)
        score, deviation = self.score.at(place)
        expected, off = self.rate.at(place)
        slope = self.score.slope(place) / self.rate.slope(place)
        if 0 < place < self.history.count - 1:
            score += slope * (rate - expected)
        return score, math.hypot(deviation, slope * off)

    def cheapest(self) -> tuple[float, float] | None:
        """Return the expected bit rate of the cheapest setting that meets the targets, and its deviation; None without one."""
        place, spread = self.history.best, 0.0
        if self.history.next() is not None:
            chances = self.history.probabilities()
            place = max((place for place in range(self.history.count) if chances[place] >= 0.5), default=0)
            off = [curve.at(place)[1] / abs(curve.slope(place)) for curve in self.history.curves]
            spread = max(off) * self.rate.slope(place)
        if place is None:
            return None
        rate, deviation = self.rate.at(place)
        return rate, math.hypot(deviation, spread)

    def met(self) -> float:
        """Return the bit rate of the cheapest trial that meets the targets, in octaves; infinite without one."""
        return math.inf if self.history.best is None else self.rate.at(self.history.best)[0]

    def least(self) -> float:
        """Return the bit rate of the best trial that failed, in octaves: settings that meet the targets have a higher one."""
        failed = self.history.failed
        return self.rate.at(min(failed))[0] if failed else -math.inf


def rate_prior(encoder: Encoder, parameter: Parameter, score: Prior, pixels: int, frames_a_second: float) -> Prior:
    """Return the curve of the bit rate over the places of a parameter that is expected before the first trial."""
    level = math.log2(_BITS_OF_PIXEL * pixels * frames_a_second / 1000)
    step = abs(parameter.values[-1] - parameter.values[0]) / max(1, len(parameter.values) - 1)
    slope = encoder.slope * _OCTAVES_OF_DECIBEL * step
    spread, bend = abs(slope) * _RATE_SLOPE_SPREAD, abs(slope) * _RATE_BEND
    return Prior(score.middle, level, _RATE_DEVIATION, slope, spread, bend, _RATE_NOISE)


def learn_from(rendition: Rendition, tried: Rendition) -> None:
    """Initialise an untried rendition from another's trial, the nearest to the middle setting.

    Near the best quality a curve is flat if scaling loses more than the encoder, which says little about another size.
    """
    place = min(tried.history.tried, key=lambda place: abs(place - tried.history.count / 2))
    octaves = math.log2(rendition.pixels / tried.pixels)

    def shifted(curve: SettingCurve, off: float, spread: float, shift: float, bend: float = 1.0) -> SettingCurve:
        around = curve.around(place, off, spread)
        prior = replace(around.prior, level=around.prior.level + shift, bend=around.prior.bend * bend)
        return SettingCurve(prior, curve.limit)

    def score(curve: SettingCurve) -> SettingCurve:
        return shifted(curve, _OFF_SCORE, _SLOPE_OF_SCORE, _SCORE_OF_SIZE * octaves, _BEND_OF_SCORE)

    rendition.rate = shifted(tried.rate, _OFF_RATE, _SLOPE_OF_RATE, _RATE_OF_SIZE * octaves)
    rendition.score = score(tried.score)
    rendition.history.curves = [score(curve) for curve in tried.history.curves]


def next_for_targets(renditions: Sequence[Rendition]) -> tuple[Rendition, int] | None:
    """Return the encode that says most about which size meets the targets at the lowest bit rate; or None if that is known."""
    if not any(rendition.history.tried for rendition in renditions):
        largest = max(renditions, key=lambda rendition: rendition.pixels)
        return largest, largest.history.next() or 0
    met = min(rendition.met() for rendition in renditions)
    able = [rendition for rendition in renditions if rendition.met() == met or rendition.least() < met]
    expected = [(cheapest, rendition) for rendition in able if (cheapest := rendition.cheapest()) is not None]
    if not expected:
        return None
    (low, deviation), leader = min(expected, key=lambda pair: pair[0][0])
    if (place := leader.history.next()) is not None:
        return leader, place
    chances = [
        (NormalDist().cdf((low - rate) / math.hypot(off, deviation)), rendition, place)
        for (rate, off), rendition in expected
        if rendition is not leader and (place := rendition.history.next()) is not None
    ]
    probability, rendition, place = max(chances, key=lambda chance: chance[0], default=(0.0, leader, 0))
    return (rendition, place) if probability >= _UNSURE else None


def next_for_rate(renditions: Sequence[Rendition], rate: float) -> tuple[Rendition, int] | None:
    """Return the encode that says most about which size is best at a bit rate, in octaves; or None if that is known."""
    if not any(rendition.history.tried for rendition in renditions):
        largest = max(renditions, key=lambda rendition: rendition.pixels)
        return largest, largest.place_of(rate)
    expected = [(rendition.score_at(rate), rendition) for rendition in renditions]
    (score, deviation), leader = max(expected, key=lambda pair: pair[0][0])
    if (place := leader.place_of(rate)) not in leader.history.tried:
        return leader, place
    for (candidate, off), rendition in sorted(expected, key=lambda pair: -pair[0][0]):
        place = rendition.place_of(rate)
        better = NormalDist().cdf((candidate - score - _ALIKE) / math.hypot(off, deviation))
        if rendition is not leader and place not in rendition.history.tried and better >= _UNSURE:
            return rendition, place
    return None


# -- rungs ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LadderTrial:
    """The trial of one size and one setting, on frames that were scaled back to the size of the source."""

    width: int
    height: int
    trial: Trial
    pooled: dict[str, dict[str, float]]
    """The pooled values of each score."""

    @property
    def size(self) -> tuple[int, int]:
        """Return the width and the height."""
        return self.width, self.height

    @property
    def kbps(self) -> float:
        """Return the bit rate of the trial in kbit/s."""
        return self.trial.kbps


@dataclass(frozen=True)
class LadderChoice:
    """The outcome of a search for a ladder."""

    score: str
    """The pooled value that the ladder was made for, such as ``"float_ms_ssim:mean"``."""
    rungs: tuple[LadderTrial, ...]
    """The rungs to take, that of the highest bit rate first."""
    fixed: tuple[LadderTrial, ...]
    """The trials that are nearest to the rungs of the fixed ladder, in its order."""
    deltas: Deltas | None
    """The Bjøntegaard deltas of the rungs against the fixed ladder, with scores in dB; None if there are none."""
    meets: bool
    """Whether the first rung meets every target that was asked for."""
    commands: tuple[str, ...] = ()
    """FFmpeg's command lines for the rungs, for a POSIX shell; for bash if a name is no plain text."""
    notes: tuple[str, ...] = ()
    """Notes on anything that was left out, with the reasons."""


@dataclass(frozen=True)
class LadderOptions:
    """The options of a ladder beyond those of a search; see `search_ladder`."""

    sizes: Sequence[tuple[int, int]]
    fixed: Sequence[tuple[int, float]]
    """The height and the kbit/s of each rung of the fixed ladder."""
    least_bitrate: float
    most_bitrate: float
    factor: float


def _able(encodes: Collection[LadderTrial], ladder: LadderOptions) -> list[LadderTrial]:
    """Return the trials that may be rungs."""
    return [encode for encode in encodes if encode.size in ladder.sizes and encode.kbps > 0]


def cheapest_that_meets(
    encodes: Collection[LadderTrial], ladder: LadderOptions, targets: Sequence[Target]
) -> LadderTrial | None:
    """Return the trial of the lowest bit rate that meets the targets; None if none does, or if there are no targets."""
    met = [encode for encode in _able(encodes, ladder) if targets and encode.trial.meets]
    return min(met, key=lambda encode: encode.kbps, default=None)


def rung_rates(ladder: LadderOptions, top: LadderTrial | None) -> list[float]:
    """Return the bit rates of the rungs from the highest down, each lower by the same factor, which is at most the ladder's.

    The highest is the bit rate of `top`, the trial that is to be the first rung, or the limit.
    """
    low, high = ladder.least_bitrate, ladder.most_bitrate if top is None else min(top.kbps, ladder.most_bitrate)
    if high <= low:
        return [high]
    steps = math.ceil(math.log(high / low) / math.log(ladder.factor) - 1e-9)
    return [high * (low / high) ** (number / steps) for number in range(steps + 1)]


def choose(
    trials: Collection[LadderTrial],
    ladder: LadderOptions,
    score: Target,
    targets: Sequence[Target],
    *,
    limited: bool,
    required: bool,
) -> LadderChoice:
    """Return the ladder that trials show.

    `limited` is whether no further trials are allowed, `required` whether the user asked for the targets.
    """
    encodes = [encode for encode in trials if encode.kbps > 0]  # 0 has no logarithm, so that it is nowhere on a curve
    rungs = _choose_rungs(encodes, ladder, score, cheapest_that_meets(encodes, ladder, targets))
    fixed = tuple(
        min(of_height, key=lambda encode: abs(math.log(encode.kbps / rate)))
        for height, rate in ladder.fixed
        if (of_height := [encode for encode in encodes if encode.height == height])
    )

    notes = ["the search ended after as many trials as `trials` allows, so that rungs may be missing"] if limited else []
    least = ladder.least_bitrate
    if rungs and rungs[0].kbps < least:
        has = f"{rungs[0].kbps:.0f} kbit/s"
        notes.append(f"the first rung has {has}, less than `least_bitrate`, which is {least:g}; a smaller one gives more rungs")

    deltas = None
    try:
        if ladder.fixed:
            anchor, new = (
                # two rungs of a fixed ladder may have the same trial
                RateCurve.of(name, list(dict.fromkeys((encode.kbps, score.score(encode.trial)) for encode in of)))
                for name, of in ((FIXED, fixed), (NEW, rungs))
            )
            deltas = bjontegaard_deltas(anchor, new)
            notes += deltas.warnings
    except VkssimError as error:
        notes.append(f"no BD-rate: {error}")
    reached = not targets or (bool(rungs) and rungs[0].trial.meets)
    if rungs and not (reached or required):
        goal = " and ".join(f"{target.name}={target.limit:g}" for target in targets)
        notes.append(f"no encode of at most `most_bitrate`, {ladder.most_bitrate:g} kbit/s, reaches {goal}")
    meets = bool(rungs) and (reached or not required)
    return LadderChoice(score.name, tuple(rungs), fixed, deltas, meets, notes=tuple(notes))


def _choose_rungs(
    encodes: Collection[LadderTrial], ladder: LadderOptions, score: Target, top: LadderTrial | None
) -> list[LadderTrial]:
    """Return the best trial for each bit rate of the ladder, from the highest down. `top` is the first if it may be."""
    able = ((score.score(encode.trial), encode) for encode in _able(encodes, ladder))
    points = {(encode.kbps, value): encode for value, encode in able if math.isfinite(value)}
    rungs: list[tuple[float, float]] = []
    for rate in rung_rates(ladder, top):
        limit = min(rate * _NEAR, ladder.most_bitrate)
        within = (point for point in points if point[0] <= limit)
        best = max(within, key=lambda point: (point[1], -point[0]), default=None)
        if not rungs and top is not None and top.kbps <= ladder.most_bitrate:
            best = top.kbps, score.score(top.trial)
            points[best] = top
        if best is not None and (not rungs or best < rungs[-1]):
            rungs.append(best)
    return [points[point] for point in rungs]
