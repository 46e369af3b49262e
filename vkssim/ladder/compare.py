"""Compare two reports of the same frames: compute the change of each score, and check it against thresholds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    """Hold the change of one score.

    A difference is the second report's value minus the first's; a drop is the negated difference.

    `before` and `after` are the pooled values of each report's own frames. `mean_difference`, `max_drop` and `max_drop_frame`
    are computed over the `frames` that both reports have; they are NaN and None if a frame has no score in one of them.
    """

    before: Mapping[str, float]
    after: Mapping[str, float]
    frames: int
    mean_difference: float
    max_drop: float
    max_drop_frame: int | None


@dataclass(frozen=True)
class Threshold:
    """Require that a score's pooled value, or its worst frame (`FRAME`), drops by no more than `most`."""

    score: str
    pooling: str
    most: float

    @classmethod
    def parse(cls, text: str, *, frame: bool = False) -> Threshold:
        """Return the threshold that `NAME=X` or `NAME:POOLING=X` states. Raises OptionError."""
        name = "max_frame_drop" if frame else "max_drop"
        score, pooling, most = split_threshold(text)
        if not (score and most >= 0 and np.isfinite(most)) or (pooling is not None and (frame or not pooling)):
            form = "NAME=X" if frame else "NAME=X or NAME:POOLING=X"
            raise OptionError(f"`{name}` {text!r}; it must be {form}, X a number of 0 or more, as in float_ms_ssim=0.002")
        if frame:
            return cls(score, FRAME, most)
        return cls(score, pooling or "mean", most)

    def drop(self, changes: Mapping[str, Change]) -> float:
        """Return the drop of the value; below 0 if it rose. Raises OptionError if the reports have no such value."""
        if self.score not in changes:
            meant = did_you_mean(self.score, changes)
            raise OptionError(f"no score {self.score} in both reports{meant}. Available scores: {', '.join(changes)}")
        change = changes[self.score]
        if self.pooling == FRAME:
            return change.max_drop
        if self.pooling not in change.before:
            meant = did_you_mean(self.pooling, POOLINGS)
            raise OptionError(f"no pooled value {self.pooling}{meant}. Available: {', '.join(change.before)}")
        return change.before[self.pooling] - change.after[self.pooling]


@dataclass(frozen=True)
class Verdict:
    """Hold a threshold and the drop of its value. A drop of NaN, because a frame has no score, fails every threshold."""

    threshold: Threshold
    drop: float

    @property
    def met(self) -> bool:
        """Return True where the drop is allowed."""
        return self.drop <= self.threshold.most


def compare_reports(before: ScoreReport, after: ScoreReport) -> dict[str, Change]:
    """Return the change of each score that both reports have. Raises InputError where they share no score or no frame."""
    names = [name for name in before.names if name in after.names]
    if not names:
        raise InputError(f"no score in both reports: one has {_listed(before.names)}, the other {_listed(after.names)}")
    places = {frame.index: place for place, frame in enumerate(after.frames)}
    shared = [(place, places[frame.index]) for place, frame in enumerate(before.frames) if frame.index in places]
    if not shared:
        raise InputError("no frame is in both reports; were they scored with the same `subsample`?")
    rows = np.array(shared)
    numbers = [before.frames[place].index for place in rows[:, 0]]
    return {name: _change(before.column(name), after.column(name), rows, numbers) for name in names}


def judge(changes: Mapping[str, Change], thresholds: Sequence[Threshold]) -> list[Verdict]:
    """Return the verdict on each threshold. Raises OptionError if the reports lack the score or the pooled value of one."""
    return [Verdict(threshold, threshold.drop(changes)) for threshold in thresholds]


def _change(before: Doubles, after: Doubles, rows: np.ndarray, numbers: Sequence[int]) -> Change:
    with np.errstate(invalid="ignore"):  # two infinite scores in dB have the difference NaN
        differences = after[rows[:, 1]] - before[rows[:, 0]]
    worst = int(np.argmin(differences))  # argmin returns a NaN if there is one
    complete = not np.isnan(differences[worst])
    return Change(
        pool(before),
        pool(after),
        len(rows),
        float(differences.mean()),
        float(-differences[worst]),
        numbers[worst] if complete else None,
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"
