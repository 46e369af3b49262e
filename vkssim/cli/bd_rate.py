"""Compare two ladders of a batch's results: the command `vkssim bd-rate`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import InputError, OptionError, ThresholdError
from ..report.numbers import shortest, told_apart
from ..utils.values import Section
from ..utils.wording import counted, listed
from .command import Choice, make_command, option
from .options import force_option, json_option, pooling_option
from .output import LocalPathType, json_text, print_text, say, say_findings
from .tables import decimals, print_table

if TYPE_CHECKING:
    from ..ladder.tables import Row
    from ..report.bd_rate import RateCurve


@make_command(
    "bd-rate",
    brief="Compute Bjøntegaard deltas between two ladders.",
    examples="""
        vkssim bd-rate scores.parquet --anchor codec=x264 --test codec=x265
            Show how much more bit rate x265 needs than x264 for the same score.
        vkssim bd-rate scores.csv --anchor preset=fast --test preset=slow --score float_ms_ssim --pooling p5
            Compare two presets by one score, its 5th percentile.
        vkssim bd-rate scores.csv --anchor build=old --test build=new --score vmaf --fail-over 2
            Fail if the new build needs over 2 % more bit rate for the same VMAF.
    """,
)
@click.argument("results", type=LocalPathType())
@option(
    "--anchor",
    Section.INPUTS,
    "Take these rows as the ladder to beat. All conditions must hold.",
    required=True,
    multiple=True,
    metavar="LABEL=VALUE",
)
@option("--test", Section.INPUTS, "Take these rows as the other ladder.", required=True, multiple=True, metavar="LABEL=VALUE")
@option(
    "--score scores", Section.METRICS, "Compare that score only; may be repeated. Default: all.", multiple=True, metavar="NAME"
)
@pooling_option
@option(
    "--rate", Section.METRICS, "Take the bit rates from that column. Default: bitrate, else measured_kbps.", metavar="COLUMN"
)
@option(
    "--method",
    Section.METRICS,
    "Interpolate between the rungs of a ladder in that way.",
    type=Choice(["akima", "pchip", "cubic"]),
    default="akima",
)
@option(
    "--linear",
    Section.METRICS,
    "Compare similarities as they are. Default: in dB, -10 log10(1 - score), as the pages of `vkssim report` do.",
    is_flag=True,
)
@option(
    "--fail-over",
    Section.VERDICT,
    "Fail with exit code 1 if the BD-rate of a score is over that many percent, in the mean if there are several references;"
    " or if a reference has none, although the anchor has a curve.",
    type=float,
    metavar="PERCENT",
)
@force_option
@json_option
def command(
    results: Path,
    anchor: tuple[str, ...],
    test: tuple[str, ...],
    scores: tuple[str, ...],
    pooling: str,
    rate: str | None,
    method: str,
    linear: bool,
    fail_over: float | None,
    force: bool,
    as_json: bool,
) -> None:
    """Compute the Bjøntegaard deltas between two ladders in the RESULTS of `vkssim batch`, for each reference and their mean.

    BD-rate is how much more bit rate the test needs for the same score, in percent: below 0 it needs less. BD-score is how
    much higher its score is at the same bit rate. Similarities are compared in dB. Pairs that failed are left out with a
    warning, and so are references with too few pairs. Rows that were not scored alike are refused, and the error names the
    difference.
    """
    from ..ladder.tables import RATES, how_scored, is_results, is_similarity, read_table, score_columns, was_scored
    from ..metrics.comparability import check_alike

    rows = read_table(results)
    if not is_results(rows):
        raise InputError(f"{results} has no scores; `vkssim batch {results} -o RESULTS.csv` makes a file that has them")
    rate = rate or next(name for name in RATES if name in rows[0])
    ladders = [_select(rows, flag, conditions) for flag, conditions in (("--anchor", anchor), ("--test", test))]
    references = list(dict.fromkeys(row["reference"] for row in ladders[0]))
    compared = [row for ladder in ladders for row in ladder if row["reference"] in references]
    for row in compared:
        if not was_scored(row):
            say(f"warning: {row['distorted']} was not scored ({row['error']}) and is left out")
    say_findings(check_alike(how_scored(filter(was_scored, compared)), force=force))
    columns = score_columns(rows, scores, pooling)
    both = [row for ladder in ladders for row in ladder]
    ways = _Ways(columns, {score for score in columns if not linear and is_similarity(both, score)}, rate, method)
    deltas, lost = _deltas(dict(zip((" ".join(anchor), " ".join(test)), ladders, strict=True)), references, ways)
    means = _means(deltas) if len(references) > 1 else []
    problems = [] if fail_over is None else _problems(means or deltas, lost, fail_over)
    if as_json:
        answer = {"method": method, "rate": rate, "pooling": pooling, "deltas": deltas, "means": means, "lost": lost}
        print_text(json_text(answer if fail_over is None else {**answer, "fail_over": fail_over, "passed": not problems}))
    else:
        _print(f"{' '.join(test)} against {' '.join(anchor)}, {pooling}, {rate}, {method}", [*deltas, *means], method)
    if problems:
        raise ThresholdError(". ".join(problems))


@dataclass(frozen=True)
class _Ways:
    """The ways to compare: the column of each score, the scores in dB, the column of the bit rates, and the interpolation."""

    columns: Mapping[str, str]
    decibels: Collection[str]
    rate: str
    method: str


def _deltas(
    ladders: Mapping[str, Sequence[Row]], references: Sequence[str], ways: _Ways
) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    """Return the deltas of each reference and score, and those that are lost: the anchor has a curve, but there is no delta.

    All that have no delta are left out with a warning. Raises the first of their errors if none has any.
    """
    from ..report.bd_rate import bjontegaard_deltas

    deltas, lost = [], []
    errors: list[tuple[str, InputError]] = []
    for reference, score in product(references, ways.columns):
        curves: list[RateCurve] = []
        try:
            for name, ladder in ladders.items():
                curves.append(_curve(f"{name} of {reference}", ladder, reference, score, ways))
            found = bjontegaard_deltas(curves[0], curves[1], ways.method)
        except InputError as error:
            errors.append((score, error))
            if curves:
                lost.append({"reference": reference, "score": score, "reason": str(error)})
            continue
        for warning in found.warnings:
            say(f"warning: {score}: {warning}")
        deltas.append({"reference": reference, "score": score, "db": score in ways.decibels, **asdict(found)})
    if not deltas:
        raise errors[0][1]
    for score, reason in errors:
        say(f"warning: {score}: {reason}; this reference is left out")
    return deltas, lost


def _curve(name: str, ladder: Sequence[Row], reference: str, score: str, ways: _Ways) -> RateCurve:
    from ..ladder.tables import number, was_scored
    from ..report.bd_rate import RateCurve

    rungs = [row for row in ladder if row["reference"] == reference and was_scored(row)]
    points = [(number(row, ways.rate), number(row, ways.columns[score])) for row in rungs]
    return RateCurve.of(name, points, decibels=score in ways.decibels)


def _problems(judged: Sequence[dict[str, Any]], lost: Sequence[dict[str, str]], limit: float) -> list[str]:
    """Return sentences for the deltas over the limit, and for those that are lost."""
    problems = []
    if over := [row for row in judged if row["bd_rate"] > limit]:
        needs = ", ".join(f"{told_apart(row['bd_rate'], limit, 2)} % for {row['score']}" for row in over)
        problems.append(f"BD-rate {needs}; the limit is {shortest(limit)} % (--fail-over)")
    if lost:
        names = list(dict.fromkeys(row["reference"] for row in lost))
        problems.append(f"{counted(len(names), 'reference')} without a BD-rate, which meets no limit: {listed(names)}")
    return problems


def _print(title: str, rows: Sequence[dict[str, Any]], method: str) -> None:
    """Print a table of the deltas. Those that are not interpolated by the method that the title names are marked."""
    cells = [
        [
            row["reference"],
            row["score"],
            f"{row['bd_rate']:+z.2f} %",
            decimals(row["bd_score"]) + " dB" * row["db"],
            "" if row.get("method", method) == method else f"{row['method']}, {min(row['points'])} points",
        ]
        for row in rows
    ]
    columns = ("reference", "score", "BD-rate", "BD-score", "curves")
    print_table(title, columns, cells, texts=2, paths=columns[:1], optional=columns[3:4], elsewhere="--json has all")


def _select(rows: Sequence[Row], flag: str, conditions: Sequence[str]) -> list[Row]:
    from ..ladder.tables import labels_of

    for condition in conditions:
        label, equals, value = condition.partition("=")
        if not equals or label not in rows[0]:
            labels = ", ".join(["reference", *labels_of(rows)])
            raise OptionError(f"{flag} {condition}; it must be LABEL=VALUE, LABEL one of {labels}")
        texts = ["" if row[label] is None else str(row[label]) for row in rows]
        rows = [row for row, text in zip(rows, texts, strict=True) if text == value]
        if not rows:
            raise OptionError(f"{flag} {condition}: no row has that; {label} is {', '.join(dict.fromkeys(texts))}")
    return list(rows)


def _means(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the means of the deltas over all references, for each score."""
    means = []
    for score in dict.fromkeys(row["score"] for row in rows):
        of_score = [row for row in rows if row["score"] == score]
        mean = {name: sum(row[name] for row in of_score) / len(of_score) for name in ("bd_rate", "bd_score")}
        means.append({"reference": "mean", "score": score, "db": of_score[0]["db"], **mean})
    return means
