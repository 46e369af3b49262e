"""Values declared once: their form in JSON, their schema, what is read back, what differs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from vkssim.utils.values import (
    ComparisonRule,
    compared_values,
    differences,
    from_json,
    json_schema,
    sentence,
    to_json,
    to_short_json,
    value,
)


@dataclass(frozen=True)
class Inner:
    side: int = value("side", differs=ComparisonRule.WARNED, unit="samples", default=3)
    name: str | None = value("name", optional=True, default=None)


@dataclass(frozen=True, kw_only=True)
class Outer:
    rate: float = value("rate", across=ComparisonRule.FREE)
    free: str = value("free", differs=ComparisonRule.FREE, default="")
    place: int | str | None = None
    parts: tuple[str, ...] = ()
    options: Mapping[str, str | float | bool] = value("options", differs=ComparisonRule.FREE, default_factory=dict)
    inner: Inner = value("inner", default_factory=Inner)
    reference: Inner | None = value("reference", default=None)


FULL = Outer(rate=2.5, place="1s", parts=("a", "b"), options={"x": True, "y": 2, "z": "w"}, inner=Inner(4, "n"))


@pytest.mark.parametrize("value", [FULL, Outer(rate=1.0), replace(FULL, place=7, reference=Inner(name="r"))])
@pytest.mark.parametrize("form", [to_json, to_short_json])
def test_what_was_written_is_read(value: Outer, form: Any) -> None:
    assert from_json(Outer, json.loads(json.dumps(form(value))), "outer") == value


def test_json_has_the_names_of_the_fields() -> None:
    assert to_json(FULL) == {
        "rate": 2.5,
        "free": "",
        "place": "1s",
        "parts": ["a", "b"],
        "options": {"x": True, "y": 2, "z": "w"},
        "inner": {"side": 4, "name": "n"},
        "reference": None,
    }
    assert to_short_json(replace(FULL, inner=Inner(), options={})) == {"rate": 2.5, "place": "1s", "parts": ["a", "b"]}


def test_what_is_empty_and_has_no_default_is_written() -> None:
    """As the options of a metric that has none."""

    @dataclass(frozen=True)
    class Options:
        options: Mapping[str, str] = value("options")

    assert to_short_json(Options({})) == {"options": {}}
    assert from_json(Options, to_short_json(Options({})), "options") == Options({})


def test_keys_that_came_later_or_are_not_known() -> None:
    assert from_json(Outer, {"rate": 1}, "outer") == Outer(rate=1)
    assert from_json(Outer, {"rate": 1, "from the future": 1}, "outer") == Outer(rate=1)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], r"outer is \[\]; it must be an object"),
        ({}, "outer: .*rate"),
        ({"rate": "1"}, r"outer\.rate is '1'"),
        ({"rate": True}, r"outer\.rate is True"),
        ({"rate": float("nan")}, r"outer\.rate is nan"),
        ({"rate": 10**400}, r"outer\.rate is 1000"),
        ({"rate": 1, "parts": "ab"}, r"outer\.parts is 'ab'"),
        ({"rate": 1, "parts": ["a", 1]}, r"outer\.parts\[1\] is 1"),
        ({"rate": 1, "options": {"x": None}}, r"outer\.options\.x is None"),
        ({"rate": 1, "place": 1.5}, r"outer\.place is 1\.5"),
        ({"rate": 1, "inner": {"side": 2.0}}, r"outer\.inner\.side is 2\.0"),
        ({"rate": 1, "inner": None}, r"outer\.inner is None"),
    ],
)
def test_anything_else_is_refused_by_its_name(data: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_json(Outer, data, "outer")


def test_the_schema_is_that_of_the_fields() -> None:
    validator = Draft202012Validator(json_schema(Outer))
    Draft202012Validator.check_schema(validator.schema)
    for outer in (FULL, Outer(rate=1.0)):
        validator.validate(json.loads(json.dumps(to_json(outer))))
    for change in ({"rate": "1"}, {"parts": [1]}, {"options": {"x": None}}, {"inner": {"side": 1}}, {"place": 1.5}):
        assert not validator.is_valid({**to_json(FULL), **change}), change
    assert validator.schema["properties"]["inner"]["properties"]["side"]["description"] == "side, in samples"


def _told(first: Outer, second: Outer, *, across: bool = False) -> tuple[list[ComparisonRule], str]:
    found = list(differences(first, second, across=across))
    assert (compared_values(first) == compared_values(second)) <= (not found), "what is looked at covers all that is told"
    return [difference.differs for difference in found], sentence(found)


def test_differences_go_by_what_is_declared() -> None:
    refused, warned = ComparisonRule.REFUSED, ComparisonRule.WARNED
    assert _told(FULL, replace(FULL, free="x", options={})) == ([], "")
    assert _told(FULL, replace(FULL, rate=3.0)) == ([refused], "rate 2.5 against 3")
    assert _told(FULL, replace(FULL, rate=3.0), across=True) == ([], "")
    assert _told(FULL, replace(FULL, inner=Inner(5, "m"))) == (
        [warned, refused],
        "inner: side 4 samples against 5 samples, name n against m",
    )
    assert _told(FULL, replace(FULL, inner=Inner(4, None))) == ([], ""), "what is not known does not differ"


def test_a_field_that_nobody_declared_has_to_be_alike() -> None:
    """An option that somebody adds and forgets to declare errs on the safe side."""
    assert _told(FULL, replace(FULL, place=None)) == ([ComparisonRule.REFUSED], "place 1s against none")
