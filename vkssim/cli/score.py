"""Score a distorted clip against its reference: the command `vkssim score`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from ..errors import OptionError, ThresholdError, VkssimError
from ..host import notices
from ..page.defaults import WORST
from ..utils.choices import Section
from ..utils.interruption import check
from ..utils.progress import ProgressBar
from .command import make_command, option
from .map_output import MapOutput, map_options
from .messages import say, say_written
from .options import (
    backend_options,
    decode_option,
    fail_under_option,
    feature_option,
    find_offset_option,
    picture_options,
    planes_option,
    raw_options,
    selection_options,
    split_devices,
    sync_option,
)
from .output import SUFFIXES, form_options, outputs_of, print_pooled, to_standard_output
from .report import PageOptions, budget_option, page_output
from .resume import open_journal
from .vmaf_flags import vmaf_flags

if TYPE_CHECKING:
    from ..frames.options import PictureOptions, RawDescription, Selection
    from ..report.results import ScoreReport

_WORST = 3  # frames in the table below the summary


@make_command(
    "score",
    examples=(
        (
            "vkssim score reference.mp4 distorted.mp4 -o scores.json",
            "Score every frame, print the tables, and write all scores to a file.",
        ),
        (
            "vkssim score master.mov 720p.mp4 --scale reference --sync pts --html page.html",
            "Compare clips of another size and frame rate, and write a page to look at.",
        ),
        (
            "vkssim score ref.yuv dis.yuv -w 1920 -h 1080 -p 420 -b 10 -q --print float_ms_ssim",
            "Compare raw files, and print nothing but the mean.",
        ),
    ),
    common=(
        *("reference", "distorted", "width", "height", "pixel_format", "bits"),
        *("start", "end", "offset", "find_offset", "sync", "crop", "scale", "features", "planes"),
        *("paths", "html", "folder", "resume", "printed", "quiet", "fail_under", "strict", "device"),
    ),
)
@click.argument("clips", nargs=-1, type=click.Path(), metavar="REFERENCE DISTORTED")
@option(
    "-r",
    "--reference",
    section=Section.INPUTS,
    type=click.Path(),
    metavar="FILE",
    help="Read the reference clip from that file: raw YUV, Y4M or a container; - is stdin. Of"
    " files without a flag, the first is the reference.",
)
@option(
    "-d",
    "--distorted",
    section=Section.INPUTS,
    type=click.Path(),
    metavar="FILE",
    help="Read the distorted clip from that file; one of the two may be -.",
)
@raw_options
@feature_option
@planes_option
@option(
    "-o",
    "--output",
    "paths",
    section=Section.OUTPUTS,
    type=click.Path(),
    multiple=True,
    metavar="FILE",
    help=f"Write scores there; - is stdout. The form follows the ending ({', '.join(SUFFIXES)}); without one it is XML. May be"
    " repeated.",
)
@form_options
@option(
    "--resume",
    section=Section.OUTPUTS,
    is_flag=True,
    help="Continue a run with the same --output that was cut off, or begin at the start.",
)
@option("--html", section=Section.OUTPUTS, metavar="FILE", help="Write a page with charts and the worst moments there.")
@budget_option
@option(
    "--precision",
    section=Section.OUTPUTS,
    default="6",
    show_default=True,
    metavar="N|max",
    help="Write that many decimals; with max, numbers read back to the same doubles.",
)
@option(
    "--merge",
    section=Section.OUTPUTS,
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Add the scores of that JSON of libvmaf's tools, such as VMAF, to tables, page and --output. May be repeated.",
)
@map_options
@selection_options
@find_offset_option
@sync_option
@picture_options
@option(
    "--live",
    section=Section.OUTPUTS,
    is_flag=True,
    help="Print a line of JSON to stdout for each frame, as soon as it is scored.",
)
@option(
    "--worst",
    section=Section.OUTPUTS,
    type=click.IntRange(0),
    help=f"Show that many of the worst frames. Default: {_WORST}, on the page of --html {WORST}.",
)
@fail_under_option(
    "Fail with exit code 1 if a pooled score is lower: mean (default), harmonic_mean, min, max, mean_db, p1, p5, p10, p50."
    " May be repeated."
)
@option(
    "--strict",
    section=Section.VERDICT,
    is_flag=True,
    help="Fail with exit code 1 if one clip is shorter, or the frame rates differ.",
)
@backend_options
@decode_option
@option("--profile", section=Section.OUTPUTS, is_flag=True, help="Show where the time goes, stage by stage.")
@option(
    "--print",
    "printed",
    section=Section.OUTPUTS,
    multiple=True,
    metavar="NAME[:POOLING]",
    help="Print that pooled value as a bare number on stdout, with -q too; everything else goes to stderr. POOLING as for"
    " --fail-under. May be repeated, a line each.",
)
@option("-q", "--quiet", section=Section.OUTPUTS, is_flag=True, help="Print no progress and no summary.")
@vmaf_flags
def command(
    clips: tuple[str, ...],
    reference: str | None,
    distorted: str | None,
    raw: RawDescription,
    features: tuple[str, ...],
    planes: str,
    paths: tuple[str, ...],
    form: str | None,
    resume: bool,
    html: str | None,
    budget: float,
    precision: str,
    merge: tuple[Path, ...],
    maps: MapOutput,
    selection: Selection,
    find_offset: bool,
    sync: str,
    pictures: PictureOptions,
    live: bool,
    worst: int | None,
    fail_under: tuple[str, ...],
    strict: bool,
    where: dict[str, Any],
    decode: str,
    profile: bool,
    printed: tuple[str, ...],
    quiet: bool,
) -> None:
    """Score a distorted clip against its reference, frame by frame.

    Command lines of libvmaf's tool `vmaf` are understood.
    """
    from ..distributed.engine import RunSettings, score_pair
    from ..features.plane_metrics import feature_texts
    from ..report.merging import merge_report
    from ..report.reading import read_report
    from ..report.thresholds import parse_pooled, parse_threshold
    from ..scoring.offset import offset_of
    from ..scoring.options import Clips, ScoreOptions
    from .live import LiveLines

    reference, distorted = _name_clips(clips, reference, distorted)
    if live and to_standard_output(paths, form):
        raise OptionError("--live and the report both go to standard output; give the report a file with --output")
    if printed and (live or to_standard_output(paths, form)):
        second = "--live" if live else "the report"
        raise OptionError(f"--print and {second} both go to standard output; --output gives the report a file of its own")
    asked = [parse_pooled(text) for text in printed]
    inputs = (reference, distorted, *map(str, merge))
    outputs = outputs_of(paths, form, precision, inputs)
    merged = {path: read_report(path) for path in merge}
    maps.check((reference, distorted))
    _, alone = split_devices(where)
    page_options = PageOptions(worst, budget, fail_under, strict)
    page = page_output(html, [reference, distorted, *paths], page_options, raw=raw, **alone)
    summary_to = sys.stderr if live or printed or to_standard_output(paths, form) else sys.stdout
    progress = ProgressBar() if sys.stderr.isatty() and not quiet else None
    if quiet:
        notices.set_listener(None)
    pair = Clips(reference, distorted, raw)
    options = ScoreOptions(feature_texts(features), planes, selection, sync, pictures, strict, where["backend"], decode=decode)
    if find_offset:
        selection = replace(selection, offset=offset_of(pair, options))
        options = replace(options, selection=selection)
    thresholds = [*map(parse_threshold, fail_under), *asked]
    lines = LiveLines(precision, ends_run=not (paths or html or maps.folder)) if live else None
    journal = open_journal(paths, form, pair, options, resume=resume, quiet=quiet)
    failures: list[VkssimError] = []
    try:
        report = score_pair(pair, options, where["device"], RunSettings(profile, progress, lines, thresholds, journal))
    except VkssimError as error:
        if error.report is None or not error.report.frames:
            if journal is not None:
                journal.leave(error)
            raise
        failures, report = [error], error.report
    finally:
        if progress is not None:
            progress.close()
    if find_offset:
        shifted = f"i{selection.offset:+d}" if selection.offset else "i"
        same = "" if selection.offset else "the clips are not shifted: "
        report.notes.append(f"{same}frame i of the reference is compared with frame {shifted} of the distorted clip")
    failure = failures[0] if failures else None
    complete = failure is None or isinstance(failure, ThresholdError)
    for path, scores in merged.items():
        _attempt(failures, merge_report, report, path, scores)
    worked = [output for output in outputs if _attempt(failures, output.write, report)]
    written = [output.path for output in worked if output.path is not None]
    if journal is not None:
        journal.settle(failures)
    if lines is not None and lines.failure not in (None, failure):
        failures.append(lines.failure)
    if not quiet:
        for note in report.notes:
            say(f"note: {note}")
    for warning in [*report.worker_warnings, *report.warnings]:
        say(f"warning: {warning}")
    if not quiet:
        _attempt(failures, _print_tables, report, _WORST if worst is None else worst, profile, summary_to)
    if asked and complete:
        _attempt(failures, print_pooled, asked, precision, report)
    if page is not None:
        if not failures:
            check()
        if _attempt(failures, page, report, failure):
            written.append(str(html))
    if maps.folder is not None and complete:
        if not failures:
            check()
        if _attempt(failures, partial(maps.write, report, features=features, raw=raw, **alone)):
            written.append(os.path.join(maps.folder, ""))
    for file in written if not quiet else ():
        say_written(file)
    for other in failures[:-1]:
        say(other)
    if failures:
        raise failures[-1]


def _name_clips(files: tuple[str, ...], reference: str | None, distorted: str | None) -> tuple[str, str]:
    """Return the two clips: those that flags name, and in their order the files without a flag for the rest."""
    named = [reference, distorted]
    if len(files) != named.count(None):
        given = ", ".join([*files, *(f"{flag} {name}" for flag, name in zip(["-r", "-d"], named, strict=True) if name)])
        raise click.UsageError(
            f"a reference and a distorted clip are needed, and {given or 'no file'} is given:"
            " `vkssim score REFERENCE DISTORTED`, or -r REFERENCE -d DISTORTED"
        )
    rest = iter(files)
    first, second = (next(rest) if name is None else name for name in named)
    return first, second


def _print_tables(report: ScoreReport, worst: int, profile: bool, file: TextIO) -> None:
    from .summary import print_profile, print_summary, print_worst

    print_summary(report, file)
    print_worst(report, worst, file)
    if profile:
        print_profile(report, file)


def _attempt(failures: list[VkssimError], write: Callable[..., object], *what: object) -> bool:
    """Write something and return whether that worked; a failure is noted, and keeps nothing else from being written."""
    try:
        write(*what)
    except VkssimError as error:
        failures.append(error)
        return False
    return True
