"""Values of reports and options, each declared once: as a field of a dataclass by `value`, or of a TypedDict by `Annotated`.

Its form in JSON, its schema, reading it back and the comparison of two reports follow from the declaration; for an option, also
the check of arguments and the flag of the command line with its type, default and help (`vkssim/cli/options.py`). A field
without a declaration is a value as well, under its own name, and reports that are compared must agree in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from enum import IntEnum, StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from ..errors import InputError, OptionError, VkssimError
from .limits import LARGEST_NUMBER, abbreviated, integer, plain_value, whole_number
from .wording import either

Kind = TypeVar("Kind")

_BOOLEANS = {**dict.fromkeys(("true", "1", "yes", "on"), True), **dict.fromkeys(("false", "0", "no", "off"), False)}
"""The words for true and false in the options of metrics."""


class ComparisonRule(IntEnum):
    """The consequence of a value that differs between two reports that are compared."""

    FREE = 0
    """Nothing: the value does not describe how the scores were made, or differs by nature."""
    NOTED = 1
    """The difference is noted."""
    WARNED = 2
    """The difference gives a warning."""
    REFUSED = 3
    """The scores were made differently: the comparison is refused, unless the user forces it."""


class Section(StrEnum):
    """The sections in which the help of a command lists its options, in the order of the help."""

    INPUTS = "Inputs"
    FRAMES = "Frames"
    PICTURES = "Pictures"
    METRICS = "Metrics"
    ENCODER = "Encoder"
    OUTPUTS = "Outputs"
    VERDICT = "Verdict"
    DEVICE = "Device"
    GENERAL = "General"
    LIBVMAF = "Flags of libvmaf's tool"


@dataclass(frozen=True, kw_only=True)
class Value:
    """A declared value; an option if it has a help text."""

    title: str = ""
    """Its name for people, in reports and comparisons."""
    unit: str = ""
    """The unit of a number."""
    column: bool = False
    """Whether the tables of a batch have a column for it."""
    sparse: bool = False
    """Whether a report leaves it out if it is None."""

    differs: ComparisonRule = ComparisonRule.REFUSED
    """The consequence of a difference between scores against one reference."""
    of_reference: ComparisonRule | None = None
    """Replaces `differs` for a value of a reference."""
    across: ComparisonRule | None = None
    """Replaces both for scores against different references."""
    optional: bool = False
    """Whether it differs only if both reports have it."""

    flags: tuple[str, ...] = ()
    """Its names on the command line."""
    help: str = ""
    """Its text in the help."""
    section: Section = Section.GENERAL
    """Its place in the help."""
    rank: int = 0
    """Options of a lower rank come first in the help, options of one rank in the order of their fields."""
    metavar: str | None = None
    """Stands for the value in the help. Without it the command line offers the choices, and refuses all other values."""
    shows_default: bool = False
    """Whether the help names the default."""
    minimum: int | None = None
    """The smallest number."""
    bounds: tuple[float, float] | None = None
    """The smallest and the largest value of a metric's option that need not be a whole number."""
    choices: Sequence[str | int] = ()
    """The possible values; those of a metric's option are words, or a range of whole numbers."""
    parse: Callable[[str, Any], object] | None = None
    """Gets the name of the option and a text, and raises OptionError if the text is not possible."""
    adds: bool = False
    """Whether an option of a metric requests further scores, and changes no other score."""

    name: str = ""
    """The name of its field."""
    hint: Any = None
    """The type of its field."""
    default: Any = None
    """The default of its field."""

    @property
    def types(self) -> tuple[Any, ...]:
        """Return its types, without None."""
        parts = get_args(self.hint) if get_origin(self.hint) in (Union, UnionType) else (self.hint,)
        return tuple(part for part in parts if part is not NoneType)

    @property
    def flag(self) -> str | None:
        """Return the flag that messages and recorded commands use; None if it has none."""
        return next((flag for flag in self.flags if flag.startswith("--")), None)

    @property
    def possible(self) -> str:
        """Return the possible values of an option as text."""
        if self.types == (bool,):
            return "true or false"
        if self.bounds:
            return f"a number from {self.bounds[0]:g} to {self.bounds[1]:g}"
        if isinstance(self.choices, range):
            return f"a whole number from {self.choices[0]} to {self.choices[-1]}"
        if self.choices:
            return either([str(choice) for choice in self.choices])
        lowest = -LARGEST_NUMBER if self.minimum is None else self.minimum
        return f"{lowest} or more, and {LARGEST_NUMBER} at most"

    def check(self, value: Any) -> Any:
        """Return an argument without types of NumPy. Raises OptionError, or InputError for a number out of range."""
        plain = plain_value(value)
        if plain is None:
            return None
        if self.parse is not None:
            self.parse(self.name, plain)
        elif self.choices or self.types == (bool,):
            choices = tuple(self.choices) or (False, True)
            if plain not in choices:
                raise OptionError(self._refusal(value))
            plain = choices[choices.index(plain)]
        elif self.types == (int,):
            plain = integer(f"`{self.name}`", plain)
            smallest = -LARGEST_NUMBER if self.minimum is None else self.minimum
            if not smallest <= plain <= LARGEST_NUMBER:
                raise InputError(self._refusal(value))
        return plain

    def from_text(self, text: str) -> Any:
        """Return the value that a text means: true or false, a number, or a word. None if it is not possible."""
        value: Any = text
        if self.bounds:
            return _number_between(text, *self.bounds)
        if self.types == (bool,):
            value = _BOOLEANS.get(text.lower())
        elif self.types == (int,):
            value = whole_number(text.strip().removeprefix("+"))
        return value if not self.choices or value in self.choices else None

    def _refusal(self, value: object) -> str:
        return f"`{self.name}` is {abbreviated(value)}; it must be {self.possible}"

    def rule(self, *, of_reference: bool = False, across: bool = False) -> ComparisonRule:
        """Return the consequence of a difference."""
        if across and self.across is not None:
            return self.across
        return self.of_reference if of_reference and self.of_reference is not None else self.differs

    def is_compared(self, *, of_reference: bool = False) -> bool:
        """Return whether any comparison considers the value."""
        return bool(self.rule(of_reference=of_reference) or self.rule(of_reference=of_reference, across=True))

    def text(self, value: object) -> str:
        """Return a value with its unit."""
        return f"{as_text(value)} {self.unit}".rstrip() if value is not None else "none"


def _number_between(text: str, smallest: float, largest: float) -> float | None:
    with suppress(ValueError):
        number = float(text)
        return number if smallest <= number <= largest else None
    return None


def value(title: str, *flags: str, default: Any = MISSING, default_factory: Any = MISSING, **declared: Any) -> Any:
    """Return a field of a dataclass with its declaration; `declared` are further attributes of `Value`."""
    make: Any = field  # no overload has both defaults
    metadata = {"value": Value(title=title, flags=flags, **declared)}
    return make(default=default, default_factory=default_factory, metadata=metadata)


def values_of(kind: Any) -> Mapping[str, Value]:
    """Return the declarations of a dataclass or a TypedDict by the names of the fields, those of its bases first."""
    if kind not in _declared:
        _declared[kind] = _declarations(kind)
    return _declared[kind]


_declared: dict[Any, Mapping[str, Value]] = {}


def _declarations(kind: Any) -> dict[str, Value]:
    hints = get_type_hints(kind, include_extras=True)
    if not is_dataclass(kind):
        parts = {name: get_args(hint) for name, hint in hints.items()}
        return {name: replace(entry, name=name, hint=hint) for name, (hint, entry) in parts.items()}
    declared = {}
    for item in fields(kind):
        entry = item.metadata.get("value") or Value(title=item.name.replace("_", " "))
        default = entry.default if item.default is MISSING else item.default
        declared[item.name] = replace(entry, name=item.name, hint=hints[item.name], default=default)
    return declared


def check_options(options: Any) -> None:
    """Check the options of a frozen dataclass, and make their values plain. Raises OptionError or InputError."""
    for name, entry in values_of(type(options)).items():
        object.__setattr__(options, name, entry.check(getattr(options, name)))


def as_text(value: object) -> str:
    """Return a single value as text. Numbers have six significant digits, or all digits before the decimal point."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 1e6 else f"{value:g}"
    return str(value)


# -- JSON -------------------------------------------------------------------------------------------------------------


def to_json(value: Any) -> Any:
    """Return a value as JSON has it: a dataclass as an object, with the names of the fields as keys."""
    if is_dataclass(value):
        return {name: to_json(entry) for name, entry in given_values(value).items()}
    if isinstance(value, Mapping):
        return {name: to_json(entry) for name, entry in value.items()}
    if isinstance(value, tuple | list):
        return [to_json(entry) for entry in value]
    return value


def given_values(value: Any) -> dict[str, Any]:
    """Return the values of a dataclass by their names, without sparse ones that are None."""
    entries = {name: (entry, getattr(value, name)) for name, entry in values_of(type(value)).items()}
    return {name: single for name, (entry, single) in entries.items() if not (entry.sparse and single is None)}


def to_short_json(value: Any) -> Any:
    """Return a value as `to_json` does, without defaults, which `from_json` fills in: rows of a table repeat these objects."""
    if not is_dataclass(value):
        return [to_short_json(entry) for entry in value] if isinstance(value, tuple) else to_json(value)
    given = {}
    for item in fields(value):
        entry, required = getattr(value, item.name), item.default is MISSING and item.default_factory is MISSING
        if entry != item.default and ((short := to_short_json(entry)) != {} or required):
            given[item.name] = short
    return given


def from_json(kind: type[Kind], data: Any, where: str) -> Kind:
    """Return a dataclass from the object that `to_json` gave.

    A missing key has its default: the option did not exist when the report was written. Unknown keys are ignored. Raises
    ValueError, which names the key, for anything else; `where` is the name of the object in the message.
    """
    if not isinstance(data, dict):
        raise ValueError(f"{where} is {abbreviated(data)}; it must be an object")
    declared = values_of(kind)
    given = {name: _read(entry.hint, data[name], f"{where}.{name}") for name, entry in declared.items() if name in data}
    try:
        return kind(**given)
    except (TypeError, VkssimError) as error:  # VkssimError if options contradict each other
        raise ValueError(f"{where}: {error}") from None


def _read(kind: Any, data: Any, where: str) -> Any:
    form, parts = _form(kind)
    if form is Union:
        kind = next((part for part in parts if _fits(part, data)), parts[0])
        form, parts = _form(kind)
    if form is object:
        return from_json(kind, data, where)
    if not _fits(kind, data):
        raise ValueError(f"{where} is {abbreviated(data)}")
    if form is list:
        kinds = parts if len(parts) == len(data) and parts[-1] is not Ellipsis else parts[:1] * len(data)
        pairs = enumerate(zip(kinds, data, strict=True))
        return get_origin(kind)(_read(part, entry, f"{where}[{place}]") for place, (part, entry) in pairs)
    if form is dict:
        return {str(name): _read(parts[1], entry, f"{where}.{name}") for name, entry in data.items()}
    return data


def _fits(kind: Any, data: Any) -> bool:
    """Return whether a value of JSON has a type, as far as this shows without its elements."""
    form, _ = _form(kind)
    if form is object:
        return isinstance(data, dict)
    if form is float:
        number = isinstance(data, int | float) and not isinstance(data, bool)
        return number and abs(data) <= LARGEST_NUMBER and math.isfinite(data)
    if form is int:
        return isinstance(data, int) and not isinstance(data, bool) and abs(data) <= LARGEST_NUMBER
    return isinstance(data, form)


@cache
def _form(kind: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return `object` for a dataclass, `Union`, `list`, `dict`, or else the type itself; and the parts of the type."""
    origin, parts = get_origin(kind), get_args(kind)
    if is_dataclass(kind):
        return object, ()
    if origin in (Union, UnionType):
        return Union, parts
    if origin in (tuple, list):
        return list, parts
    return (kind, ()) if origin is None else (dict, parts)


_JSON_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}


def json_schema(kind: Any) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of the values that `to_json` gives for a type."""
    form, parts = _form(kind)
    if form is object:
        declared = values_of(kind)
        properties = {
            name: {"description": f"{entry.title}, in {entry.unit}" if entry.unit else entry.title, **json_schema(entry.hint)}
            for name, entry in declared.items()
        }
        required = [name for name, entry in declared.items() if not entry.sparse]
        return {"type": "object", "properties": properties, "required": required}
    if form is Union:
        if all(part in _JSON_TYPES for part in parts):
            return {"type": [_JSON_TYPES[part] for part in parts]}
        return {"anyOf": [json_schema(part) for part in parts]}
    if form is list:
        return {"type": "array", "items": json_schema(parts[0])}
    if form is dict:
        return {"type": "object", "additionalProperties": json_schema(parts[1])}
    return {"type": _JSON_TYPES[kind]}


# -- comparison -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Difference:
    """A value that differs between two reports."""

    differs: ComparisonRule
    """The consequence."""
    where: str
    """The title of the values that contain it; empty if none do."""
    text: str
    """Its title and both values."""


def differences(first: Any, second: Any, where: str = "", *, across: bool, of_reference: bool = False) -> Iterator[Difference]:
    """Yield the values in which two objects of one dataclass differ, nested ones too, except values that are free to differ.

    `of_reference` says that `first` and `second` belong to references, and `across` that their references differ.
    """
    for name, entry in values_of(type(first)).items():
        before, after = getattr(first, name), getattr(second, name)
        if is_dataclass(before):
            yield from differences(before, after, entry.title, across=across, of_reference=name == "reference")
            continue
        differs = entry.rule(across=across, of_reference=of_reference)
        is_unknown = entry.optional and (before is None or after is None)
        if differs is not ComparisonRule.FREE and before != after and not is_unknown:
            yield Difference(differs, where, f"{entry.title} {entry.text(before)} against {entry.text(after)}")


def compared_values(value: Any, *, of_reference: bool = False) -> tuple[Any, ...]:
    """Return the values that `differences` considers. If they are equal for two objects, it yields nothing."""
    compared: list[Any] = []
    for name, entry in values_of(type(value)).items():
        single = getattr(value, name)
        if is_dataclass(single):
            compared += compared_values(single, of_reference=name == "reference")
        elif entry.is_compared(of_reference=of_reference):
            compared.append(single)
    return tuple(compared)


def sentence(unlike: Iterable[Difference]) -> str:
    """Return differences as one text. Differences within one group of values follow the name of the group."""
    groups: dict[str, list[str]] = {}
    for difference in unlike:
        groups.setdefault(difference.where, []).append(difference.text)
    return "; ".join((f"{where}: " if where else "") + ", ".join(dict.fromkeys(texts)) for where, texts in groups.items())
