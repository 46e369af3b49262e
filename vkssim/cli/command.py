"""Make the commands of the command line: each has examples, and options that belong to a section of the help."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import click

from ..utils.values import Section
from ..utils.wording import did_you_mean

SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
"""The settings of each command. Where -h is the height, as in libvmaf's tool, it is not the help."""

_LONGEST_LIST = 8
"""Options of a command that are listed without sections at most."""

_WHOLE = "vkssim.whole_help"
"""In the `meta` of a context: True if the help lists every option."""


Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
"""A decorator of the function of a command, such as those of click."""


class CommandOption(click.Option):
    """An option that a section of the help lists. The help shows a default unless `show_default` says otherwise."""

    def __init__(self, names: Sequence[str], *, section: Section, **attributes: Any) -> None:
        super().__init__(names, **{"show_default": "default" in attributes, **attributes})
        self.section = section


class Choice(click.Choice):  # type: ignore[type-arg]  # not generic in older versions of click
    """A choice of words. If a word is mistyped, the error suggests the most similar one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the word that was chosen; a default may be a number. Raises click.BadParameter."""
        try:
            return super().convert(str(value), param, ctx)
        except click.BadParameter as error:
            raise click.BadParameter(
                f"{error.message.rstrip('.')}{did_you_mean(str(value), self.choices)}.", ctx, param
            ) from None


class CommandWithExamples(click.Command):
    """A command or a group whose help ends with examples, which are given as lines: a command line, then what it does."""

    def __init__(self, *arguments: Any, examples: str = "", **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        lines = [line.strip() for line in examples.strip().splitlines()]
        self.examples = list(zip(lines[::2], lines[1::2], strict=True))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples to the formatter, each command line on a line of its own, and then the epilog."""
        if self.examples:
            with formatter.section("Examples"):
                for line, does in self.examples:
                    formatter.write(f"{'':{formatter.current_indent}}{line}\n")
                    with formatter.indentation():
                        formatter.write_text(does)
        super().format_epilog(ctx, formatter)


class Command(CommandWithExamples):
    """A command whose help lists its options by section and ends with examples.

    If the names of `common` options are given, `--help` lists these alone, and `--help-all` every option.
    """

    def __init__(self, *arguments: Any, common: str = "", **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self.common = common.split()
        if common:
            flag: dict[str, Any] = {"is_flag": True, "is_eager": True, "expose_value": False, "callback": _show_all}
            text = "Show every option and exit."
            self.params.append(CommandOption(["--help-all"], section=Section.GENERAL, help=text, **flag))

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
        brief = self.common and not ctx.meta.get(_WHOLE)
        for title, options in sections(self, ctx, self.common if brief else None):
            records = [record for option in options if (record := option.get_help_record(ctx)) is not None]
            with formatter.section(title):
                formatter.write_dl(records)


def sections(
    command: click.Command, ctx: click.Context, names: Collection[str] | None = None
) -> Iterator[tuple[str, list[click.Option]]]:
    """Yield the title of each section and its options, of a short list only one section.

    If `names` are given, only the options of these names and those that print and exit are listed.
    """
    options = [option for option in command.get_params(ctx) if isinstance(option, click.Option) and not option.hidden]
    listed = [option for option in options if names is None or option.is_eager or option.name in names]
    if len(listed) <= _LONGEST_LIST:
        yield "Options", listed
        return
    for section in Section:
        chosen = [option for option in listed if getattr(option, "section", Section.GENERAL) is section]
        if chosen:
            yield section.value, chosen


def _show_all(ctx: click.Context, _parameter: click.Parameter, given: bool) -> None:
    if given and not ctx.resilient_parsing:
        ctx.meta[_WHOLE] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


def make_command(
    name: str, *, brief: str | None = None, examples: str = "", common: str = ""
) -> Callable[[Callable[..., Any]], click.Command]:
    """Return a decorator that makes a `Command` of a function. `brief` is its text in the list of commands."""
    return click.command(name, cls=Command, short_help=brief, context_settings=SETTINGS, examples=examples, common=common)


def option(names: str, section: Section, help: str, **attributes: Any) -> Decorator:  # as click calls it
    """Return a decorator that adds an option to a command; blanks separate its names. See `CommandOption`."""
    return click.option(*names.split(), cls=CommandOption, section=section, help=help, **attributes)


def add_options(*options: Decorator) -> Decorator:
    """Return a decorator that adds options to a command."""
    return lambda function: functools.reduce(lambda made, add: add(made), reversed(options), function)
