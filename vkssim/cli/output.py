"""Where the scores of a command go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import OptionError, OutputError

if TYPE_CHECKING:
    from ..results import ScoreReport

FORMS = ("json", "xml", "csv", "sub")


def output(path: str | None, form: str | None, precision: str, inputs: Sequence[str]) -> Callable[[ScoreReport], None] | None:
    """What delivers a report where it was asked for, checked before anything is scored; None where none was asked for."""
    from ..report import check_writable, render, write
    from ..report.numbers import NumberFormat

    NumberFormat.parse(precision)
    if path is None and form is None:
        return None
    if form is None:
        assert path is not None
        form = Path(path).suffix.lstrip(".").lower()
        if form not in FORMS:
            endings = ", ".join("." + name for name in FORMS)
            raise OptionError(f"--output {path} does not end in {endings}; say --json, --xml, --csv or --sub")
    chosen = form
    if path in (None, "-"):
        return lambda report: print_text(render(report, chosen, precision))
    assert path is not None
    target = Path(path)
    check_target(target, "--output", inputs)
    check_writable(target)
    return lambda report: write(render(report, chosen, precision), target)


def check_target(target: Path, flag: str, inputs: Sequence[str]) -> None:
    """Raise OutputError where what is to be written is one of the files that the command reads or writes besides."""
    if any(_same_file(target, Path(name)) for name in inputs):
        raise OutputError(f"{flag} {target} would overwrite another file of this command; give it a name of its own")


def _same_file(first: Path, second: Path) -> bool:
    if first.exists() and second.exists():
        return first.samefile(second)
    return first.resolve() == second.resolve()


def print_text(text: str) -> None:
    """To standard output. Raises OutputError where it cannot be written, BrokenPipeError where nobody reads on."""
    try:
        click.echo(text, nl=False)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"standard output cannot be written: {error.strerror}") from None
