"""The ladders of a page: the clips of a reference at several bit rates, grouped by codec, and the deltas between ladders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ..errors import VkssimError
from ..report.bd_rate import RateCurve, bjontegaard_deltas
from ..report.results import ScoreReport
from .tables import split_names

_MIN_RUNGS = 2  # one clip is not a curve


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
    """The Bjøntegaard deltas of one ladder against another, both by name."""

    metric: str
    reference: str
    """Empty for the mean over all references."""
    test: str
    anchor: str
    rate: float | None = None
    """In per cent; None, as `score`, if the deltas cannot be computed."""
    score: float | None = None
    decibels: bool = False
    """Whether `score` is in dB."""
    reason: str = ""
    """The reason why there are no deltas."""
    warnings: tuple[str, ...] = ()
    """They limit how far the deltas can be trusted."""


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


def find_ladders(
    reports: Sequence[ScoreReport], names: Sequence[str | None], rates: Sequence[float | None], unit: str
) -> Ladders:
    """Return the ladders of clips, by reference and by `names` such as presets, and the deltas between them by mean scores.

    A clip without a name is on no ladder. `rates` are the bit rates of the clips in `unit`; None if it is unknown, which
    excludes the clip.
    """
    groups: dict[tuple[str, str], list[Rung]] = {}
    for clip, (report, name, rate) in enumerate(zip(reports, names, rates, strict=True)):
        if name is not None and rate is not None and rate > 0:
            groups.setdefault((report.reference, name), []).append(Rung(clip, rate))
    ladders = tuple(
        Ladder(name, reference, tuple(sorted(rungs, key=lambda rung: (rung.rate, rung.clip))))
        for (reference, name), rungs in groups.items()
        if len(rungs) >= _MIN_RUNGS
    )
    deltas = list(_deltas(Ladders(ladders), reports))
    return Ladders(ladders, (*deltas, *_means(deltas)), unit)


def _deltas(ladders: Ladders, reports: Sequence[ScoreReport]) -> Iterator[Delta]:
    """Yield the deltas of each pair of ladders of one reference. The ladder that came first is the anchor."""
    pooled = [report.pooled() for report in reports]
    metrics, _ = split_names(reports)
    for metric in metrics:
        decibels = any(metric in report.similarities for report in reports)
        for reference in ladders.references:
            for (_, anchor), (_, test) in combinations(ladders.of_reference(reference), 2):
                names = metric, reference, test.name, anchor.name
                try:
                    curves = [_curve(ladder, pooled, metric, decibels) for ladder in (anchor, test)]
                    deltas = bjontegaard_deltas(curves[0], curves[1])
                except VkssimError as error:
                    yield Delta(*names, decibels=decibels, reason=str(error))
                    continue
                yield Delta(*names, deltas.bd_rate, deltas.bd_score, decibels, warnings=tuple(deltas.warnings))


def _curve(ladder: Ladder, pooled: Sequence[dict[str, dict[str, float]]], metric: str, decibels: bool) -> RateCurve:
    points = [(rung.rate, pooled[rung.clip][metric]["mean"]) for rung in ladder.rungs if metric in pooled[rung.clip]]
    finite = [(rate, score) for rate, score in points if np.isfinite(score)]
    return RateCurve.of(ladder.name or "unknown codec", finite, decibels=decibels)


def _means(deltas: Sequence[Delta]) -> Iterator[Delta]:
    """Yield the mean over all references of each pair of ladders, if there are several references and all have deltas."""
    pairs: dict[tuple[str, str, str], list[Delta]] = {}
    for delta in deltas:
        pairs.setdefault((delta.metric, delta.test, delta.anchor), []).append(delta)
    for (metric, test, anchor), of_pair in pairs.items():
        values = [(delta.rate, delta.score) for delta in of_pair if delta.rate is not None and delta.score is not None]
        if len(values) == len(of_pair) > 1:
            rate, score = np.mean(values, axis=0).tolist()
            yield Delta(metric, "", test, anchor, rate, score, of_pair[0].decibels)
