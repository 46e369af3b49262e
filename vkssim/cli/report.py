"""vkssim report: scores as a page to look at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import DemandError, InterruptedRunError, OptionError, VkssimError
from .main import SETTINGS
from .messages import say_findings
from .options import backend_options, force_option, raw_options, urls_option
from .output import check_target, print_text

if TYPE_CHECKING:
    from ..frames.open import RawDescription
    from ..results import ScoreReport

_WORST = 6  # frames shown of a clip


def _print_schema(context: click.Context, _parameter: click.Parameter, asked: bool) -> None:
    if asked:
        from ..report.schema import schema_text

        print_text(schema_text())
        context.exit()


@click.command("report", context_settings=SETTINGS)
@click.argument("files", nargs=-1, required=True, metavar="SCORES.json…", type=click.Path(path_type=Path))
@click.option("-o", "--output", "target", required=True, metavar="FILE", help="Write the page there; - is stdout.")
@click.option(
    "--worst", type=click.IntRange(0), default=_WORST, show_default=True, help="So many frames of a clip as pictures."
)
@force_option
@urls_option
@raw_options
@backend_options
@click.option(
    "--schema",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_schema,
    help="Print the JSON Schema of the JSON of `vkssim score`, and do nothing else.",
)
def command(
    files: tuple[Path, ...], target: str, worst: int, force: bool, urls: bool, raw: RawDescription, where: dict[str, Any]
) -> None:
    """Show scores as one HTML page: tables, charts and the worst frames.

    The files are those of `vkssim score -o FILE.json`, one a distorted clip, or of libvmaf's tools. The pictures come from the
    clips that the files name, where they can still be read. Files that were not scored alike are refused, by the name of what
    differs.
    """
    from ..alike import check_alike
    from ..report.page import check_installed, render_page, scored
    from ..report.page.pictures import worst_frames
    from ..report.reading import read_report

    check_installed()
    reports = [read_report(path) for path in files]
    say_findings(check_alike(scored(reports, [str(path) for path in files]), force=force))
    clips = [name for report in reports for name in (report.reference, report.distorted)]
    deliver = _destination(target, "--output", [*map(str, files), *clips])
    galleries = [
        worst_frames(report, worst, raw=raw, backend=str(where["backend"]), device=where["device"], urls=urls)
        for report in reports
    ]
    deliver(render_page(reports, galleries, [str(path) for path in files]))


def page_output(
    target: str | None, inputs: Sequence[str], *, raw: RawDescription, backend: str, device: str | None
) -> Callable[[ScoreReport, VkssimError | None], None] | None:
    """What makes the page of `--html`, checked before anything is scored; None where none was asked for.

    It gets the report, and what went wrong where the report is not complete.
    """
    if target is None:
        return None
    from ..report.page import check_installed

    check_installed()
    if target == "-":
        raise OptionError("--html - is no file; `vkssim report SCORES.json -o -` writes a page to standard output")
    write_page = _destination(target, "--html", inputs)

    def deliver(report: ScoreReport, failure: VkssimError | None) -> None:
        from ..report.page import render_page
        from ..report.page.pictures import Gallery, worst_frames

        if isinstance(failure, InterruptedRunError):  # who stops a run does not want to wait for pictures
            gallery = Gallery(reason="the run was stopped")
        else:
            gallery = worst_frames(report, _WORST, raw=raw, backend=backend, device=device, urls=True)
        if failure is not None and not isinstance(failure, DemandError | InterruptedRunError):  # theirs are warnings already
            report = replace(report, warnings=[*report.warnings, str(failure)])
        write_page(render_page([report], [gallery]))

    return deliver


def _destination(target: str, flag: str, inputs: Sequence[str]) -> Callable[[str], None]:
    from ..report import check_writable, write

    if target == "-":
        return print_text
    path = Path(target)
    check_target(path, flag, inputs)
    check_writable(path)
    return lambda text: write(text, path)
