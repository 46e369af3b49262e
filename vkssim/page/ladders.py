"""The ladders of a page: the clips of a reference at several bit rates, grouped by codec, and the deltas between ladders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ..errors import VkssimError
from ..report.bd_rate import ENOUGH_POINTS, RateCurve, bjontegaard_deltas
from ..report.results import ScoreReport
from ..utils.wording import counted
from .tables import split_names

UNNAMED = "unknown codec"
"""The name of a ladder that has none."""
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
    """Empty for the mean over all references that have deltas."""
    test: str
    anchor: str
    rate: float | None = None
    """In per cent; None, as `score`, if the deltas cannot be computed."""
    score: float | None = None
    decibels: bool = False
    """Whether `score` is in dB."""
    few: int = 0
    """How many clips the shorter ladder has, if these are too few for a reliable curve."""
    reason: str = ""
    """The reason why there are no deltas."""
    warnings: tuple[str, ...] = ()
    """They limit how far the deltas can be trusted."""


@dataclass(frozen=True)
class Headline:
    """The bit rate of one ladder against another, as a sentence and, if there are several references, for how many it holds."""

    text: str
    counts: str


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

    @property
    def names(self) -> list[str]:
        """Return the names of the ladders. Those of one name have one colour."""
        return list(dict.fromkeys(ladder.name for ladder in self.ladders))

    def headlines(self, metric: str) -> list[Headline]:
        """Return the result of the deltas of a score, for each ladder against the first."""
        deltas = [delta for delta in self.deltas if delta.metric == metric and delta.anchor == self.names[0]]
        tests = dict.fromkeys(delta.test for delta in deltas)
        found = [_headline([delta for delta in deltas if delta.test == test]) for test in tests]
        return [headline for headline in found if headline is not None]


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


def _headline(deltas: Sequence[Delta]) -> Headline | None:
    """Return the result of the deltas of a pair of ladders, the last of which is the mean if there are several references."""
    of_all = deltas[-1]
    if of_all.rate is None:
        return None
    rate, unsigned = of_all.rate, f"{abs(of_all.rate):.1f}"
    needs = "as much" if unsigned == "0.0" else f"{unsigned}\N{NO-BREAK SPACE}% {'less' if rate < 0 else 'more'}"
    than = "as" if unsigned == "0.0" else "than"
    of_each = [delta.rate for delta in deltas if delta.reference]
    counts = {
        "better": sum(rate is not None and rate < 0 for rate in of_each),
        "worse": sum(rate is not None and rate > 0 for rate in of_each),
        "without a BD-rate": of_each.count(None),
    }
    (word, count), *others = [entry for entry in counts.items() if entry[1]] or [("equal", len(of_each))]
    listed = ", ".join(
        [f"{'' if others else 'all '}{counted(count, 'title')} {word}", *(f"{n} {other}" for other, n in others)]
    )
    test, anchor = of_all.test or UNNAMED, of_all.anchor or UNNAMED
    text = f"{test} needs {needs} bit rate {than} {anchor} for the same {of_all.metric}"
    return Headline(text, listed if len(of_each) > 1 else "")


def _deltas(ladders: Ladders, reports: Sequence[ScoreReport]) -> Iterator[Delta]:
    """Yield the deltas of each pair of ladders of one reference. The name that came first on the page is the anchor."""
    pooled = [report.pooled() for report in reports]
    metrics, _ = split_names(reports)
    for metric in metrics:
        decibels = any(metric in report.similarities for report in reports)
        for reference in ladders.references:
            of_reference = sorted(
                (ladder for _, ladder in ladders.of_reference(reference)), key=lambda ladder: ladders.names.index(ladder.name)
            )
            for anchor, test in combinations(of_reference, 2):
                names = metric, reference, test.name, anchor.name
                try:
                    curves = [_curve(ladder, pooled, metric, decibels) for ladder in (anchor, test)]
                    deltas = bjontegaard_deltas(curves[0], curves[1])
                except VkssimError as error:
                    yield Delta(*names, decibels=decibels, reason=str(error))
                    continue
                few = min(deltas.points) if min(deltas.points) < ENOUGH_POINTS else 0
                yield Delta(*names, deltas.bd_rate, deltas.bd_score, decibels, few, warnings=tuple(deltas.warnings))


def _curve(ladder: Ladder, pooled: Sequence[dict[str, dict[str, float]]], metric: str, decibels: bool) -> RateCurve:
    points = [(rung.rate, pooled[rung.clip][metric]["mean"]) for rung in ladder.rungs if metric in pooled[rung.clip]]
    finite = [(rate, score) for rate, score in points if np.isfinite(score)]
    return RateCurve.of(ladder.name or UNNAMED, finite, decibels=decibels)


def _means(deltas: Sequence[Delta]) -> Iterator[Delta]:
    """Yield the mean of each pair of ladders over the references that have deltas, if there are several references."""
    pairs: dict[tuple[str, str, str], list[Delta]] = {}
    for delta in deltas:
        pairs.setdefault((delta.metric, delta.test, delta.anchor), []).append(delta)
    for (metric, test, anchor), of_pair in pairs.items():
        values = [(delta.rate, delta.score) for delta in of_pair if delta.rate is not None and delta.score is not None]
        if values and len(of_pair) > 1:
            rate, score = np.mean(values, axis=0).tolist()
            yield Delta(metric, "", test, anchor, rate, score, of_pair[0].decibels)
