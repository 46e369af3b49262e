"""The ladders of a page, each of clips of one reference at several bit rates, and the rate that one saves over another."""

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
    """A ladder: its name, such as a codec, and its rungs in ascending order of bit rates."""

    name: str
    reference: str
    rungs: tuple[Rung, ...]


@dataclass(frozen=True)
class Delta:
    """The Bjøntegaard deltas of one ladder against another, both by name.

    `rate` is in per cent, `score` in dB if `decibels` is True. Both are None if the deltas cannot be computed, and `reason`
    says why. `reference` is empty for the mean over all references. `warnings` limit how far the deltas can be trusted.
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
    """All ladders of a page, and the deltas between them; `unit` is the unit of their bit rates."""

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
