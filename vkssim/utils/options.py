"""Options, each declared once: as a field of a frozen dataclass, by `option`.

The check of a value, the flag of the command line with its type, default and help, the name of the option in reports, and the
comparison of two reports follow from the declaration. `vkssim/cli/options.py`
makes flags from the declarations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from types import UnionType
from typing import Any, Union, get_args, get_origin

from ..errors import InputError, OptionError
from .choices import Section
from .facts import ComparisonRule, Fact, types_of
from .limits import LARGEST_NUMBER, abbreviated


@dataclass(frozen=True)
class DeclaredOption:
    """An option. Its name, its types other than None, and its default are those of its field: `options_of` fills them in.

    `flags` are its names on the command line. `least` is the smallest number that it can be, `choices` are its possible values,
    and `parse` reads a text or raises OptionError; it gets the name of the option and the value. `metavar` stands for the value
    in the help; without it the command line itself offers the choices and refuses all other values. `shows_default` makes the
    help name the default. Options of a lower `rank` come first in the help, options of one rank in the order of their fields.
    """

    flags: tuple[str, ...]
    help: str
    section: Section
    metavar: str | None = None
    least: int | None = None
    choices: tuple[str, ...] | tuple[int, ...] | None = None
    parse: Callable[[str, Any], object] | None = None
    shows_default: bool = False
    rank: int = 0
    name: str = ""
    types: tuple[type, ...] = ()
    default: Any = None

    def check(self, value: Any) -> None:
        """Raise OptionError, or InputError for a number, if the value is not allowed.

        None stands for no value and is allowed.
        """
        if value is None:
            return
        if self.parse is not None:
            self.parse(self.name, value)
        elif self.choices is not None and value not in self.choices:
            raise OptionError(f"{self.name} is {value!r}; possible values: {', '.join(map(str, self.choices))}")
        elif self.types == (int,):
            least = self.least
            if least is None and abs(value) > LARGEST_NUMBER:
                raise InputError(f"`{self.name}` is {abbreviated(value)}; the limit is {LARGEST_NUMBER}")
            if least is not None and not least <= value <= LARGEST_NUMBER:
                raise InputError(
                    f"`{self.name}` is {abbreviated(value)}; it must be {least} or more, and {LARGEST_NUMBER} at most"
                )


def option(
    default: Any,
    title: str,
    *flags: str,
    help: str,  # as click calls it
    section: Section,
    differs: ComparisonRule = ComparisonRule.FREE,
    across: ComparisonRule | None = None,
    optional: bool = False,
    **declared: Any,
) -> Any:
    """Return a field of a dataclass that is an option.

    `title` is its name in reports and comparisons. `differs`, `across` and `optional` declare the consequence of a difference
    between two reports, as in `Fact`. `declared` are further attributes of `DeclaredOption`.
    """
    flag = next(flag for flag in flags if flag.startswith("--"))  # which messages and recorded commands use
    recorded = Fact(title, differs, across=across, optional=optional, flag=flag)
    return field(default=default, metadata={"fact": recorded, "option": DeclaredOption(flags, help, section, **declared)})


def options_of(kind: Any) -> Iterator[DeclaredOption]:
    """Yield the options that a dataclass declares, in the order of its fields."""
    hints = types_of(kind)
    for entry in fields(kind):
        if "option" in entry.metadata:
            hint = hints[entry.name]
            types = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
            known = tuple(single for single in types if single is not type(None))
            yield replace(entry.metadata["option"], name=entry.name, types=known, default=entry.default)


def check_declared(options: Any) -> None:
    """Raise OptionError or InputError if an option of a dataclass has a value that is not allowed."""
    for declared in options_of(type(options)):
        declared.check(getattr(options, declared.name))
