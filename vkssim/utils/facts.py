"""Facts that reports record, each declared once, as a field of a frozen dataclass with `fact` as its metadata.

Its form in JSON, its schema, reading it back and the comparison of two reports follow from the declaration. A field without
metadata is a fact as well, under its own name. Reports that are compared must agree in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import IntEnum
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from ..errors import VkssimError
from .limits import LARGEST_NUMBER, abbreviated

Kind = TypeVar("Kind")


class ComparisonRule(IntEnum):
    """The consequence of a fact that differs between two reports that are compared."""

    FREE = 0
    """Nothing: the fact does not describe how the scores were made, or differs by nature."""
    NOTED = 1
    """The difference is noted."""
    WARNED = 2
    """The difference gives a warning."""
    REFUSED = 3
    """The scores were made differently: the comparison is refused, unless the user forces it."""


@dataclass(frozen=True)
class Fact:
    """A declared fact: its title, its flag, its unit, and the rules by which it is written and compared.

    `title` is its name for people, `flag` the option of `vkssim score` that sets it, and `unit` the unit of its numbers. A fact
    with `column` has a column in the tables of a batch.

    `differs` is the consequence of a difference between scores against one reference. `of_reference` replaces it for facts of a
    reference, and `across` for scores against different references. An `optional` fact differs only if both reports have it. A
    `sparse` fact is left out of a report if it is None.
    """

    title: str
    differs: ComparisonRule = ComparisonRule.REFUSED
    of_reference: ComparisonRule | None = None
    across: ComparisonRule | None = None
    optional: bool = False
    flag: str | None = None
    unit: str = ""
    column: bool = False
    sparse: bool = False

    def rule(self, *, of_reference: bool = False, across: bool = False) -> ComparisonRule:
        """Return the consequence of a difference in this fact."""
        if across and self.across is not None:
            return self.across
        return self.of_reference if of_reference and self.of_reference is not None else self.differs

    def is_compared(self, *, of_reference: bool = False) -> bool:
        """Return True if any comparison considers the fact."""
        rules = (self.rule(of_reference=of_reference, across=across) for across in (False, True))
        return any(rule is not ComparisonRule.FREE for rule in rules)

    def text(self, value: object) -> str:
        """Return a value with its unit."""
        return f"{as_text(value)} {self.unit}".rstrip() if value is not None else "none"


def fact(title: str, differs: ComparisonRule = ComparisonRule.REFUSED, **more: Any) -> dict[str, Fact]:
    """Return the metadata of a field; see `Fact`."""
    return {"fact": Fact(title, differs, **more)}


def facts_of(kind: Any) -> dict[str, Fact]:
    """Return the declaration of each field of a dataclass, by the field's name."""
    if kind not in _declared:
        _declared[kind] = {
            field.name: field.metadata.get("fact") or Fact(field.name.replace("_", " ")) for field in fields(kind)
        }
    return _declared[kind]


_declared: dict[Any, dict[str, Fact]] = {}


def as_text(value: object) -> str:
    """Return a single value as text. Numbers have six significant digits, or all digits before the decimal point."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 1e6 else f"{value:g}"
    return str(value)


# -- JSON -------------------------------------------------------------------------------------------------------------


def to_json(value: Any) -> Any:
    """Return facts as values of JSON: objects with the names of the fields as keys."""
    if is_dataclass(value):
        return {name: to_json(entry) for name, entry in given_facts(value).items()}
    if isinstance(value, Mapping):
        return {name: to_json(entry) for name, entry in value.items()}
    if isinstance(value, tuple | list):
        return [to_json(entry) for entry in value]
    return value


def given_facts(value: Any) -> dict[str, Any]:
    """Return the facts of a dataclass by their names, without sparse ones that are None."""
    facts = {name: (entry, getattr(value, name)) for name, entry in facts_of(type(value)).items()}
    return {name: single for name, (entry, single) in facts.items() if not (entry.sparse and single is None)}


def to_short_json(value: Any) -> Any:
    """Return facts as `to_json` does, without defaults, which `from_json` fills in: rows of a table repeat these objects."""
    if not is_dataclass(value):
        return [to_short_json(entry) for entry in value] if isinstance(value, tuple) else to_json(value)
    found = {}
    for field in fields(value):
        entry, required = getattr(value, field.name), field.default is MISSING and field.default_factory is MISSING
        if entry != field.default and ((short := to_short_json(entry)) != {} or required):
            found[field.name] = short
    return found


def from_json(kind: type[Kind], data: Any, where: str) -> Kind:
    """Return facts from the values that `to_json` gave.

    A missing key has its default: the option did not exist when the report was written. Unknown keys are ignored. Raises
    ValueError, which names the key, for anything else; `where` is the name of the facts in the message.
    """
    if not isinstance(data, dict):
        raise ValueError(f"{where} is {abbreviated(data)}; it must be an object")
    hints = types_of(kind)
    found = {name: _value(hints[name], data[name], f"{where}.{name}") for name in hints if name in data}
    try:
        return kind(**found)
    except (TypeError, VkssimError) as error:  # VkssimError if options contradict each other
        raise ValueError(f"{where}: {error}") from None


def types_of(kind: Any) -> dict[str, Any]:
    """Return the types of a dataclass's fields by their names."""
    if kind not in _types:
        _types[kind] = get_type_hints(kind)
    return _types[kind]


_types: dict[Any, dict[str, Any]] = {}


def _value(kind: Any, data: Any, where: str) -> Any:
    if is_dataclass(kind):
        return from_json(kind, data, where)  # type: ignore[arg-type]
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        chosen = next((part for part in parts if _fits(part, data)), parts[0])
        return _value(chosen, data, where)
    if not _fits(kind, data):
        raise ValueError(f"{where} is {abbreviated(data)}")
    if origin in (tuple, list):
        kinds = parts if len(parts) == len(data) and parts[-1] is not Ellipsis else parts[:1] * len(data)
        return origin(
            _value(part, entry, f"{where}[{place}]") for place, (part, entry) in enumerate(zip(kinds, data, strict=True))
        )
    if origin is not None:  # a mapping
        return {str(name): _value(parts[1], entry, f"{where}.{name}") for name, entry in data.items()}
    return data


def _fits(kind: Any, data: Any) -> bool:
    """Return whether a value of JSON has a type, as far as this shows without its elements."""
    origin = get_origin(kind)
    if origin in (tuple, list):
        return isinstance(data, list)
    if origin is not None or is_dataclass(kind):
        return isinstance(data, dict)
    if kind is float:
        number = isinstance(data, int | float) and not isinstance(data, bool)
        return number and abs(data) <= LARGEST_NUMBER and math.isfinite(data)
    if kind is int:
        return isinstance(data, int) and not isinstance(data, bool) and abs(data) <= LARGEST_NUMBER
    return isinstance(data, kind)


_JSON_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}


def json_schema(kind: Any) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of the values that `to_json` gives for a type."""
    origin, parts = get_origin(kind), get_args(kind)
    if is_dataclass(kind):
        declared, hints = facts_of(kind), types_of(kind)
        properties = {
            name: {
                "description": f"{entry.title}, in {entry.unit}" if entry.unit else entry.title,
                **json_schema(hints[name]),
            }
            for name, entry in declared.items()
        }
        required = [name for name, entry in declared.items() if not entry.sparse]
        return {"type": "object", "properties": properties, "required": required}
    if origin in (Union, UnionType):
        if all(part in _JSON_TYPES for part in parts):
            return {"type": [_JSON_TYPES[part] for part in parts]}
        return {"anyOf": [json_schema(part) for part in parts]}
    if origin is tuple:
        return {"type": "array", "items": json_schema(parts[0])}
    if origin is not None:
        return {"type": "object", "additionalProperties": json_schema(parts[1])}
    return {"type": _JSON_TYPES[kind]}


# -- comparison -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Difference:
    """A fact that differs between two reports: the title of the facts that contain it, if any, and both values as text."""

    differs: ComparisonRule
    where: str
    text: str


def differences(first: Any, second: Any, where: str = "", *, across: bool, of_reference: bool = False) -> Iterator[Difference]:
    """Yield the facts in which two values of one dataclass differ, nested ones too, except facts that are free to differ.

    See `Fact` for `across` and `of_reference`; the latter says that `first` and `second` belong to references.
    """
    for name, entry in facts_of(type(first)).items():
        one, other = getattr(first, name), getattr(second, name)
        if is_dataclass(one):
            yield from differences(one, other, entry.title, across=across, of_reference=name == "reference")
            continue
        differs = entry.rule(across=across, of_reference=of_reference)
        unknown = entry.optional and (one is None or other is None)
        if differs is not ComparisonRule.FREE and one != other and not unknown:
            yield Difference(differs, where, f"{entry.title} {entry.text(one)} against {entry.text(other)}")


def compared_facts(value: Any, *, of_reference: bool = False) -> tuple[Any, ...]:
    """Return the facts that `differences` considers. If they are equal for two values, it yields nothing."""
    found: list[Any] = []
    for name, entry in facts_of(type(value)).items():
        single = getattr(value, name)
        if is_dataclass(single):
            found += compared_facts(single, of_reference=name == "reference")
        elif entry.is_compared(of_reference=of_reference):
            found.append(single)
    return tuple(found)


def sentence(found: Iterable[Difference]) -> str:
    """Return differences as one text. Differences within one group of facts follow the name of the group."""
    groups: dict[str, list[str]] = {}
    for difference in found:
        groups.setdefault(difference.where, []).append(difference.text)
    return "; ".join((f"{where}: " if where else "") + ", ".join(dict.fromkeys(texts)) for where, texts in groups.items())
