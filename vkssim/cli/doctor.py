"""Find out whether vkssim can score here, and what to do if it cannot: the command `vkssim doctor`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from ..utils.sanitize import visible
from ..utils.values import Section
from .command import make_command, option
from .output import json_text, print_text
from .tables import print_line

if TYPE_CHECKING:
    from ..doctor.findings import Diagnosis, Finding

_MARKS = {"ok": ("ok", "green"), "note": ("-", "default"), "warning": ("!", "yellow"), "error": ("X", "red")}
"""The mark of each level of findings, and its colour."""


@make_command(
    "doctor",
    brief="Say what is missing on this machine, if anything.",
    examples="""
        vkssim doctor
            Say what is found on this machine, and what to do if something is missing.
        vkssim doctor --json
            Print the same as JSON, for a bug report.
    """,
)
@option("--json as_json", Section.OUTPUTS, "Print JSON, for bug reports.", is_flag=True)
@option(
    "--seconds",
    Section.DEVICE,
    "The longest time that the trial of one device may take.",
    type=click.IntRange(1, 86400),
    default=120,
)
@click.pass_context
def command(context: click.Context, as_json: bool, seconds: int) -> None:
    """Check the Vulkan loader, drivers, devices, decoders and extras, and say what to do.

    Each device computes a first score and all known results of the self-test. The exit code is 0 if the device that vkssim
    chooses scores, and 1 if it does not.
    """
    from rich.console import Console
    from rich.text import Text

    from ..doctor.diagnosis import diagnose

    screen = Console(stderr=True)
    with screen.status("checking the system") as status:  # shows nothing if standard error is no terminal

        def on_step(step: str) -> None:
            status.update(Text(visible(step)))

        diagnosis = diagnose(seconds, on_step)
    if as_json:
        print_text(json_text(diagnosis.plain()))
    else:
        _print(diagnosis)
    context.exit(0 if diagnosis.scores else 1)


def _print(diagnosis: Diagnosis) -> None:
    """Print the diagnosis for people."""
    for section in diagnosis.sections:
        click.secho(section.title, bold=True)
        for finding in section.findings:
            _print_finding(finding)
        click.echo()
    _print_finding(diagnosis.summary)


def _print_finding(finding: Finding) -> None:
    mark, colour = _MARKS[finding.level.value]
    for prefix, text in ((f"{mark:>4} ", finding.text), ("  -> ", finding.advice)):
        if text is not None:
            print_line(sys.stdout, (prefix, colour), text)
