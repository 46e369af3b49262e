"""Compare two reports of one reference: compute the change of each score, and check it against thresholds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..errors import InputError, OptionError
from ..report.results import ScoreReport, pool
from ..report.thresholds import POOLINGS, split_threshold
from ..types import Doubles
from ..utils.wording import did_you_mean

FRAME = "frame"
"""The word of a threshold that stands for every single frame in place of a pooled value."""


@dataclass(frozen=True)
class Change:
    """The pooled values of one score before and after, over the frames that both reports have."""

    before: Mapping[str, float]
    after: Mapping[str, float]
    max_drop: float
    """The largest drop of a frame, below 0 if all frames rose; NaN if a frame has no score, or a report no frames."""
    max_drop_frame: int | None
    """The number of this frame in the first report; None if `max_drop` is NaN."""


@dataclass(frozen=True)
class Comparison:
    """The changes of the scores that two reports share."""

    scores: Mapping[str, Change]
    frames: int
    """The number of frames that both have."""
    lost: int
    """The number of frames of the first report that the second one lacks."""


@dataclass(frozen=True)
class DropLimit:
    """The requirement that a score's pooled value, or its worst frame (`FRAME`), drops by no more than `most`."""

    score: str
    pooling: str
    most: float

    @classmethod
    def parse(cls, text: str, *, frame: bool = False) -> DropLimit:
        """Return the threshold that `NAME=X` or `NAME:POOLING=X` states. Raises OptionError."""
        name = "max_frame_drop" if frame else "max_drop"
        score, pooling, most = split_threshold(text)
        if not (score and most >= 0 and np.isfinite(most)) or (pooling is not None and (frame or not pooling)):
            form = "NAME=X" if frame else "NAME=X or NAME:POOLING=X"
            raise OptionError(f"`{name}` {text!r}; it must be {form}, X a number of 0 or more, as in float_ms_ssim=0.002")
        return cls(score, FRAME if frame else pooling or "mean", most)

    def drop(self, compared: Comparison) -> float:
        """Return the drop of the value; below 0 if it rose. Raises OptionError if the reports have no such value."""
        changes = compared.scores
        if self.score not in changes:
            hint = did_you_mean(self.score, changes)
            raise OptionError(f"no score {self.score} in both reports{hint}. Available scores: {', '.join(changes)}")
        change = changes[self.score]
        if self.pooling == FRAME:
            return change.max_drop
        if self.pooling not in change.before:
            hint = did_you_mean(self.pooling, POOLINGS)
            raise OptionError(f"no pooled value {self.pooling}{hint}. Available: {', '.join(change.before)}")
        return float(drop_of(change.before[self.pooling], change.after[self.pooling]))

    def met(self, compared: Comparison) -> bool:
        """Return whether the drop is allowed and no frame is lost. A drop of NaN, because a frame has no score, is not."""
        return self.drop(compared) <= self.most and not compared.lost


def compare_reports(before: ScoreReport, after: ScoreReport) -> Comparison:
    """Return the change of each score that both reports have, over the frames of the reference that both have.

    Raises InputError if they share no score or no frame.
    """
    names = [name for name in before.names if name in after.names]
    if not names:
        first, second = (", ".join(report.names) or "none" for report in (before, after))
        raise InputError(f"no score in both reports: one has {first}, the other {second}")
    shift = before.selection.first_reference - after.selection.first_reference  # reports count from the first pair
    numbers = [frame.index for frame in before.frames], [frame.index - shift for frame in after.frames]
    shared, of_before, of_after = np.intersect1d(*numbers, return_indices=True)
    if not len(shared):
        raise InputError("no frame is in both reports; were they scored with the same `subsample`?")

    changes = {}
    for name in names:
        scores, later = before.column(name)[of_before], after.column(name)[of_after]
        drops = drop_of(scores, later)
        worst = int(np.argmax(drops))  # argmax returns a NaN if there is one
        number = None if np.isnan(drops[worst]) else int(shared[worst])
        changes[name] = Change(pool(scores), pool(later), float(drops[worst]), number)
    return Comparison(changes, len(shared), len(before.frames) - len(shared))


def compare_pooled(before: ScoreReport, after: ScoreReport) -> Comparison:
    """Return the change of each pooled value that both reports have, for reports without frames: these are only counted.

    Raises InputError if they share no score.
    """
    changes = {}
    first, second = before.pooled(), after.pooled()
    for name in (name for name in before.names if name in after.names):
        shared = first[name].keys() & second[name].keys()
        values, later = ({pooling: of[name][pooling] for pooling in first[name] if pooling in shared} for of in (first, second))
        changes[name] = Change(values, later, math.nan, None)
    if not changes:
        raise InputError(f"no score in both: one has {', '.join(first) or 'none'}, the other {', '.join(second) or 'none'}")
    lost = max(0, before.frame_count - after.frame_count)
    return Comparison(changes, before.frame_count - lost, lost)


def drop_of(before: Doubles | float, after: Doubles | float) -> Doubles:
    """Return the drop of scores: 0 if they are equal, also if both are infinite, as those of identical frames in dB are."""
    with np.errstate(invalid="ignore"):
        return np.where(np.equal(before, after), 0.0, np.subtract(before, after))
