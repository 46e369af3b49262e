"""Compare the results of two batches, or two folders of reports, and print what fell."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from ..errors import OptionError, ThresholdError
from ..report.numbers import shortest
from ..utils.wording import counted, listed
from .output import json_text, print_text, say_findings
from .tables import decimals, print_table

if TYPE_CHECKING:
    from ..ladder.compare import Change, DropLimit
    from ..ladder.corpus import CorpusComparison, PairChange

    _Judged = tuple[PairChange, list[tuple[DropLimit, float]]]

_MAX_ROWS = 20  # the most rows of the table of clips that fell


def compare_and_print(before: Path, after: Path, limits: Sequence[DropLimit], *, force: bool, as_json: bool) -> None:
    """Print how the scores of all pairs changed. Raises ThresholdError, which names the pairs that fell below a limit."""
    from ..ladder.compare import FRAME
    from ..ladder.corpus import compare_corpora

    compared = compare_corpora(before, after, force=force)
    without = [pair.name for pair in compared.pairs if not pair.has_frames]
    if without and any(limit.pooling == FRAME for limit in limits):
        cure = "`vkssim batch --frames FOLDER` keeps them"
        raise OptionError(f"`max_frame_drop` needs the scores of every frame, which {without[0]} lacks; {cure}")
    judged = [(pair, [(limit, limit.drop(pair.compared)) for limit in limits]) for pair in compared.pairs]
    if not limits:
        compared.findings.warnings.extend(f"{name} is lost: {reason}" for name, reason in compared.lost)
    say_findings(compared.findings)
    broken, lost = list(_broken(judged)), compared.lost if limits else ()
    if as_json:
        print_text(json_text(_answer(compared, judged, passed=not (broken or lost))))
    else:
        _print(compared, f"{before} to {after}", {name for name, _ in broken} if limits else None)
    problems = []
    if broken:
        fell = len(dict.fromkeys(name for name, _ in broken))
        problems.append(f"{fell} of {counted(len(judged), 'pair')} fell too far: {_listed(broken)}")
    if lost:
        problems.append(f"{counted(len(lost), 'pair')} lost, and lost pairs meet no limit: {_listed(lost)}")
    if problems:
        raise ThresholdError(". ".join(problems))


def drop_text(limit: DropLimit, drop: float) -> str:
    """Return a sentence about a drop that is larger than its limit allows."""
    return f"{limit.score} {limit.pooling} drops by {decimals(drop, limit.most)}, allowed are {shortest(limit.most)}"


def _listed(reasons: Sequence[tuple[str, str]]) -> str:
    return listed([f"{name}: {reason}" for name, reason in reasons], separator="; ")


def _broken(judged: Sequence[_Judged]) -> Iterator[tuple[str, str]]:
    """Yield the pairs that miss a limit, with the reason. A pair that has lost frames meets none."""
    for pair, drops in judged:
        for limit, drop in drops:
            if not drop <= limit.most:
                yield pair.name, drop_text(limit, drop)
        if drops and pair.compared.lost:
            yield pair.name, f"{counted(pair.compared.lost, 'frame')} lost, and lost frames meet no limit"


def _answer(compared: CorpusComparison, judged: Sequence[_Judged], *, passed: bool) -> dict[str, Any]:
    pairs = []
    for pair, drops in judged:
        demands = [{**asdict(limit), "drop": drop, "met": limit.met(pair.compared)} for limit, drop in drops]
        pairs.append({"name": pair.name, **asdict(pair.compared), "demands": demands})
    lost = [{"name": name, "reason": reason} for name, reason in compared.lost]
    findings = compared.findings
    return {"pairs": pairs, "lost": lost, "passed": passed, "warnings": findings.warnings, "notes": findings.notes}


def _print(compared: CorpusComparison, title: str, broken: set[str] | None) -> None:
    """Print the means over all pairs, and the pairs that fell: those in `broken`, or for None all whose mean is lower."""
    from ..ladder.compare import drop_of

    rows, fallen = [], []
    for name in dict.fromkeys(name for pair in compared.pairs for name in pair.compared.scores):
        of_pairs = [(pair.name, pair.compared.scores[name]) for pair in compared.pairs if name in pair.compared.scores]
        drops = [float(drop_of(change.before["mean"], change.after["mean"])) for _, change in of_pairs]
        means = [
            fmean(values["mean"] for values in side) for side in zip(*((c.before, c.after) for _, c in of_pairs), strict=True)
        ]
        fell = sum(not drop <= 0 for drop in drops)
        rows.append([name, *map(decimals, (*means, means[1] - means[0])), str(len(drops)), str(fell)])
        for (clip, change), drop in zip(of_pairs, drops, strict=True):
            if clip in broken if broken is not None else not drop <= 0:
                fallen.append((drop, [clip, name, *_cells(change, drop)]))
    heads = ["score", "mean before", "mean after", "difference", "pairs", "of these fell"]
    print_table(title, heads, rows, optional=heads[1:2], elsewhere="--json has all")
    if fallen:
        fallen.sort(key=lambda entry: math.inf if math.isnan(entry[0]) else entry[0], reverse=True)
        caption = "pairs that fell" if broken is None else "pairs that fell too far"
        if len(fallen) > _MAX_ROWS:
            caption += f", the worst {_MAX_ROWS} of {len(fallen)}"
        columns = ["distorted", "score", "mean before", "mean after", "difference", "largest drop", "in frame"]
        narrow = ["in frame", "mean before", "largest drop"]
        cells = [row for _, row in fallen[:_MAX_ROWS]]
        print_table(caption, columns, cells, texts=2, paths=columns[:1], optional=narrow, elsewhere="--json has all")


def _cells(change: Change, drop: float) -> list[str]:
    """Return the means of a score, their difference, and the largest drop of a frame if frames were compared."""
    frame = "" if change.max_drop_frame is None else str(change.max_drop_frame)
    means = (decimals(change.before["mean"]), decimals(change.after["mean"]), decimals(-drop))
    return [*means, decimals(change.max_drop) if frame else "", frame]
