"""What is said to the user, on standard error."""

from __future__ import annotations

import click

from ..harmless import visible


def say(message: object) -> None:
    """A line of its own; what would do something to a terminal, as names of files can, is spelt out."""
    click.echo(f"vkssim: {visible(str(message))}", err=True)
