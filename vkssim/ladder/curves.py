"""Find ladders among reports: group clips by reference and codec, and compute the Bjøntegaard deltas between the groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from ..errors import VkssimError
from ..page.ladders import Delta, Ladder, Ladders, Rung
from ..report.bd_rate import RateCurve, bjontegaard_deltas
from ..report.results import ScoreReport

LEAST_RUNGS = 2
"""The fewest clips of a ladder: one clip is not a curve."""


def find_ladders(
    reports: Sequence[ScoreReport], names: Sequence[str], rates: Sequence[float | None], metrics: Sequence[str], unit: str
) -> Ladders:
    """Return the ladders of reports, one for each clip, and the Bjøntegaard deltas between them.

    `names` are the ladders of the clips, such as their codecs; clips of different references are in different ladders. `rates`
    are their bit rates in `unit`, over 0; None if it is unknown, which excludes the clip. `metrics` are the scores to compute
    deltas of, by their means.
    """
    groups: dict[tuple[str, str], list[Rung]] = {}
    for clip, (report, name, rate) in enumerate(zip(reports, names, rates, strict=True)):
        if rate is not None and rate > 0:
            groups.setdefault((report.reference, name), []).append(Rung(clip, rate))
    ladders = tuple(
        Ladder(name, reference, tuple(sorted(rungs, key=lambda rung: (rung.rate, rung.clip))))
        for (reference, name), rungs in groups.items()
        if len(rungs) >= LEAST_RUNGS
    )
    deltas = list(_deltas(Ladders(ladders), reports, metrics))
    return Ladders(ladders, (*deltas, *_means(deltas)), unit)


def _deltas(ladders: Ladders, reports: Sequence[ScoreReport], metrics: Sequence[str]) -> Iterator[Delta]:
    """Yield the deltas of each pair of ladders of one reference. The ladder that came first is the anchor."""
    pooled = [report.pooled() for report in reports]
    for metric in metrics:
        decibels = any(metric in report.similarities for report in reports)
        for reference in ladders.references:
            for (_, anchor), (_, test) in combinations(ladders.of_reference(reference), 2):
                names = metric, reference, test.name, anchor.name
                try:
                    found = bjontegaard_deltas(_curve(anchor, pooled, metric, decibels), _curve(test, pooled, metric, decibels))
                except VkssimError as error:
                    yield Delta(*names, decibels=decibels, reason=str(error))
                    continue
                yield Delta(*names, found.bd_rate, found.bd_score, decibels, warnings=tuple(found.warnings))


def _curve(ladder: Ladder, pooled: Sequence[dict[str, dict[str, float]]], metric: str, decibels: bool) -> RateCurve:
    points = [(rung.rate, pooled[rung.clip][metric]["mean"]) for rung in ladder.rungs if metric in pooled[rung.clip]]
    finite = [(rate, score) for rate, score in points if np.isfinite(score)]
    return RateCurve.of(ladder.name or "unknown codec", finite, decibels=decibels)


def _means(deltas: Sequence[Delta]) -> Iterator[Delta]:
    """Yield the mean over all references of each pair of ladders, if there are several references and all have deltas."""
    pairs: dict[tuple[str, str, str], list[Delta]] = {}
    for delta in deltas:
        pairs.setdefault((delta.metric, delta.test, delta.anchor), []).append(delta)
    for (metric, test, anchor), found in pairs.items():
        rates = [delta.rate for delta in found if delta.rate is not None]
        scores = [delta.score for delta in found if delta.score is not None]
        if len(found) > 1 and len(rates) == len(scores) == len(found):
            means = float(np.mean(rates)), float(np.mean(scores))
            yield Delta(metric, "", test, anchor, *means, found[0].decibels)
