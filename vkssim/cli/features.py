"""List the metrics and their options: the command `vkssim features`."""

from __future__ import annotations

import click

from .command import make_command


@make_command("features")
def command() -> None:
    """List the metrics and their options."""
    from ..features import FEATURES

    for feature in FEATURES.values():
        click.echo(feature.name)
        for name, option in feature.options.items():
            default = str(option.default).lower() if isinstance(option.default, bool) else option.default
            click.echo(f"   {name}={default}   {option.summary}")
