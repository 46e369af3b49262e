"""Options, each declared once: as a field of a frozen dataclass, by `option`.

The check of a value, the flag of the command line with its type, default and help, the name of the option in reports, and the
comparison of two reports follow from the declaration. `vkssim/cli/options.py`
makes flags from the declarations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from types import UnionType
from typing import Any, Union, get_args, get_origin

from ..errors import InputError, OptionError
from .choices import Section
from .facts import ComparisonRule, Fact, types_of
from .limits import LARGEST_NUMBER, abbreviated


@dataclass(frozen=True)
class OptionDeclaration:
    """The declaration of an option. Its field has its name, type and default.

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

    @property
    def flag(self) -> str:
        """Return the flag that messages and recorded commands use: the first long one."""
        return next(flag for flag in self.flags if flag.startswith("--"))


@dataclass(frozen=True)
class DeclaredOption:
    """An option with the name, the types and the default of its field. `types` omits None."""

    name: str
    types: tuple[type, ...]
    default: Any
    option: OptionDeclaration

    def check(self, value: Any) -> None:
        """Raise OptionError, or InputError for a number, if the value is not allowed.

        None stands for no value and is allowed.
        """
        if value is None:
            return
        option = self.option
        if option.parse is not None:
            option.parse(self.name, value)
        elif option.choices is not None and value not in option.choices:
            raise OptionError(f"{self.name} is {value!r}; possible values: {', '.join(map(str, option.choices))}")
        elif self.types == (int,):
            self._check_number(value)

    def _check_number(self, value: int) -> None:
        least = self.option.least
        if least is None and abs(value) > LARGEST_NUMBER:
            raise InputError(f"`{self.name}` is {abbreviated(value)}; the limit is {LARGEST_NUMBER}")
        if least is not None and not least <= value <= LARGEST_NUMBER:
            raise InputError(f"`{self.name}` is {abbreviated(value)}; it must be {least} or more, and {LARGEST_NUMBER} at most")


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
    between two reports, as in `Fact`. `declared` are further attributes of `OptionDeclaration`.
    """
    entry = OptionDeclaration(flags, help, section, **declared)
    recorded = Fact(title, differs, across=across, optional=optional, flag=entry.flag)
    return field(default=default, metadata={"fact": recorded, "option": entry})


def options_of(kind: Any) -> Iterator[DeclaredOption]:
    """Yield the options that a dataclass declares, in the order of its fields."""
    hints = types_of(kind)
    for entry in fields(kind):
        if "option" in entry.metadata:
            hint = hints[entry.name]
            types = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
            known = tuple(single for single in types if single is not type(None))
            yield DeclaredOption(entry.name, known, entry.default, entry.metadata["option"])


def check_declared(options: Any) -> None:
    """Raise OptionError or InputError if an option of a dataclass has a value that is not allowed."""
    for declared in options_of(type(options)):
        declared.check(getattr(options, declared.name))
