"""Make the commands of the command line: each has examples, and options that belong to a section of the help.

The help and the man page are both derived from these declarations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import click

from ..utils.sections import Section
from ..utils.wording import did_you_mean

SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
"""The settings of each command. Where -h is the height, as in libvmaf's tool, it is not the help."""

_LONGEST_LIST = 8
"""Options of a command that are listed without sections at most."""


class Option(click.Option):
    """Add to an option the section of the help that lists it."""

    def __init__(self, *names: Any, section: Section, **attributes: Any) -> None:
        super().__init__(*names, **attributes)
        self.section = section


class Choice(click.Choice):  # type: ignore[type-arg]  # not generic in older versions of click
    """Suggest the word that a mistyped one was probably meant to be."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the word that was chosen. Raises click.BadParameter."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            raise click.BadParameter(
                f"{error.message.rstrip('.')}{did_you_mean(str(value), self.choices)}.", ctx, param
            ) from None


class Command(click.Command):
    """List the options by section in the help, and end it with examples: pairs of a command line and what it does."""

    def __init__(self, *arguments: Any, examples: Sequence[tuple[str, str]] = (), **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self.examples = examples

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command line. Raises click.UsageError."""
        try:
            return super().parse_args(ctx, args)
        except click.BadOptionUsage as error:
            if error.option_name == "-h":
                message = f"{error.message} It is the height; --help shows the help."
                raise click.BadOptionUsage(error.option_name, message, ctx) from None
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options to the formatter, section by section."""
        for title, options in sections(self, ctx):
            records = [record for option in options if (record := option.get_help_record(ctx)) is not None]
            with formatter.section(title):
                formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples to the formatter."""
        if self.examples:
            with formatter.section("Examples"):
                for line, does in self.examples:
                    formatter.write(f"{'':{formatter.current_indent}}{line}\n")
                    with formatter.indentation():
                        formatter.write_text(does)


def sections(command: click.Command, ctx: click.Context) -> Iterator[tuple[str, list[click.Option]]]:
    """Yield the title of each section and its options, those that are hidden left out; of a short list only one section."""
    options = [option for option in command.get_params(ctx) if isinstance(option, click.Option) and not option.hidden]
    if len(options) <= _LONGEST_LIST:
        yield "Options", options
        return
    for section in Section:
        chosen = [option for option in options if getattr(option, "section", Section.GENERAL) is section]
        if chosen:
            yield section.value, chosen


def make_command(
    name: str, *, brief: str | None = None, examples: Sequence[tuple[str, str]] = ()
) -> Callable[[Callable[..., Any]], click.Command]:
    """Return a decorator that makes a command of a function.

    `brief` is what the list of commands says, where that is not the first sentence of the docstring.
    """
    return click.command(name, cls=Command, short_help=brief, context_settings=SETTINGS, examples=examples)


def option(*names: str, section: Section, **attributes: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds an option to a command."""
    return click.option(*names, cls=Option, section=section, **attributes)
