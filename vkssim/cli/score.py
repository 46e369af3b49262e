"""Score a distorted clip against its reference: the command `vkssim score`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from ..errors import OptionError, OutputError, ThresholdError, VkssimError
from ..host import notices
from ..page.defaults import WORST
from ..utils.interruption import check
from ..utils.progress import ProgressBar
from ..utils.sections import Section
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
    score_options,
    selection_options,
    single_device,
    sync_option,
)
from .output import SUFFIXES, Output, form_options, outputs_of, print_pooled, to_standard_output
from .report import PageOptions, budget_option, page_output
from .resume import open_journal
from .vmaf_flags import vmaf_flags

if TYPE_CHECKING:
    from ..distributed.engine import RunSettings
    from ..frames.options import RawDescription
    from ..report.results import ScoreReport
    from ..report.thresholds import Threshold
    from ..scoring.journal import Journal
    from ..scoring.options import Clips, ScoreOptions

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
    find_offset: bool,
    fail_under: tuple[str, ...],
    where: dict[str, Any],
    resume: bool,
    maps: MapOutput,
    **values: Any,
) -> None:
    """Score a distorted clip against its reference, frame by frame.

    Command lines of libvmaf's tool `vmaf` are understood.
    """
    from ..distributed.engine import RunSettings
    from ..report.reading import read_report
    from ..report.thresholds import parse_threshold
    from ..scoring.offset import offset_of
    from ..scoring.options import Clips
    from .live import LiveLines

    options = score_options(values, backend=where["backend"])
    asked = _Wanted(**values)
    pair = Clips(*_name_clips(clips, reference, distorted), raw)
    asked.check()
    thresholds = [*map(parse_threshold, fail_under), *asked.pooled]
    outputs = outputs_of(asked.paths, asked.form, asked.precision, [*pair.paths, *map(str, asked.merge)])
    merged = {path: read_report(path) for path in asked.merge}
    maps.check(pair.paths)
    alone = single_device(where)
    page_options = PageOptions(asked.worst, asked.budget, fail_under, options.strict)
    page = page_output(asked.html, [*pair.paths, *asked.paths], page_options, raw=raw, **alone)
    progress = ProgressBar() if sys.stderr.isatty() and not asked.quiet else None
    if asked.quiet:
        notices.set_listener(None)
    if find_offset:
        options = replace(options, selection=replace(options.selection, offset=offset_of(pair, options)))
    lines = LiveLines(asked.precision, ends_run=not (asked.paths or asked.html or maps.folder)) if asked.live else None
    journal = open_journal(asked.paths, asked.form, pair, options, resume=resume, quiet=asked.quiet)
    report, failure = _score(pair, options, where["device"], RunSettings(asked.profile, progress, lines, thresholds, journal))
    if find_offset:
        report.notes.append(_shift(options.selection.offset))
    done = _Deliveries(report, failure)
    asked.deliver(done, outputs, merged, journal, None if lines is None else lines.failure)
    if page is not None:
        done.check()
        done.attempt(page, report, failure, name=asked.html)
    if maps.folder is not None and done.complete:
        done.check()
        write_maps = partial(maps.write, features=options.features, raw=raw, **alone)
        done.attempt(write_maps, report, name=os.path.join(maps.folder, ""))
    done.end(quiet=asked.quiet)


@dataclass(frozen=True)
class _Wanted:
    """The options that choose what is printed and written, as the command line names them."""

    paths: tuple[str, ...]
    form: str | None
    html: str | None
    budget: float
    precision: str
    merge: tuple[Path, ...]
    live: bool
    worst: int | None
    profile: bool
    printed: tuple[str, ...]
    quiet: bool

    @property
    def pooled(self) -> list[Threshold]:
        """Return the pooled values to print."""
        from ..report.thresholds import parse_pooled

        return [parse_pooled(text) for text in self.printed]

    @property
    def prints_report(self) -> bool:
        """Return whether the report goes to standard output."""
        return to_standard_output(self.paths, self.form)

    def check(self) -> None:
        """Raise OptionError if two things would go to standard output."""
        if self.live and self.prints_report:
            raise OptionError("--live and the report both go to standard output; give the report a file with --output")
        if self.printed and (self.live or self.prints_report):
            second = "--live" if self.live else "the report"
            raise OptionError(f"--print and {second} both go to standard output; --output gives the report a file of its own")

    def deliver(
        self,
        done: _Deliveries,
        outputs: Sequence[Output],
        merged: Mapping[Path, ScoreReport],
        journal: Journal | None,
        lines_failure: OutputError | None,
    ) -> None:
        """Write the report to its outputs, with the scores of other reports, and print what was asked for."""
        from ..report.merging import merge_report

        for path, scores in merged.items():
            done.attempt(merge_report, done.report, path, scores)
        for output in outputs:
            done.attempt(output.write, done.report, name=output.path)
        if journal is not None:
            journal.settle(done.failures)
        if lines_failure is not None and lines_failure not in done.failures[:1]:  # else it ended the run
            done.failures.append(lines_failure)
        self.show(done)
        if self.printed and done.complete:
            done.attempt(print_pooled, self.pooled, self.precision, done.report)

    def show(self, done: _Deliveries) -> None:
        """Print notes, warnings and tables."""
        report = done.report
        for note in report.notes if not self.quiet else ():
            say(f"note: {note}")
        for warning in [*report.worker_warnings, *report.warnings]:
            say(f"warning: {warning}")
        if not self.quiet:
            file = sys.stderr if self.live or self.printed or self.prints_report else sys.stdout
            done.attempt(_print_tables, report, _WORST if self.worst is None else self.worst, self.profile, file)


class _Deliveries:
    """The outputs of a report, of which each is written although another fails. `written` has their names."""

    def __init__(self, report: ScoreReport, failure: VkssimError | None) -> None:
        self.report = report
        self.complete = failure is None or isinstance(failure, ThresholdError)
        self.failures = [] if failure is None else [failure]
        self.written: list[str] = []

    def attempt(self, write: Callable[..., object], *what: object, name: str | None = None) -> None:
        """Write something, whose `name` is printed at the end; a failure is noted."""
        try:
            write(*what)
        except VkssimError as error:
            self.failures.append(error)
        else:
            self.written += [] if name is None else [name]

    def check(self) -> None:
        """Stop if the user interrupts and nothing has failed; after a failure the rest is written all the same."""
        if not self.failures:
            check()

    def end(self, *, quiet: bool) -> None:
        """Print the names of the outputs. Raises the last failure."""
        for name in self.written if not quiet else ():
            say_written(name)
        for other in self.failures[:-1]:
            say(other)
        if self.failures:
            raise self.failures[-1]


def _score(pair: Clips, options: ScoreOptions, device: Any, settings: RunSettings) -> tuple[ScoreReport, VkssimError | None]:
    """Return the report, and the error that ended the run if frames were scored before it. Raises VkssimError."""
    from ..distributed.engine import score_pair

    try:
        return score_pair(pair, options, device, settings), None
    except VkssimError as error:
        if error.report is None or not error.report.frames:
            if settings.journal is not None:
                settings.journal.leave(error)
            raise
        return error.report, error
    finally:
        if isinstance(settings.progress, ProgressBar):
            settings.progress.close()


def _shift(offset: int) -> str:
    shifted, same = (f"i{offset:+d}", "") if offset else ("i", "the clips are not shifted: ")
    return f"{same}frame i of the reference is compared with frame {shifted} of the distorted clip"


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
