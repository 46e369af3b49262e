"""Compare two ladders of a batch's results: the command `vkssim bd-rate`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import InputError, OptionError
from ..utils.values import Section
from .command import Choice, make_command, option
from .options import force_option, json_option, pooling_option
from .output import LocalPathType, json_text, print_text, say, say_findings
from .tables import decimals, print_table

if TYPE_CHECKING:
    from ..ladder.tables import Row


@make_command(
    "bd-rate",
    brief="Compute Bjøntegaard deltas between two ladders.",
    examples="""
        vkssim bd-rate scores.parquet --anchor codec=x264 --test codec=x265
            Show how much more bit rate x265 needs than x264 for the same score.
        vkssim bd-rate scores.csv --anchor preset=fast --test preset=slow --score float_ms_ssim --pooling p5
            Compare two presets by one score, its 5th percentile.
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
    force: bool,
    as_json: bool,
) -> None:
    """Compute the Bjøntegaard deltas between two ladders in the RESULTS of `vkssim batch`, for each reference and their mean.

    BD-rate is how much more bit rate the test needs for the same score, in percent: below 0 it needs less. BD-score is how
    much higher its score is at the same bit rate. Similarities are compared in dB. Rows that were not scored alike are refused,
    and the error names the difference.
    """
    from ..ladder.tables import RATES, check_scored, how_scored, is_results, is_similarity, number, read_table, score_columns
    from ..metrics.comparability import check_alike
    from ..report.bd_rate import RateCurve, bjontegaard_deltas

    rows = read_table(results)
    if not is_results(rows):
        raise InputError(f"{results} has no scores; `vkssim batch {results} -o RESULTS.csv` makes a file that has them")
    rate = rate or next(name for name in RATES if name in rows[0])
    ladders = [_select(rows, flag, conditions) for flag, conditions in (("--anchor", anchor), ("--test", test))]
    references = list(dict.fromkeys(row["reference"] for row in ladders[0]))
    compared = [row for ladder in ladders for row in ladder if row["reference"] in references]
    check_scored(compared)
    say_findings(check_alike(how_scored(compared), force=force))
    rows_of_deltas: list[dict[str, Any]] = []
    for reference in references:
        for score, column in score_columns(rows, scores, pooling).items():
            converted = not linear and is_similarity(rows, score)
            curves = []
            for conditions, ladder in zip((anchor, test), ladders, strict=True):
                rungs = [row for row in ladder if row["reference"] == reference]
                rates, values = ([number(row, name) for row in rungs] for name in (rate, column))
                points = list(zip(rates, values, strict=True))
                curves.append(RateCurve.of(f"{' '.join(conditions)} of {reference}", points, decibels=converted))
            deltas = bjontegaard_deltas(curves[0], curves[1], method)
            for warning in deltas.warnings:
                say(f"warning: {score}: {warning}")
            rows_of_deltas.append({"reference": reference, "score": score, "db": converted, **asdict(deltas)})
    means = _means(rows_of_deltas) if len(references) > 1 else []
    if as_json:
        print_text(json_text({"method": method, "rate": rate, "pooling": pooling, "deltas": rows_of_deltas, "means": means}))
        return
    cells = [
        [row["reference"], row["score"], f"{row['bd_rate']:+z.2f} %", decimals(row["bd_score"]) + " dB" * row["db"]]
        for row in (*rows_of_deltas, *means)
    ]
    title = f"{' '.join(test)} against {' '.join(anchor)}, {pooling}, {rate}, {method}"
    columns = ("reference", "score", "BD-rate", "BD-score")
    print_table(title, columns, cells, texts=2, paths=columns[:1], optional=columns[3:], elsewhere="--json has all")


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
