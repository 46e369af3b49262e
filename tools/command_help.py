"""The commands as the man page and the site describe them: every command with its context, and the placeholders of values."""

from __future__ import annotations

from collections.abc import Iterator

import click


def contexts(context: click.Context) -> Iterator[click.Context]:
    """Yield the context of each command below a group, in the order of the group's help."""
    assert isinstance(context.command, click.Group)
    for name in context.command.list_commands(context):
        command = context.command.get_command(context, name)
        assert command is not None
        below = click.Context(command, info_name=name, parent=context)
        if isinstance(command, click.Group):
            yield from contexts(below)
        else:
            yield below


def value_name(parameter: click.Parameter) -> str:
    """Return the placeholder for a parameter's value in the help."""
    if parameter.metavar:
        return parameter.metavar
    if isinstance(parameter.type, click.Choice):
        return "|".join(map(str, parameter.type.choices))
    return parameter.type.name.upper().split()[0]


def usage(context: click.Context) -> str:
    """Return the command with its arguments, as the help begins."""
    arguments = [value_name(parameter) for parameter in context.command.params if isinstance(parameter, click.Argument)]
    return " ".join([context.command_path, "[OPTIONS]", *arguments])
