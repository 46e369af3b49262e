"""Print messages for the user to standard error, with flags in place of the parameters of Python that they name."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING

import click

from ..storage.location import redact_url
from ..utils.sanitize import visible

if TYPE_CHECKING:
    from ..metrics.comparability import Findings
    from ..storage.location import PathOrUrl

_PARAMETER = re.compile(r"`([a-z_]+)(?:=([^`]*))?`")
_ALIASES = {
    "features": "--feature",
    "output": "--output",
    "pooled": "--print",
}
"""Parameters of Python whose option in the command line has another name, beyond those that are declared as facts."""


def say(message: object) -> None:
    """Print a line on standard error, with flags in place of the parameters that it names.

    Characters that would control the terminal, as names of files can have, are spelt out.
    """
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
    """Return a message with the flag of each parameter that it names in backticks.

    Flags are those of the command that runs, then those that the options of clips declare. Other names stay as they are.
    """
    if "`" not in text:
        return text
    flags = _flags()

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
