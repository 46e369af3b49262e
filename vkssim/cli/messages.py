"""Print messages for the user to standard error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..storage.remote import named
from ..utils.sanitize import visible
from .flags import with_flags

if TYPE_CHECKING:
    from ..scoring.comparability import Findings
    from ..storage.location import PathOrUrl


def say(message: object) -> None:
    """Print a line on standard error, with flags in place of the parameters that it names.

    Characters that would control the terminal, as names of files can have, are spelt out.
    """
    click.echo(f"vkssim: {visible(with_flags(str(message)))}", err=True)


def say_written(name: PathOrUrl) -> None:
    """Say which file was written."""
    say(f"wrote {named(name)}")


def say_findings(found: Findings) -> None:
    """Say what is warned of and noted of scores that are compared."""
    for warning in found.warnings:
        say(f"warning: {warning}")
    for note in found.notes:
        say(f"note: {note}")
