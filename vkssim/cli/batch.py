"""Score all pairs of a manifest: the command `vkssim batch`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import InputError, OptionError, ThresholdError
from ..host.errors import COMPILE_LOG
from ..storage.location import is_url, redact_url
from ..utils.choices import TASK_SECONDS
from ..utils.progress import ProgressBar
from ..utils.values import Section
from .command import make_command, option
from .options import (
    backend_options,
    clip_options,
    decode_option,
    engine_options,
    fail_under_option,
    ladder_option,
    score_options,
    single_device,
    urls_option,
)
from .output import COMPILE_NOTES, PathOrUrlType, check_target, check_targets, say, say_written, with_flags
from .report import PageOptions, limits_text, write_page_of
from .tables import decimals, duration, print_line, print_table, without_common_part

if TYPE_CHECKING:
    from ..engine.options import ScoreOptions
    from ..engine.pools import WorkerOptions
    from ..frames.options import RawDescription
    from ..ladder.manifest import Pair
    from ..ladder.tables import Row
    from ..report.thresholds import Threshold
    from ..storage.location import PathOrUrl


_SETTINGS = ("crf", "qp", "cq")  # labels that a narrow table keeps
_MAX_FAILURES = 8  # the most failures that a plan lists


@make_command(
    "batch",
    brief="Score all pairs of a manifest.",
    examples="""
        vkssim batch ladder.csv -o scores.parquet --frames frames
            Score all pairs, and keep the scores of every frame in a folder.
        vkssim batch ladder.csv -o scores.csv --device all
            Score on all GPUs of this machine.
        vkssim batch ladder.csv -o scores.csv --plan
            Show how long that takes, and score nothing.
    """,
    common="""
        path html frames width height pixel_format bits start end sync crop scale features planes find_offset fail_under
        strict device engine plan quiet
    """,
)
@click.argument("manifest", type=PathOrUrlType())
@option(
    "-o --output path",
    Section.OUTPUTS,
    "Write the results there: .parquet, .csv or .jsonl.",
    required=True,
    metavar="FILE",
    type=PathOrUrlType(),
)
@option(
    "--frames",
    Section.OUTPUTS,
    "Write the scores of every frame there, one JSON for each pair.",
    metavar="FOLDER",
    type=PathOrUrlType(),
)
@option("--html", Section.OUTPUTS, "Write the page of `vkssim report` of the results there.", metavar="FILE")
@ladder_option
@urls_option
@clip_options(find_offset=True)
@fail_under_option("Fail with exit code 1 if a pooled score of a pair is lower; see `vkssim score`. May be repeated.")
@option(
    "--strict",
    Section.VERDICT,
    "Count a pair as failed if a clip is damaged or shorter, or the frame rates differ.",
    is_flag=True,
)
@backend_options
@decode_option
@engine_options
@option(
    "--task-seconds",
    Section.DEVICE,
    "Divide the clips for several devices into ranges of frames that take about that long.",
    type=click.FloatRange(0.1, 3600),
    default=TASK_SECONDS,
)
@option("--plan", Section.OUTPUTS, "Show the tasks, bytes and time of the whole manifest, and score nothing.", is_flag=True)
@option("-q --quiet", Section.OUTPUTS, "Print no progress and no table.", is_flag=True)
def command(
    manifest: PathOrUrl,
    path: PathOrUrl,
    frames: PathOrUrl | None,
    html: str | None,
    ladder: tuple[str, ...],
    urls: bool,
    raw: RawDescription,
    find_offset: bool,
    fail_under: tuple[str, ...],
    selector: dict[str, Any],
    engine: dict[str, Any],
    task_seconds: float,
    plan: bool,
    quiet: bool,
    **values: Any,
) -> None:
    """Score all pairs of a MANIFEST: CSV or JSON lines with `reference`, `distorted` and labels.

    The columns offset, scale, crop, film_grain and merge set these options for a row. A run that was cut off continues when
    it is restarted; a pair that cannot be scored is a row with its error.
    """
    from ..engine.options import check_options
    from ..engine.pools import WorkerOptions
    from ..ladder.manifest import read_manifest
    from ..report.thresholds import parse_threshold

    alone = single_device(selector)
    options = score_options(values, selector["backend"])
    thresholds = [parse_threshold(text) for text in fail_under]
    workers = WorkerOptions(**selector, **engine, processes=True)
    pairs = read_manifest(manifest, raw, urls=urls)
    check_options(options, thresholds, _merged_names(pairs, thresholds))
    if plan:
        _print_plan(pairs, options, workers, task_seconds)
        return
    check_targets([("--html", html)], [str(manifest), str(path)])
    if html is not None and is_url(str(path)):
        raise OptionError(f"--html shows a table on this machine, and --output is {redact_url(path)}; give --output a file")
    _check_ladder(ladder, html, pairs)
    rows = score_rows(
        manifest, path, pairs, options, workers, quiet=quiet, seconds=task_seconds, frames=frames, find_offsets=find_offset
    )
    if not quiet:
        say_written(path)
    shown = PageOptions(raw, alone, thresholds=thresholds, urls=urls)
    deliver_rows(rows, path, html, shown, ladder=ladder, quiet=quiet)


def deliver_rows(
    rows: Sequence[Row],
    path: PathOrUrl,
    html: str | None,
    page: PageOptions,
    *,
    ladder: Sequence[str] = (),
    quiet: bool,
    kept: bool = True,
) -> None:
    """Print rows and make a page of them. Raises ThresholdError if a pair failed or is below a limit.

    `path` is the table that has the rows, and `kept` whether the user keeps it. `ladder` are the columns that tell ladders
    apart.
    """
    shown = redact_url(path) if kept else None
    if not quiet:
        _print(rows, shown)
    if html is not None:
        write_page_of([Path(path)], html, "--html", page, ladder=ladder)
        if not quiet:
            say_written(html)
    check_rows(rows, shown, page.thresholds)


def _check_ladder(ladder: Sequence[str], html: str | None, pairs: Sequence[Pair]) -> None:
    """Raise OptionError, before anything is scored, for a column that the results will not have."""
    from ..ladder.tables import COLUMNS

    if ladder and html is None:
        raise OptionError("--ladder tells the ladders of a page apart; give --html as well")
    labels = dict.fromkeys(name for pair in pairs for name in pair.labels)
    for name in ladder:
        if name not in (*labels, *COLUMNS):
            raise OptionError(f"--ladder {name}: no such column. The labels of the manifest are {', '.join(labels) or 'none'}")


def _merged_names(pairs: Sequence[Pair], thresholds: Sequence[Threshold]) -> set[str]:
    """Return names of scores that the rows add from files; of as many files as name every score of the thresholds."""
    from ..report.reading import names_to_merge, read_report

    names: set[str] = set()
    for merge in dict.fromkeys(pair.merge for pair in pairs if pair.merge is not None):
        if names.issuperset(threshold.name for threshold in thresholds):
            break
        with suppress(InputError):  # it fails its row
            names.update(names_to_merge(read_report(Path(merge))))
    return names


def score_rows(
    manifest: PathOrUrl | None,
    path: PathOrUrl,
    pairs: Sequence[Pair],
    options: ScoreOptions,
    workers: WorkerOptions,
    *,
    quiet: bool,
    seconds: float = TASK_SECONDS,
    **how: Any,
) -> list[Row]:
    """Score pairs into a table at `path`, show the progress, and return the rows; `how` is for `score_manifest`."""
    from ..ladder.batch import BatchSettings, score_manifest

    inputs = {*([] if manifest is None else [str(manifest)]), *(clip for pair in pairs for clip in pair.clips.paths)}
    check_target(path, "--output", sorted(inputs))
    if quiet:
        COMPILE_LOG.removeHandler(COMPILE_NOTES)
    with closing(ProgressBar()) as bar:
        settings = BatchSettings(
            workers=workers,
            seconds=seconds,
            progress=bar if sys.stderr.isatty() and not quiet else None,
            on_note=lambda text: None if quiet else say(f"note: {text}"),
            warn=lambda trouble: say(f"warning: {trouble}"),
            worded=with_flags,
        )
        return score_manifest(pairs, path, options, settings, **how)


def _print_plan(pairs: Sequence[Pair], options: ScoreOptions, workers: WorkerOptions, task_seconds: float) -> None:
    from ..ladder.batch import forecast

    kinds, cores = workers.kinds()
    expected = forecast(pairs, options, kinds, cores, task_seconds)
    rows = [
        ["pairs", f"{expected.pairs:,}"],
        ["frames", f"{expected.frames:,}"],
        ["tasks", f"{expected.tasks:,}"],
        ["read", f"{expected.bytes / 1e9:,.2f} GB"],
        [f"time of one {kinds[0]} worker", duration(expected.seconds)],
        [f"time on {', '.join(f'{count} {kind}' for kind, count in Counter(kinds).items())}", duration(expected.elapsed)],
    ]
    print_table("plan", ["", "expected"], rows)
    if expected.opened < expected.pairs:
        say(f"note: {expected.opened} of {expected.pairs} pairs were looked at")
    for failure in expected.failed[:_MAX_FAILURES]:
        say(f"warning: {failure}")
    if (more := len(expected.failed) - _MAX_FAILURES) > 0:
        say(f"warning: {more:,} more of these pairs cannot be scored")
    say("note: times go by the rates in docs/cluster.md; the device, its storage and the clips may change them severalfold")


def check_rows(rows: Sequence[Row], path: PathOrUrl | None, thresholds: Sequence[Threshold] = ()) -> None:
    """Print the warnings of each pair. Raises ThresholdError if pairs failed or are below a threshold; it names both.

    `path` is the table that has the rows, if any.
    """
    for row in rows:
        for word, column in (("warning", "warnings"), ("error", "error")):
            if row[column] is not None:
                clip = "" if str(row[column]).startswith(f"{row['distorted']} ") else f"{row['distorted']}: "
                say(f"{word}: {clip}{row[column]}")
    scored, below = [row for row in rows if row["error"] is None], []
    for row in scored:
        pooled = {threshold: row.get(f"{threshold.name}_{threshold.pooling}") for threshold in thresholds}
        if any(value is None or value < threshold.limit for threshold, value in pooled.items()):
            below.append(row["distorted"])
    problems = [limits_text(below, len(scored))] if below else []
    if len(scored) < len(rows):
        rest = "" if path is None else f"; {redact_url(path)} has the scores of the rest, and the errors in its column error"
        problems.append(f"{len(rows) - len(scored)} of {len(rows)} pairs failed{rest}")
    if problems:
        raise ThresholdError("; ".join(problems))


def _print(rows: Sequence[Row], path: str | None) -> None:
    """Print the rows, those of a reference together, and below them once whatever all rows have. `path` is their table."""
    from ..ladder.tables import labels_of, scores_of

    scores, labels = scores_of(rows), labels_of(rows)
    references = list(dict.fromkeys(row["reference"] for row in rows))
    rows = sorted(rows, key=lambda row: references.index(row["reference"]))
    starts = [number for number, row in enumerate(rows) if not number or row["reference"] != rows[number - 1]["reference"]]
    short = dict(zip(references, without_common_part(references), strict=True))

    pooled = {f"{name} {pooling}": f"{name}_{pooling}" for pooling in ("mean", "p5", "min") for name in scores}
    texts = {
        "reference": [short[row["reference"]] if number in starts else "" for number, row in enumerate(rows)],
        "distorted": without_common_part([row["distorted"] for row in rows]),
        **{name: ["" if row[name] is None else str(row[name]) for row in rows] for name in labels},
    }
    common = {name: texts[name][0] for name in labels if len(rows) > 1 and len(set(texts[name])) == 1}
    if len(references) == 1:
        common = {"reference": references[0], **common}
    columns = {name: cells for name, cells in texts.items() if name not in common}
    names = list(columns)
    columns["kbit/s"] = [_rate(row) for row in rows]
    for heading, column in pooled.items():
        columns[heading] = ["" if row["frames"] is None else decimals(row[column]) for row in rows]

    means, low = list(pooled)[: len(scores)], list(pooled)[len(scores) :]
    lesser = [name for name in reversed(names) if name in labels and name not in _SETTINGS]
    print_table(
        path or "",
        list(columns),
        list(zip(*columns.values(), strict=True)),
        texts=len(names),
        paths=("reference", "distorted"),
        optional=[*reversed(low), *lesser, "kbit/s", *means[:0:-1]],  # the first is left out first
        elsewhere="-o FILE.csv writes all" if path is None else "the file has all",
        sections=starts,
    )
    if common:
        print_line(sys.stdout, "all rows: ", ", ".join(f"{name} {text}" for name, text in common.items() if text))


def _rate(row: Row) -> str:
    """Return the bit rate of a row, or that it failed."""
    if row["frames"] is None:
        return "failed"
    return "" if row["measured_kbps"] is None else f"{row['measured_kbps']:,.0f}"
