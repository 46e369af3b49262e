"""Choose the rungs of a ladder from trials of several sizes and settings, and compare them with a fixed ladder."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ..errors import VkssimError
from ..report.bd_rate import Deltas, RateCurve, bjontegaard_deltas
from .trial import Target, Trial

NEW, FIXED = "the new ladder", "the fixed ladder"
"""The names of the ladders in messages and on a page."""

_NEAR = 1.06  # a trial may have so much more than the bit rate of its rung: settings are that far apart


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
    """Whether the first rung meets every target."""
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
    trials: Collection[LadderTrial], ladder: LadderOptions, score: Target, targets: Sequence[Target], *, limited: bool
) -> LadderChoice:
    """Return the ladder that trials show. `limited` is whether no further trials are allowed."""
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
    if ladder.fixed:
        try:
            deltas = bjontegaard_deltas(_curve(FIXED, fixed, score), _curve(NEW, rungs, score))
            notes += deltas.warnings
        except VkssimError as error:
            notes.append(f"no BD-rate: {error}")
    meets = bool(rungs) and (not targets or rungs[0].trial.meets)
    return LadderChoice(score.name, tuple(rungs), fixed, deltas, meets, notes=tuple(notes))


def _choose_rungs(
    encodes: Collection[LadderTrial], ladder: LadderOptions, score: Target, top: LadderTrial | None
) -> list[LadderTrial]:
    """Return the best trial for each bit rate of the ladder, from the highest down. `top` is the first if it may be."""
    places = {_point(encode, score): encode for encode in _able(encodes, ladder) if math.isfinite(_point(encode, score)[1])}
    rungs: list[LadderTrial] = []
    for rate in rung_rates(ladder, top):
        limit = min(rate * _NEAR, ladder.most_bitrate)
        within = [encode for encode in places.values() if encode.kbps <= limit]
        best = max(within, key=lambda encode: (_point(encode, score)[1], -encode.kbps), default=None)
        if not rungs and top is not None and top.kbps <= ladder.most_bitrate:
            best = top
        if best is not None and (not rungs or _point(best, score) < _point(rungs[-1], score)) and best not in rungs:
            rungs.append(best)
    return rungs


def _curve(name: str, encodes: Sequence[LadderTrial], score: Target) -> RateCurve:
    """Return trials as a curve; two rungs of a fixed ladder may have the same trial. Raises InputError if there are too few."""
    return RateCurve.of(name, list(dict.fromkeys((encode.kbps, _point(encode, score)[1]) for encode in encodes)))


def _point(encode: LadderTrial, score: Target) -> tuple[float, float]:
    """Return the coordinates of a trial: its bit rate in octaves, and its score in the unit of the model, NaN without one."""
    return math.log2(encode.kbps), score.score(encode.trial)
