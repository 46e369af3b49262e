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
    """The trial of one size and one setting, on frames that were scaled back to the size of the source.

    `pooled` are the pooled values of each score.
    """

    width: int
    height: int
    trial: Trial
    pooled: dict[str, dict[str, float]]


@dataclass(frozen=True)
class LadderChoice:
    """The outcome of a search for a ladder, made for the pooled value `score`, such as ``"float_ms_ssim:mean"``.

    `rungs` are the rungs to take, the one of the highest bit rate first, and `fixed` the trials that are nearest to the rungs
    of the fixed ladder, in its order. `deltas` are the Bjøntegaard deltas of the rungs against it, with scores in dB; None if
    there are none. `meets` is whether the first rung meets every target. `commands` are FFmpeg's command lines for the rungs,
    for a POSIX shell; for bash if a name is no plain text. `notes` are on anything that was left out, with the reasons.
    """

    score: str
    rungs: tuple[LadderTrial, ...]
    fixed: tuple[LadderTrial, ...]
    deltas: Deltas | None
    meets: bool
    commands: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class LadderOptions:
    """The options of a ladder beyond those of a search; see `search_ladder`. `fixed` has (height, kbit/s) of each rung."""

    sizes: Sequence[tuple[int, int]]
    fixed: Sequence[tuple[int, float]]
    least_bitrate: float
    most_bitrate: float
    factor: float


def _able(found: Collection[LadderTrial], ladder: LadderOptions) -> list[LadderTrial]:
    """Return the trials that may be rungs."""
    return [one for one in found if (one.width, one.height) in ladder.sizes and one.trial.kbps > 0]


def cheapest_that_meets(found: Collection[LadderTrial], ladder: LadderOptions, targets: Sequence[Target]) -> LadderTrial | None:
    """Return the trial of the lowest bit rate that meets the targets; None if none does, or if there are no targets."""
    met = [one for one in _able(found, ladder) if targets and one.trial.meets]
    return min(met, key=lambda one: one.trial.kbps, default=None)


def rung_rates(ladder: LadderOptions, top: LadderTrial | None) -> list[float]:
    """Return the bit rates of the rungs from the highest down, each lower by the same factor, which is at most the ladder's.

    The highest is the bit rate of `top`, the trial that is to be the first rung, or the limit.
    """
    low, high = ladder.least_bitrate, ladder.most_bitrate if top is None else min(top.trial.kbps, ladder.most_bitrate)
    if high <= low:
        return [high]
    steps = math.ceil(math.log(high / low) / math.log(ladder.factor) - 1e-9)
    return [high * (low / high) ** (number / steps) for number in range(steps + 1)]


def choose(
    found: Collection[LadderTrial], ladder: LadderOptions, score: Target, targets: Sequence[Target], *, limited: bool
) -> LadderChoice:
    """Return the ladder that trials show. `limited` is whether no further trials are allowed."""
    found = [one for one in found if one.trial.kbps > 0]  # 0 has no logarithm, so that it is nowhere on a curve
    places = {_point(one, score): one for one in _able(found, ladder) if math.isfinite(_point(one, score)[1])}
    top = cheapest_that_meets(found, ladder, targets)
    rungs: list[LadderTrial] = []
    for rate in rung_rates(ladder, top):
        limit = min(rate * _NEAR, ladder.most_bitrate)
        within = [one for one in places.values() if one.trial.kbps <= limit]
        best = max(within, key=lambda one: (_point(one, score)[1], -one.trial.kbps), default=None)
        if not rungs and top is not None and top.trial.kbps <= ladder.most_bitrate:
            best = top
        if best is not None and (not rungs or _point(best, score) < _point(rungs[-1], score)) and best not in rungs:
            rungs.append(best)
    fixed = tuple(
        min(of_height, key=lambda one: abs(math.log(one.trial.kbps / rate)))
        for height, rate in ladder.fixed
        if (of_height := [one for one in found if one.height == height])
    )
    notes = ["the search ended after as many trials as `trials` allows, so that rungs may be missing"] if limited else []
    least = ladder.least_bitrate
    if rungs and rungs[0].trial.kbps < least:
        has = f"{rungs[0].trial.kbps:.0f} kbit/s"
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


def _curve(name: str, trials: Sequence[LadderTrial], score: Target) -> RateCurve:
    """Return trials as a curve; two rungs of a fixed ladder may have the same trial. Raises InputError if there are too few."""
    points = dict.fromkeys((one.trial.kbps, _point(one, score)[1]) for one in trials)
    return RateCurve.of(name, list(points))


def _point(one: LadderTrial, score: Target) -> tuple[float, float]:
    """Return the coordinates of a trial: its bit rate in octaves, and its score in the unit of the model, NaN without one."""
    return math.log2(one.trial.kbps), score.score(one.trial)
