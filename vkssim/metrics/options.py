"""Options of the metrics: their declarations, and the text form `name=key=value:key=value`.

A metric declares each option once, as a field of a TypedDict that is annotated with a `MetricOption`. The check of its value,
the keywords of `vkssim.ssim` and `vkssim.ms_ssim` with their documentation, `vkssim features`, completion in shells, and the
options in reports follow from the declaration.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter
from typing import Annotated, Any, TypedDict, TypeVar, get_args, get_type_hints

from ..errors import OptionError
from ..shaders.interface import Precision
from ..utils.limits import LARGEST_NUMBER, abbreviated, check_option, whole_number
from ..utils.numbers import plain_value, whole_value
from ..utils.wording import did_you_mean

OptionValue = str | float | bool


_TRUE, _FALSE = ("true", "1", "yes", "on"), ("false", "0", "no", "off")


@dataclass(frozen=True)
class MetricOption:
    """An option: its default, its help text, and its values: words, whole numbers without a gap, or true and false.

    An option that `adds` requests further scores and changes no other score.
    """

    default: OptionValue
    summary: str
    values: Sequence[OptionValue] = (False, True)
    adds: bool = False

    def parse(self, text: str) -> OptionValue:
        """Return the value that a text means. Raises ValueError, with the values that are possible, for any other text."""
        value: OptionValue | None = text
        possible = " or ".join(map(str, self.values))
        if isinstance(self.default, bool):
            value = {**dict.fromkeys(_TRUE, True), **dict.fromkeys(_FALSE, False)}.get(text.lower())
            possible = "true or false"
        elif isinstance(self.default, int):
            value = whole_number(text.strip().removeprefix("+"))
            possible = f"a whole number from {self.values[0]} to {self.values[-1]}"
        if value is None or value not in self.values:
            raise ValueError(possible)
        return value


def option_text(value: OptionValue) -> str:
    """Return the value of an option, also of a type of NumPy or PyTorch, as text that `MetricOption.parse` accepts."""
    number = whole_value(value)
    if number is not None:
        return str(number) if abs(number) <= LARGEST_NUMBER else abbreviated(number)
    plain = plain_value(value)
    return str(plain).lower() if isinstance(plain, bool) else str(plain)


class SimilarityOptions(TypedDict, total=False):
    """The options that float_ssim and float_ms_ssim share."""

    enable_lcs: Annotated[bool, MetricOption(False, "also give luminance, contrast and structure", adds=True)]
    enable_db: Annotated[bool, MetricOption(False, "give the score in dB, -10 log10(1 - score)")]
    precision: Annotated[
        str,
        MetricOption(
            Precision.EXACT.value,
            "round as libvmaf does, to the sixth decimal (exact); or add in float32 (fast), which takes less time and can be"
            " off by 0.03 in pictures that are bright and nearly flat",
            [precision.value for precision in Precision],
        ),
    ]
    clip_db: Annotated[
        bool,
        MetricOption(False, "limit the dB to what the frame's size and depth can tell apart: ceil(10 log10(2 peak^2 w h))"),
    ]


def declared_options(kind: type[Mapping[str, object]]) -> Mapping[str, MetricOption]:
    """Return the options that a TypedDict declares, by name, those of its bases first."""
    return {name: get_args(hint)[1] for name, hint in get_type_hints(kind, include_extras=True).items()}


def parse_options(feature: str, known: Mapping[str, MetricOption], given: Mapping[str, OptionValue]) -> dict[str, OptionValue]:
    """Return the values of all options of a feature. Raises OptionError for an unknown option or an invalid value."""
    values = {name: option.default for name, option in known.items()}
    for name, value in given.items():
        if name not in known:
            there = ", ".join(sorted(known)) or "no options"
            raise OptionError(f"{feature} has no option {name!r}{did_you_mean(name, known)}; it has {there}")
        try:
            values[name] = known[name].parse(option_text(value))
        except ValueError as error:
            raise OptionError(f"{feature}: {name} is {abbreviated(value)}; it must be {error}") from None
    return values


def split_feature(text: str) -> tuple[str, dict[str, OptionValue]]:
    """Split `name=key=value:key=value` into the name and its options. Raises OptionError if an option has no value."""
    check_option("`features`", text)
    name, _, rest = text.strip().partition("=")
    options: dict[str, OptionValue] = {}
    for part in rest.split(":") if rest else ():
        key, equals, value = part.partition("=")
        if not (key and equals and value):
            raise OptionError(f"{part!r} in `features` {text!r} is not of the form option=value")
        if key in options:
            raise OptionError(f"`features` {text!r} gives {key} twice")
        options[key] = value
    return name, options


# -- keywords ---------------------------------------------------------------------------------------------------------

Function = TypeVar("Function", bound=Callable[..., Any])

_ENTRY = re.compile(r"^\*\*options\b.*\n(?: {4}.*\n)+", re.MULTILINE)
_WIDTH = 120


def documents(kind: type[Mapping[str, object]], **defaults: OptionValue) -> Callable[[Function], Function]:
    """Return a decorator that lists the options of a metric in the signature and the docstring of a function.

    They replace `**options`. `kind` is the TypedDict that declares them, and `defaults` has the defaults that differ here.
    Options that add scores are left out: such a function returns one score.
    """

    def decorate(function: Function) -> Function:
        hints = get_type_hints(kind)
        options = {
            name: (hints[name], defaults.get(name, option.default), option.summary)
            for name, option in declared_options(kind).items()
            if not option.adds
        }
        signature = inspect.signature(function)
        own = [entry for entry in signature.parameters.values() if entry.kind is not Parameter.VAR_KEYWORD]
        keywords = [
            Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=hint.__name__)
            for name, (hint, default, _) in options.items()
        ]
        function.__signature__ = signature.replace(parameters=[*own, *keywords])  # type: ignore[attr-defined]
        entries = "".join(
            f"{name} : {hint.__name__}, default {default!r}\n"
            + textwrap.fill(f"{summary[0].upper()}{summary[1:]}.", _WIDTH, initial_indent="    ", subsequent_indent="    ")
            + "\n"
            for name, (hint, default, summary) in options.items()
        )
        function.__doc__ = _ENTRY.sub(lambda _: entries, inspect.getdoc(function) or "")
        return function

    return decorate
