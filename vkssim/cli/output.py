"""Send the scores of a command to files and to standard output."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import OptionError, OutputError
from ..report.numbers import finite
from ..storage.location import PathOrUrl, is_same_file, is_url, redact_url, suffix_of
from ..utils.choices import FORMS, Section
from ..utils.interruption import interruptible
from ..utils.sanitize import visible
from .command import CommandOption, add_options

if TYPE_CHECKING:
    from ..report.results import ScoreReport

SUFFIXES = tuple(f".{form}" for form in FORMS)
"""The endings of files by which the form of a report is recognised."""

_STANDARD_OUTPUT = ("-", "/dev/stdout")
_PAGES = (".html", ".htm")


@dataclass(frozen=True)
class Output:
    """An output of a report: the file at `path`, or standard output if that is None."""

    path: str | None
    form: str
    precision: str

    def write(self, report: ScoreReport) -> None:
        """Write the report. Raises OutputError."""
        from ..report import render
        from ..storage.folder import write_output

        text = render(report, self.form, self.precision)
        if self.path is None:
            print_text(text)
        else:
            write_output(text, self.path)


def outputs_of(paths: Sequence[str], form: str | None, precision: str, inputs: Sequence[str]) -> list[Output]:
    """Return the outputs of a report, all of them checked before anything is scored; none if none was named.

    `form` decides for every output; without it each has the form that its ending names (see `form_of`). A form without a path
    goes to standard output. Raises OptionError or OutputError if an output cannot be written.
    """
    from ..report.numbers import NumberFormat

    NumberFormat.parse(precision)
    if not paths:
        return [] if form is None else [Output(None, form, precision)]
    forms = [form or form_of(path) for path in paths]
    files = [path for path in paths if not to_standard_output([path], form)]
    check_targets([("--output", path) for path in files], inputs)
    if len(paths) - len(files) > 1:
        raise OutputError("two reports would go to standard output; give one of them a file with --output")
    named = [None if path in _STANDARD_OUTPUT else path for path in paths]
    return [Output(path, chosen, precision) for path, chosen in zip(named, forms, strict=True)]


form_options = add_options(
    *(CommandOption(f"--{form} form", Section.OUTPUTS, f"Output as {title}.", flag_value=form) for form, title in FORMS.items())
)
"""The flag of each form of a report; the command gets the name of the form as `form`."""


def form_of(path: str) -> str:
    """Return the form that the ending of a path names; XML, as libvmaf's tool writes, if it has none, or one like ``run.2``.

    Raises OptionError for any other ending: the file would not be what its name says.
    """
    ending = suffix_of(path)
    if ending.removeprefix(".") in FORMS:
        return ending.removeprefix(".")
    if not re.match(r"\.[a-z]", ending):
        return "xml"
    if ending in _PAGES:
        hint = f"--html {redact_url(path)} writes the page"
    else:
        hint = f"{' '.join(f'--{form}' for form in FORMS)} give the form of a file of any name"
    raise OptionError(f"--output {redact_url(path)} ends in {visible(ending)}; the endings are {', '.join(SUFFIXES)}. {hint}")


def to_standard_output(paths: Sequence[str], form: str | None) -> bool:
    """Return whether a report goes to standard output: by the name of an output, or by a form without any output."""
    return any(path in _STANDARD_OUTPUT for path in paths) or (not paths and form is not None)


class PathOrUrlType(click.Path):
    """A local path, or a URL, which stays a text."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """See click."""
        return value if is_url(value) else super().convert(value, param, ctx)


def check_target(target: PathOrUrl, flag: str, inputs: Sequence[str]) -> None:
    """Raise OutputError if the target is one of the files that the command reads, or writes as another output."""
    if any(is_same_file(target, name) for name in inputs):
        raise OutputError(
            f"{flag} {redact_url(target)} would overwrite another file of this command; give it a name of its own"
        )


def check_targets(targets: Iterable[tuple[str, PathOrUrl | None]], inputs: Sequence[str]) -> None:
    """Check files by the flags that name them, before anything is read or scored; None is a flag that was not given.

    Raises OptionError if pages cannot be made; OutputError if a file cannot be written, or is another one of the command.
    """
    from ..storage.folder import check_output

    others = list(inputs)
    for flag, target in targets:
        if target is not None:
            if flag == "--html":
                from ..page.template import check_installed

                check_installed()
            check_target(target, flag, others)
            check_output(target)
            others.append(str(target))


def json_text(answer: Any) -> str:
    """Return the answer of a command as JSON, with null for every number that is NaN or infinite."""
    return json.dumps(finite(answer), indent=2, allow_nan=False) + "\n"


def print_text(text: str) -> None:
    """Print text to standard output. Raises OutputError if it cannot be written.

    Characters that would control the terminal, as names of files can have, are spelt out; no form of a report has any.
    """
    with interruptible():
        click.echo(visible(text, lines=True), nl=False)
