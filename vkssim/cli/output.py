"""Check the outputs of a command, and print its answers and its messages."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import OptionError, OutputError
from ..report.numbers import finite
from ..storage.location import PathOrUrl, is_same_file, is_url, redact, redact_url, suffix_of, unsupported_url
from ..utils.choices import FORMS
from ..utils.interruption import interruptible
from ..utils.sanitize import visible
from ..utils.values import Section
from .command import add_options, option

if TYPE_CHECKING:
    from ..metrics.comparability import Findings

SUFFIXES = tuple(f".{form}" for form in FORMS)
"""The endings of files by which the form of a report is recognised."""

STANDARD_OUTPUT = ("-", "/dev/stdout")
_PAGES = (".html", ".htm")
_PARAMETER = re.compile(r"`([a-z_]+)(?:=([^`]*))?`")
_ALIASES = {"features": "--feature", "output": "--output", "pooled": "--print"}
"""Parameters of Python whose option in the command line has another name, beyond those that are declared as facts."""


form_options = add_options(
    *(option(f"--{form} form", Section.OUTPUTS, f"Output as {title}.", flag_value=form) for form, title in FORMS.items())
)
"""The flag of each form of a report; the command gets the name of the form as `form`."""


def form_of(path: str) -> str:
    """Return the form that the ending of a path names; XML if it has none, or one like ``run.2``. Raises OptionError."""
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
    """Check files by the flags that name them, before anything is scored; None is a flag that was not given.

    Raises OptionError for a page that cannot be made, OutputError for a file that cannot be written or is named twice.
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
    """Print text to standard output, with characters that control terminals spelt out. Raises OutputError."""
    with interruptible():
        click.echo(visible(text, lines=True), nl=False)


# -- messages ---------------------------------------------------------------------------------------------------------


def say(message: object) -> None:
    """Print a line on standard error, with flags in place of the parameters that it names."""
    click.echo(f"vkssim: {visible(with_flags(str(message)))}", err=True)


class _NoteHandler(logging.Handler):
    """A handler that prints each message of a log as a note."""

    def emit(self, record: logging.LogRecord) -> None:
        say(f"note: {record.getMessage()}")


COMPILE_NOTES = _NoteHandler()
"""The handler of the log of compilations, which a quiet command removes."""


def say_written(name: PathOrUrl) -> None:
    """Say which file was written."""
    say(f"wrote {redact_url(name)}")


def say_findings(findings: Findings) -> None:
    """Print the warnings and notes on scores that are compared."""
    for warning in findings.warnings:
        say(f"warning: {warning}")
    for note in findings.notes:
        say(f"note: {note}")


def with_flags(text: str) -> str:
    """Return a message with the flag of each parameter that it names in backticks, of the command or of any declared option."""
    flags = _flags() if "`" in text else {}

    def flag(match: re.Match[str]) -> str:
        name, value = match[1], match[2]
        if name not in flags:
            return match[0]
        return flags[name] if value is None else f"{flags[name]} {value}"

    return _PARAMETER.sub(flag, text)


def _flags() -> dict[str, str]:
    """Return the flag of each parameter by its name. The command that runs may have failed in the group that called it."""
    from ..frames.options import PictureOptions, RawDescription, Selection
    from ..report.record import ScoringRecord
    from ..utils.values import values_of

    declared = (values_of(kind) for kind in (ScoringRecord, Selection, PictureOptions, RawDescription))
    flags = _ALIASES | {name: entry.flag for entries in declared for name, entry in entries.items() if entry.flag is not None}
    context = click.get_current_context(silent=True)
    command = None if context is None else context.command
    if context is not None and isinstance(command, click.Group) and context.invoked_subcommand is not None:
        command = command.get_command(context, context.invoked_subcommand)
    own = [parameter for parameter in command.params if isinstance(parameter, click.Option)] if command is not None else []
    return flags | {option.name: max(option.opts, key=len) for option in own if option.name is not None}
