"""Ladders on a page: clips of one reference at several bit rates, and how much rate one ladder saves over another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Rung:
    """A clip of a ladder, by its number on the page, and its bit rate."""

    clip: int
    rate: float


@dataclass(frozen=True)
class Ladder:
    """A ladder by its name, such as a codec, and its rungs in rising order of bit rates."""

    name: str
    reference: str
    rungs: tuple[Rung, ...]


@dataclass(frozen=True)
class Delta:
    """The Bjøntegaard deltas of one ladder against another, by their names.

    `rate` is in per cent, `score` in dB where `decibels`, else in units of the metric. Both are None where there are no deltas:
    `reason` says why. `reference` is empty for the mean over all references. `warnings` are to be thought of before the deltas
    are believed.
    """

    metric: str
    reference: str
    test: str
    anchor: str
    rate: float | None = None
    score: float | None = None
    decibels: bool = False
    reason: str = ""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ladders:
    """All ladders of a page, and the deltas between them; `unit` is what their bit rates are in."""

    ladders: tuple[Ladder, ...] = ()
    deltas: tuple[Delta, ...] = ()
    unit: str = "kbit/s"

    def of_reference(self, reference: str) -> Sequence[tuple[int, Ladder]]:
        """Return the ladders of a reference with their numbers."""
        return [(number, ladder) for number, ladder in enumerate(self.ladders) if ladder.reference == reference]

    @property
    def references(self) -> list[str]:
        """Return the references that have ladders."""
        return list(dict.fromkeys(ladder.reference for ladder in self.ladders))
