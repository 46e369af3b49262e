"""Send the scores of a command to files and to standard output."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from ..errors import OptionError, OutputError
from ..report.numbers import finite
from ..storage.location import PathOrUrl, is_same_file, is_url, redact, redact_url, suffix_of, unsupported_url
from ..utils.choices import FORMS
from ..utils.interruption import interruptible
from ..utils.sanitize import visible
from ..utils.values import Section
from .command import add_options, option

SUFFIXES = tuple(f".{form}" for form in FORMS)
"""The endings of files by which the form of a report is recognised."""

STANDARD_OUTPUT = ("-", "/dev/stdout")
_PAGES = (".html", ".htm")


form_options = add_options(
    *(option(f"--{form} form", Section.OUTPUTS, f"Output as {title}.", flag_value=form) for form, title in FORMS.items())
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
    return any(path in STANDARD_OUTPUT for path in paths) or (not paths and form is not None)


class PathOrUrlType(click.Path):
    """A local path, or a URL, which stays a text: a path has one slash in place of two."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path or the URL. Raises click.BadParameter for a URL of another protocol."""
        if is_url(value):
            return value
        refusal = unsupported_url(value)
        if refusal is not None and not Path(value).parent.is_dir():  # a file may have such a name, also one that is written
            self.fail(refusal, param, ctx)
        return super().convert(value, param, ctx)


class LocalPathType(PathOrUrlType):
    """A local path."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path. Raises click.BadParameter for a URL."""
        if is_url(value) or (unsupported_url(value) is not None and not Path(value).parent.is_dir()):
            self.fail(f"{redact(os.fspath(value))} is a URL; give the path of a file on this machine", param, ctx)
        return super().convert(value, param, ctx)


def check_target(target: PathOrUrl, flag: str, inputs: Sequence[str]) -> None:
    """Raise OutputError if the target is one of the files that the command reads, or writes as another output."""
    if any(is_same_file(target, name) for name in inputs):
        raise OutputError(
            f"{flag} {redact_url(target)} would overwrite another file of this command; give it a name of its own"
        )


def check_targets(targets: Iterable[tuple[str, PathOrUrl | None]], inputs: Sequence[str]) -> None:
    """Check files by the flags that name them, before anything is read or scored; None is a flag that was not given.

    Raises OptionError if pages cannot be made, and for standard output; OutputError if a file cannot be written, or is named
    twice.
    """
    from ..storage.folder import check_output

    taken = list(inputs)
    for flag, target in targets:
        if target is not None:
            if str(target) == "-":
                raise OptionError(f"{flag} - is no file; give it the name of a file")
            if flag == "--html":
                from ..page.template import check_installed

                check_installed()
            check_target(target, flag, taken)
            check_output(target)
            taken.append(str(target))


def json_text(answer: Any) -> str:
    """Return the answer of a command as JSON, with null for every number that is NaN or infinite."""
    return json.dumps(finite(answer), indent=2, allow_nan=False) + "\n"


def print_text(text: str) -> None:
    """Print text to standard output. Raises OutputError if it cannot be written.

    Characters that would control the terminal, as names of files can have, are spelt out; no form of a report has any.
    """
    with interruptible():
        click.echo(visible(text, lines=True), nl=False)
