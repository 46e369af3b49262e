"""Compare two reports of the same clip: the command `vkssim compare`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import DemandError
from ..utils.sections import Section
from ..utils.wording import counted
from .command import make_command, option
from .messages import say_findings
from .options import force_option
from .output import json_text, print_text
from .tables import decimals, print_table

if TYPE_CHECKING:
    from ..ladder.compare import Change, Verdict
    from ..report.results import ScoreReport
    from ..scoring.comparability import Findings


_LEFT_OUT_FIRST = ("mean difference", "frames", "in frame", "largest drop", "mean before")
"""The headings of the columns that a narrow terminal does without."""


@make_command(
    "compare",
    brief="Show how scores changed from one report to another.",
    examples=(
        (
            "vkssim compare old.json new.json --max-drop float_ms_ssim=0.002 --max-drop float_ms_ssim:p5=0.01",
            "Fail where the mean or the 5th percentile drops by more.",
        ),
    ),
)
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
@option(
    "--max-drop",
    "drops",
    section=Section.VERDICT,
    multiple=True,
    metavar="NAME[:POOLING]=X",
    help="Fail where that score drops by more; POOLING is mean, min, p5 and so on. May be repeated.",
)
@option(
    "--max-frame-drop",
    "frame_drops",
    section=Section.VERDICT,
    multiple=True,
    metavar="NAME=X",
    help="Fail where that score drops by more in any frame. May be repeated.",
)
@force_option
@option("--json", "as_json", section=Section.OUTPUTS, is_flag=True, help="Print JSON in place of the table.")
def command(
    before: Path, after: Path, drops: tuple[str, ...], frame_drops: tuple[str, ...], force: bool, as_json: bool
) -> None:
    """Show how scores changed from the report BEFORE to the report AFTER, both JSON; exit with 1 where they drop too far.

    Reports that were not scored alike are refused, by the name of what differs.
    """
    from ..ladder.compare import Threshold, compare_reports, judge
    from ..report.reading import read_report
    from ..scoring.comparability import Scored, check_alike

    thresholds = [Threshold.parse(text) for text in drops] + [Threshold.parse(text, frame=True) for text in frame_drops]
    reports = read_report(before), read_report(after)
    changes = compare_reports(*reports)
    verdicts = judge(changes, thresholds)
    pair = before, after
    found = check_alike(
        [Scored(str(path), "", report.scoring) for path, report in zip(pair, reports, strict=True)], force=force
    )
    found.warnings += _warnings(pair, reports, next(iter(changes.values())).frames)
    say_findings(found)
    if as_json:
        print_text(_json(changes, verdicts, found))
    else:
        _print(changes, f"{before} to {after}")
    broken = [verdict for verdict in verdicts if not verdict.met]
    if broken:
        raise DemandError("; ".join(map(_sentence, broken)))


def _warnings(paths: tuple[Path, Path], reports: tuple[ScoreReport, ScoreReport], shared: int) -> list[str]:
    before, after = reports
    counts = [len(report.frames) for report in reports]
    warnings = []
    if counts != [shared, shared]:
        warnings.append(f"{paths[0]} has {counted(counts[0], 'frame')}, {paths[1]} {counts[1]}; {shared} are in both")
    sizes = [f"{report.width}x{report.height}" for report in reports]
    if before.scoring is not None and after.scoring is not None:
        pass  # `check_alike` has compared more than these sizes
    elif sizes[0] != sizes[1] and before.width and after.width:  # libvmaf's reports name no size
        warnings.append(f"{paths[0]} is of pictures of {sizes[0]}, {paths[1]} of {sizes[1]}")
    elif before.pictures.crop != after.pictures.crop:
        crops = [report.pictures.crop or "nothing" for report in reports]
        warnings.append(f"{paths[0]} is of pictures cropped to {crops[0]}, {paths[1]} to {crops[1]}")
    firsts = [report.selection.first_reference for report in reports]
    if firsts[0] != firsts[1]:
        warnings.append(f"frame 0 of {paths[0]} is frame {firsts[0]} of its reference, of {paths[1]} frame {firsts[1]}")
    return warnings


def _sentence(verdict: Verdict) -> str:
    threshold = verdict.threshold
    return f"{threshold.score} {threshold.pooling} drops by {decimals(verdict.drop)}, allowed are {threshold.most:g}"


def _print(changes: Mapping[str, Change], title: str) -> None:
    columns = ("score", "mean before", "mean after", "difference", "frames", "mean difference", "largest drop", "in frame")
    rows = [
        [
            name,
            decimals(change.before["mean"]),
            decimals(change.after["mean"]),
            decimals(change.after["mean"] - change.before["mean"]),
            str(change.frames),
            decimals(change.mean_difference),
            decimals(change.max_drop),
            "" if change.max_drop_frame is None else str(change.max_drop_frame),
        ]
        for name, change in changes.items()
    ]
    print_table(title, columns, rows, sys.stdout, optional=_LEFT_OUT_FIRST, elsewhere="--json has all")


def _json(changes: Mapping[str, Change], verdicts: Sequence[Verdict], found: Findings) -> str:
    answer = {
        "scores": {name: asdict(change) for name, change in changes.items()},
        "demands": [{**asdict(verdict.threshold), "drop": verdict.drop, "met": verdict.met} for verdict in verdicts],
        "passed": all(verdict.met for verdict in verdicts),
        "warnings": found.warnings,
        "notes": found.notes,
    }
    return json_text(answer)
