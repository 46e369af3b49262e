"""Correlate scores with people's opinions: the command `vkssim correlate`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import InputError, OptionError
from ..utils.values import Section
from ..utils.wording import counted
from .batch import check_rows, score_rows
from .command import make_command, option
from .options import backend_options, clip_options, force_option, pooling_option, score_options, urls_option
from .output import LocalPathType, json_text, print_text, say, say_findings, say_written
from .tables import print_table

if TYPE_CHECKING:
    from ..frames.options import RawDescription
    from ..ladder.tables import Row

_OPINIONS = ("mos", "dmos")
_KIND = "distortion"
_NO_VALUE = "(none)"
_ESTIMATES = {"plcc": "PLCC", "plcc_raw": "PLCC raw", "srocc": "SROCC", "krocc": "KROCC", "rmse": "RMSE"}
"""The estimates and their headings."""


@make_command(
    "correlate",
    brief="Correlate scores with people's opinions.",
    examples="""
        vkssim correlate rated.csv -o rated.parquet
            Score the pairs of a manifest that has a column mos, and correlate.
        vkssim correlate rated.parquet --by codec --csv
            Correlate what is scored already, for each codec too, as CSV.
    """,
    common="""
        opinion by pooling form path width height pixel_format bits sync crop scale features planes device quiet
    """,
)
@click.argument("table", type=LocalPathType())
@option("--score opinion", Section.INPUTS, "Take people's opinions from that column. Default: mos or dmos.", metavar="COLUMN")
@option(
    "--by",
    Section.INPUTS,
    "Correlate also for each value of that column. Default: distortion, if there is one.",
    metavar="COLUMN",
)
@pooling_option
@force_option
@option("--json form", Section.OUTPUTS, "Print JSON in place of the table.", flag_value="json")
@option("--csv form", Section.OUTPUTS, "Print CSV in place of the table.", flag_value="csv")
@option(
    "-o --output path",
    Section.OUTPUTS,
    "Score a manifest and write its results there, as `vkssim batch` does.",
    metavar="FILE",
    type=LocalPathType(),
)
@urls_option
@clip_options(find_offset=False)
@backend_options
@option("-q --quiet", Section.OUTPUTS, "Print no progress while a manifest is scored.", is_flag=True)
def command(
    table: Path,
    opinion: str | None,
    by: str | None,
    pooling: str,
    force: bool,
    form: str | None,
    path: Path | None,
    urls: bool,
    raw: RawDescription,
    selector: dict[str, Any],
    quiet: bool,
    **values: Any,
) -> None:
    """Correlate scores with opinions: TABLE is results of `vkssim batch` with a column of opinions, or a manifest to score.

    For every score it prints, with 95 % confidence intervals: PLCC and RMSE after a logistic fit, PLCC of the scores as they
    are ("raw"), SROCC and KROCC. Rows that were not scored alike are refused, and the error names the difference.
    """
    from ..engine.pools import WorkerOptions
    from ..ladder.manifest import read_manifest
    from ..ladder.tables import check_scored, how_scored, is_results, labels_of, number, read_table, render_rows
    from ..metrics.comparability import check_alike

    rows = read_table(table)
    there = ", ".join(labels_of(rows)) or "no labels"
    opinion = opinion or next((name for name in _OPINIONS if name in rows[0]), None)
    if opinion is None:
        raise InputError(f"{table} has no column {' or '.join(_OPINIONS)}. The columns are {there}. --score names the opinions")
    for column in (opinion, by):
        if column is not None and column not in rows[0]:
            raise InputError(f"{table} has no column {column!r}. The columns are {there}")
    by = by or (_KIND if _KIND in rows[0] else None)
    if not is_results(rows):
        if path is None:
            raise OptionError(f"{table} has no scores yet; -o RESULTS.csv scores it first, as `vkssim batch` does")
        options, workers = score_options(values, selector["backend"]), WorkerOptions(**selector, processes=True)
        pairs = read_manifest(table, raw, urls=urls)
        for row in rows:
            number(row, opinion)  # an opinion that is no number is an error before anything is scored
        rows = score_rows(table, path, pairs, options, workers, quiet=quiet)
        if not quiet:
            say_written(path)
        check_rows(rows, path)
    check_scored(rows)
    say_findings(check_alike(how_scored(rows), force=force))
    try:
        correlations = list(_correlations(rows, opinion, by, pooling))
    except InputError as error:
        raise InputError(f"{table}, {error}") from None
    if form == "json":
        answer = {"opinion": opinion, "by": by, "pooling": pooling, "confidence": 0.95, "correlations": correlations}
        print_text(json_text(answer))
    elif form == "csv":
        numbers = [{key: value for key, value in row.items() if key != "fit"} for row in correlations]
        print_text(render_rows(numbers, ".csv").decode())
    else:
        _print(correlations, f"{table}: {pooling} against {opinion}", by or "")


def _correlations(rows: Sequence[Row], opinion: str, by: str | None, pooling: str) -> Iterator[dict[str, Any]]:
    """Yield the correlation of each score and each group. Raises InputError, which names them."""
    import numpy as np

    from ..ladder.correlate import correlate
    from ..ladder.tables import number, score_columns

    groups = _groups(rows, by)
    for score, column in score_columns(rows, (), pooling).items():
        for name, chosen in groups:
            try:
                cells = ([number(row, key) for row in chosen] for key in (column, opinion))
                correlation = correlate(*map(np.array, cells))
            except InputError as error:
                raise InputError(f"{score}, {name}: {error}") from None
            flat: dict[str, Any] = {"score": score, "group": name, "pairs": correlation.pairs}
            for estimate in _ESTIMATES:
                for part, value in asdict(getattr(correlation, estimate)).items():
                    flat[estimate if part == "value" else f"{estimate}_{part}"] = value
            yield {**flat, "fit": correlation.fit}


def _groups(rows: Sequence[Row], by: str | None) -> list[tuple[str, Sequence[Row]]]:
    """Return all rows, and the rows of each value of a column if there are enough; warn about the other values."""
    from ..ladder.correlate import MIN_PAIRS

    groups: list[tuple[str, Sequence[Row]]] = [("all", rows)]
    if by is None:
        return groups
    names = [_NO_VALUE if row[by] in (None, "") else str(row[by]) for row in rows]  # Parquet has null for CSV's empty cell
    for value in dict.fromkeys(names):
        chosen = [row for row, name in zip(rows, names, strict=True) if name == value]
        if len(chosen) >= MIN_PAIRS:
            groups.append((value, chosen))
        else:
            say(f"warning: {by} {value} is left out: {counted(len(chosen), 'pair')}, {MIN_PAIRS} are needed")
    return groups


def _print(correlations: Sequence[dict[str, Any]], title: str, by: str) -> None:
    rows = [
        [
            *(row["score"], row["group"], str(row["pairs"])),
            *(f"{row[name]:.4f}\n[{row[f'{name}_low']:.3f}, {row[f'{name}_high']:.3f}]" for name in _ESTIMATES),
        ]
        for row in correlations
    ]
    narrow = ("KROCC", "PLCC raw", "RMSE", "SROCC")
    columns = ("score", by, "pairs", *_ESTIMATES.values())
    print_table(title, columns, rows, texts=2, optional=narrow, elsewhere="--json has all")
