"""Show scores as an HTML page: the command `vkssim report`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import InterruptedRunError, ThresholdError, VkssimError
from ..page import PICTURE_BUDGET, WORST
from ..storage.folder import write_output
from ..utils.values import Section
from ..utils.wording import listed
from .command import make_command, option
from .options import backend_options, fail_under_option, force_option, ladder_option, raw_options, urls_option
from .output import LocalPathType, check_targets, print_text, say_findings, say_written, with_flags

if TYPE_CHECKING:
    from ..frames.options import RawDescription
    from ..page.pictures import Gallery
    from ..page.tables import Limit
    from ..report.results import ScoreReport
    from ..report.thresholds import Threshold

_MEGA = 1_000_000

budget_option = option(
    "--picture-budget budget",
    Section.OUTPUTS,
    "Limit the pictures of the page to that many megabytes: to fit they are made smaller, then frames are left out.",
    type=click.FloatRange(0, 1000),
    default=PICTURE_BUDGET / _MEGA,
    metavar="MB",
)


def _print_schema(context: click.Context, _parameter: click.Parameter, given: bool) -> None:
    if given:
        from ..report.schema import schema_text

        print_text(schema_text())
        context.exit()


@make_command(
    "report",
    brief="Show scores as one HTML page.",
    examples="""
        vkssim report low.json high.json -o page.html
            Show two clips on one page.
        vkssim report scores.json -o page.html --worst 12
            Show the twelve worst moments as pictures.
        vkssim report results.parquet -o page.html --fail-under float_ms_ssim=0.95
            Show the ladders of a batch, and which rungs reach a limit.
    """,
)
@click.argument("files", nargs=-1, required=True, metavar="SCORES…", type=LocalPathType())
@option("-o --output target", Section.OUTPUTS, "Write the page there; - is stdout.", required=True, metavar="FILE")
@option(
    "--worst",
    Section.OUTPUTS,
    "Show that many of the worst moments of each reference as pictures, with all its clips.",
    type=click.IntRange(0),
    default=WORST,
)
@budget_option
@fail_under_option("Show whether each clip reaches that, and exit with 1 if one does not; see `vkssim score`. May be repeated.")
@ladder_option
@option(
    "--rate",
    Section.INPUTS,
    "Take the bit rates from that column of a table. Default: bitrate, else the bit rate of the video.",
    metavar="COLUMN",
)
@force_option
@urls_option
@raw_options
@backend_options
@option(
    "--schema",
    Section.GENERAL,
    "Print the JSON Schema of the JSON of `vkssim score`, and do nothing else.",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_schema,
)
def command(
    files: tuple[Path, ...],
    target: str,
    worst: int,
    budget: float,
    fail_under: tuple[str, ...],
    ladder: tuple[str, ...],
    rate: str | None,
    force: bool,
    urls: bool,
    raw: RawDescription,
    selector: dict[str, Any],
) -> None:
    """Show scores as one HTML page: verdicts, tables, charts, ladders and the worst moments.

    SCORES are files of `vkssim score -o FILE.json`, one for each distorted clip, or of libvmaf's tools, or results of
    `vkssim batch`. The pictures come from the clips that the files name, if they can still be read. Files that were not scored
    alike are refused, and the error names the difference.
    """
    from ..report.thresholds import parse_threshold

    options = PageOptions(raw, selector, worst, budget, [parse_threshold(text) for text in fail_under], urls=urls)
    failed, count = write_page_of(files, target, "--output", options, ladder=ladder, rate=rate, force=force)
    if target != "-":
        say_written(target)
    if failed:
        raise ThresholdError(limits_text(failed, count))


@dataclass(frozen=True)
class PageOptions:
    """The options of a page."""

    raw: RawDescription
    """The description with which raw clips are read."""
    selector: dict[str, Any]
    """The backend and the device that make the maps."""
    worst: int = WORST
    """The moments that have pictures."""
    budget: float = PICTURE_BUDGET / _MEGA
    """The megabytes of all pictures."""
    thresholds: Sequence[Threshold] = ()
    """The limits whose verdicts it shows."""
    strict: bool = False
    """Whether it also shows a verdict on the lengths of the clips."""
    urls: bool = True
    """Whether clips are read by URL."""

    def gallery(self, reports: Sequence[ScoreReport]) -> Gallery:
        """Return the pictures of reports, with flags in the reasons for which clips have none."""
        from ..page.pictures import worst_frames

        budget = round(self.budget * _MEGA)
        gallery = worst_frames(reports, self.worst, raw=self.raw, urls=self.urls, budget=budget, **self.selector)
        return replace(gallery, reasons={number: with_flags(reason) for number, reason in gallery.reasons.items()})

    def limits(self, reports: Sequence[ScoreReport]) -> list[list[Limit]]:
        """Return the verdicts on each report. Raises OptionError for a score or a limit that does not exist."""
        from ..page.tables import Limit
        from ..report.thresholds import check_names

        names = dict.fromkeys(name for report in reports for name in report.names)
        check_names(self.thresholds, names, {name for report in reports for name in report.similarities})
        limits = [(threshold, threshold.limit) for threshold in self.thresholds if threshold.limit is not None]
        return [[Limit.of(threshold, limit, report) for threshold, limit in limits] for report in reports]


def write_page_of(
    files: Sequence[Path],
    target: str,
    flag: str,
    options: PageOptions,
    *,
    ladder: Sequence[str] = (),
    rate: str | None = None,
    force: bool = True,
) -> tuple[list[str], int]:
    """Write the page of reports and results to the target of a flag, and return the clips below limits and the number of clips.

    `ladder` and `rate` name columns of results. With `force`, files that were not scored alike are shown beside each other.
    """
    from ..ladder.page_clips import read_clips
    from ..metrics.comparability import check_alike, scored_reports
    from ..page.ladders import find_ladders
    from ..page.render import PageDetails, render_page
    from ..page.template import check_installed

    check_installed()
    clips, unit, unscored = read_clips(files, ladder=ladder, rate=rate)
    reports, named = [clip.report for clip in clips], [clip.file for clip in clips]
    say_findings(check_alike(scored_reports(reports, named), force=force))
    limits, rates = options.limits(reports), [clip.rate for clip in clips]
    if target != "-":
        read = (str(path) for path in (*files, *(clip.source for clip in clips)))
        videos = (name for report in reports for name in (report.reference, report.distorted))
        check_targets([(flag, target)], list(dict.fromkeys([*read, *videos])))
    ladders = find_ladders(reports, [clip.ladder for clip in clips], rates, unit)
    details = PageDetails(named, limits, ladders, rates, [clip.labels for clip in clips], unscored)
    page = render_page(reports, options.gallery(reports), details)
    if target == "-":
        print_text(page)
    else:
        write_output(page, target)
    clips_and_limits = zip(named, reports, limits, strict=True)
    failed = [report.distorted or name for name, report, demands in clips_and_limits if not all(limit.met for limit in demands)]
    return failed, len(named)


def limits_text(below: Sequence[str], clips: int) -> str:
    """Return a sentence that names the clips below their limits, of `clips` in all."""
    return f"{len(below)} of {clips} clips are below their limits (--fail-under): {listed(below)}"


def write_page(
    report: ScoreReport, failure: VkssimError | InterruptedRunError | None, target: str, options: PageOptions
) -> None:
    """Write the page of a report to a file; `failure` is the error if the report is not complete."""
    from ..page.pictures import no_pictures
    from ..page.render import PageDetails, render_page
    from ..page.tables import length_limit

    if isinstance(failure, InterruptedRunError):  # the user does not want to wait for pictures
        gallery = no_pictures([report], "the run was stopped; `vkssim report` makes a page of its scores that has them")
    else:
        gallery = options.gallery([report])
    limits = [*options.limits([report])[0], *([length_limit(report)] if options.strict else [])]
    # The report itself shows a run that was stopped, and a limit that was missed.
    if failure is not None and not isinstance(failure, ThresholdError | InterruptedRunError):
        report = replace(report, warnings=[*report.warnings, str(failure)])
    write_output(render_page([report], gallery, PageDetails(limits=[limits])), target)
