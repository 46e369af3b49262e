"""vkssim score: a distorted clip against its reference."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from ..errors import VkssimError
from .main import SETTINGS
from .options import backend_options, feature_option, raw_options, selection_options
from .output import output
from .progress import ProgressBar
from .report import page_output

if TYPE_CHECKING:
    from ..files import Selection
    from ..frames.open import RawDescription


@click.command("score", context_settings=SETTINGS)
@click.option("-r", "--reference", required=True, metavar="FILE", help="Reference clip: raw YUV, Y4M or container; - is stdin.")
@click.option("-d", "--distorted", required=True, metavar="FILE", help="Distorted clip; one of the two may be -.")
@raw_options
@feature_option
@click.option("-o", "--output", "path", metavar="FILE", help="Write scores there; - is stdout. The form follows the ending.")
@click.option("--json", "form", flag_value="json", help="Output as JSON.")
@click.option("--xml", "form", flag_value="xml", help="Output as XML.")
@click.option("--csv", "form", flag_value="csv", help="Output as CSV.")
@click.option("--sub", "form", flag_value="sub", help="Output as MicroDVD subtitles.")
@click.option("--html", metavar="FILE", help="Write a page with charts and the worst frames there.")
@click.option("--precision", default="6", show_default=True, metavar="N|max", help="Decimals, or max for round-trip doubles.")
@selection_options
@click.option("--strict", is_flag=True, help="Fail with exit code 1 where one clip is shorter.")
@backend_options
@click.option("--profile", is_flag=True, help="Show where the time goes, stage by stage.")
@click.option("-q", "--quiet", is_flag=True, help="No progress, no summary.")
def command(
    reference: str,
    distorted: str,
    raw: RawDescription,
    features: tuple[str, ...],
    path: str | None,
    form: str | None,
    html: str | None,
    precision: str,
    selection: Selection,
    strict: bool,
    where: dict[str, str | None],
    profile: bool,
    quiet: bool,
) -> None:
    """Score a distorted clip against its reference, frame by frame."""
    from ..files import score_files

    deliver = output(path, form, precision, (reference, distorted))
    page = page_output(
        html, [reference, distorted, *([path] if path else [])], raw=raw, backend=str(where["backend"]), device=where["device"]
    )
    summary_to = sys.stderr if deliver is not None and path in (None, "-") else sys.stdout
    progress = ProgressBar() if sys.stderr.isatty() and not quiet else None
    failure: VkssimError | None = None
    try:
        report = score_files(
            reference,
            distorted,
            features=features,
            raw=raw,
            selection=selection,
            strict=strict,
            backend=str(where["backend"]),
            device=where["device"],
            profile=profile,
            progress=progress,
        )
    except VkssimError as error:
        if error.report is None or not error.report.frames:
            raise
        failure, report = error, error.report
    finally:
        if progress is not None:
            progress.close()
    if deliver is not None:
        deliver(report)
    for warning in report.warnings:
        click.echo(f"vkssim: warning: {warning}", err=True)
    if not quiet:
        from ..summary import print_profile, print_summary

        print_summary(report, summary_to)
        if profile:
            print_profile(report, summary_to)
    if page is not None:
        page(report, failure)
    if failure is not None:
        raise failure
