"""Show a ladder as an HTML page: the scores over the bit rates of every size, the rungs, and the fixed ladder."""

from __future__ import annotations

from collections.abc import Sequence

from ..page.ladders import Delta, Ladder, Ladders, Rung
from ..page.pictures import no_pictures
from ..page.render import render_page
from .ladder import LadderSearch
from .rungs import FIXED, NEW, LadderChoice, LadderTrial


def ladder_page(search: LadderSearch) -> str:
    """Return the page of a search that is done. Raises VkssimError."""
    choice, trials, reports = search.choice, search.trials, search.reports
    reason = "the encodes of a search are not kept"
    return render_page(
        reports,
        no_pictures(reports, reason),
        ladders=_ladders(choice, trials, reports[0].reference),
        rates=[one.trial.kbps for one in trials],
        warnings=choice.notes,
        alike=True,
    )


def _ladders(choice: LadderChoice, trials: Sequence[LadderTrial], reference: str) -> Ladders:
    """Return a ladder for each size, and those of the rungs. A trial is known by its place among the trials."""
    numbers = {id(one): number for number, one in enumerate(trials)}

    def ladder(name: str, of: Sequence[LadderTrial]) -> Ladder:
        rungs = {numbers[id(one)]: Rung(numbers[id(one)], one.trial.kbps) for one in of}
        return Ladder(name, reference, tuple(sorted(rungs.values(), key=lambda rung: rung.rate)))

    sizes = sorted({(one.height, one.width) for one in trials}, reverse=True)
    found = [ladder(f"{width}x{height}", [one for one in trials if one.height == height]) for height, width in sizes]
    found += [ladder(name, rungs) for name, rungs in ((NEW, choice.rungs), (FIXED, choice.fixed)) if rungs]
    metric, _, pooling = choice.score.partition(":")
    deltas: tuple[Delta, ...] = ()
    if choice.deltas is not None and pooling == "mean":  # the page draws means
        decibels = "mean_db" in trials[0].pooled[metric]  # only a similarity has it
        deltas = (Delta(metric, reference, NEW, FIXED, choice.deltas.bd_rate, choice.deltas.bd_score, decibels),)
    return Ladders(tuple(found), deltas)
