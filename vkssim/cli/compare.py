"""Compare two reports of the same clip, or of many clips: the command `vkssim compare`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import InputError, ThresholdError
from ..utils.values import Section
from ..utils.wording import counted
from .command import make_command, option
from .compare_corpora import compare_and_print, drop_text
from .options import force_option, json_option
from .output import LocalPathType, json_text, print_text, say_findings
from .tables import decimals, print_table

if TYPE_CHECKING:
    from ..ladder.compare import Comparison
    from ..report.results import ScoreReport


@make_command(
    "compare",
    brief="Show how scores changed between two reports or two batches.",
    examples="""
        vkssim compare old.json new.json --max-drop float_ms_ssim=0.002 --max-drop float_ms_ssim:p5=0.01
            Fail if the mean or the 5th percentile drops by more.
        vkssim compare old.parquet new.parquet --max-drop float_ms_ssim=0.002 --max-frame-drop float_ms_ssim=0.02
            Fail if a clip of a batch drops by more, in its mean or in a frame.
    """,
)
@click.argument("before", type=LocalPathType())
@click.argument("after", type=LocalPathType())
@option(
    "--max-drop",
    Section.VERDICT,
    "Fail if that score drops by more, or frames are lost; POOLING is mean, min, p5 and so on. May be repeated.",
    multiple=True,
    metavar="NAME[:POOLING]=X",
)
@option(
    "--max-frame-drop",
    Section.VERDICT,
    "Fail if that score drops by more in any frame, or frames are lost. May be repeated.",
    multiple=True,
    metavar="NAME=X",
)
@force_option
@json_option
def command(
    before: Path, after: Path, max_drop: tuple[str, ...], max_frame_drop: tuple[str, ...], force: bool, as_json: bool
) -> None:
    """Show how scores changed from BEFORE to AFTER, and list those that fell; exit with 1 if they drop too far.

    Both are reports in JSON, or both are results of `vkssim batch` or folders of reports, whose pairs are matched by their
    names, otherwise by their labels. The frames that both have are compared. Frames and pairs that only BEFORE has
    fail every limit. Reports of different references and reports that were not scored alike are refused, and the message names
    the difference.
    """
    from ..ladder.compare import DropLimit, compare_reports
    from ..ladder.corpus import is_corpus
    from ..metrics.comparability import check_alike, scored_reports
    from ..report.reading import read_report

    thresholds = [DropLimit.parse(text) for text in max_drop]
    thresholds += [DropLimit.parse(text, frame=True) for text in max_frame_drop]
    if is_corpus(before) or is_corpus(after):
        if not (is_corpus(before) and is_corpus(after)):
            raise InputError(f"{before} and {after}: give two reports, or two results of `vkssim batch` or folders of reports")
        compare_and_print(before, after, thresholds, force=force, as_json=as_json)
        return
    reports = read_report(before), read_report(after)
    compared = compare_reports(*reports)
    drops = [(limit, limit.drop(compared)) for limit in thresholds]
    pair = before, after
    findings = check_alike(scored_reports(reports, map(str, pair)), force=force, one_reference=True)
    findings.warnings += _warnings(pair, reports, compared.frames)
    say_findings(findings)
    if as_json:
        answer = {
            **asdict(compared),
            "demands": [{**asdict(limit), "drop": drop, "met": limit.met(compared)} for limit, drop in drops],
            "passed": all(limit.met(compared) for limit in thresholds),
            "warnings": findings.warnings,
            "notes": findings.notes,
        }
        print_text(json_text(answer))
    else:
        _print(compared, f"{before} to {after}")
    broken = [drop_text(limit, drop) for limit, drop in drops if not drop <= limit.most]
    if thresholds and compared.lost:
        broken.append(f"{after} lacks {counted(compared.lost, 'frame')} of {before}, and frames that are lost meet no limit")
    if broken:
        raise ThresholdError("; ".join(broken))


def _warnings(paths: tuple[Path, Path], reports: tuple[ScoreReport, ScoreReport], shared: int) -> list[str]:
    before, after = reports
    counts = [len(report.frames) for report in reports]
    warnings = []
    if counts != [shared, shared]:
        warnings.append(
            f"{paths[0]} has {counted(counts[0], 'frame')}, {paths[1]} {counts[1]}; the {shared} that both have are compared"
        )
    sizes = [f"{report.width}x{report.height}" for report in reports]
    if before.scoring is not None and after.scoring is not None:
        return warnings  # `check_alike` has compared more than these sizes
    if sizes[0] != sizes[1] and before.width and after.width:  # libvmaf's reports name no size
        warnings.append(f"{paths[0]} is of pictures of {sizes[0]}, {paths[1]} of {sizes[1]}")
    elif before.pictures.crop != after.pictures.crop:
        crops = [report.pictures.crop or "nothing" for report in reports]
        warnings.append(f"{paths[0]} is of pictures cropped to {crops[0]}, {paths[1]} to {crops[1]}")
    return warnings


def _print(compared: Comparison, title: str) -> None:
    from ..ladder.compare import drop_of

    columns = ("score", "mean before", "mean after", "difference", "frames", "largest drop", "in frame")
    rows = [
        [
            name,
            decimals(change.before["mean"]),
            decimals(change.after["mean"]),
            decimals(-float(drop_of(change.before["mean"], change.after["mean"]))),
            str(compared.frames),
            "none" if change.max_drop <= 0 else decimals(change.max_drop),
            "" if change.max_drop_frame is None or change.max_drop <= 0 else str(change.max_drop_frame),
        ]
        for name, change in compared.scores.items()
    ]
    narrow = ("frames", "in frame", "largest drop", "mean before")
    print_table(title, columns, rows, optional=narrow, elsewhere="--json has all")
