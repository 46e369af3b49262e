"""Where the scores of a command go."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import OutputError
from ..frames.remote import is_url, named
from ..interruption import at_once
from ..place import Place, suffix_of

if TYPE_CHECKING:
    from ..results import ScoreReport

FORMS = ("json", "xml", "csv", "sub")

_STANDARD_OUTPUT = ("-", "/dev/stdout")


def output(path: str | None, form: str | None, precision: str, inputs: Sequence[str]) -> Callable[[ScoreReport], None] | None:
    """What delivers a report where it was asked for, checked before anything is scored; None where none was asked for.

    The form follows the ending of the path; where that says nothing it is XML, as libvmaf's tool has it.
    """
    from ..folder import check_output, write_output
    from ..report import render
    from ..report.numbers import NumberFormat

    NumberFormat.parse(precision)
    if path is None and form is None:
        return None
    if form is None:
        ending = suffix_of(path or "").lstrip(".")
        form = ending if ending in FORMS else "xml"
    chosen = form
    if to_standard_output(path, form):
        return lambda report: print_text(render(report, chosen, precision))
    assert path is not None
    target = path
    check_target(target, "--output", inputs)
    check_output(target)
    return lambda report: write_output(render(report, chosen, precision), target)


def to_standard_output(path: str | None, form: str | None) -> bool:
    """Whether a report goes to standard output: it was asked for by name, or by a form without a path."""
    return path in _STANDARD_OUTPUT or (path is None and form is not None)


class PathOrUrl(click.Path):
    """A local path, or a URL, which stays the text that it is."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """See click."""
        return value if is_url(value) else super().convert(value, param, ctx)


def check_target(target: Place, flag: str, inputs: Sequence[str]) -> None:
    """Raise OutputError where what is to be written is one of the files that the command reads or writes besides."""
    if any(_same_file(str(target), name) for name in inputs):
        raise OutputError(f"{flag} {named(target)} would overwrite another file of this command; give it a name of its own")


def _same_file(first: str, second: str) -> bool:
    first, second = (name.removeprefix("file://") for name in (first, second))
    if is_url(first) or is_url(second):
        return first == second
    try:
        if os.path.exists(first) and os.path.exists(second):
            return os.path.samefile(first, second)
        return os.path.realpath(first) == os.path.realpath(second)
    except (OSError, ValueError):  # no name that a file could have
        return False


def print_text(text: str) -> None:
    """Print text to standard output. Raises OutputError where it cannot be written."""
    with at_once():
        click.echo(text, nl=False)
