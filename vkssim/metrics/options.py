"""Options of the metrics: their declarations, and the text form `name=key=value:key=value`.

A metric declares each option once, as a field of a TypedDict that is annotated with a `Value`. Its check, the keywords of
`vkssim.ssim` and `vkssim.ms_ssim` with their documentation, `vkssim features`, completion in shells, and the options in reports
follow from the declaration.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Mapping
from inspect import Parameter
from typing import Annotated, Any, TypedDict, TypeVar

from ..errors import OptionError
from ..shaders.interface import Precision
from ..utils.limits import LARGEST_NUMBER, abbreviated, check_option, plain_value, whole_value
from ..utils.values import Value, values_of
from ..utils.wording import did_you_mean

OptionValue = str | float | bool


def option_text(value: OptionValue) -> str:
    """Return the value of an option, also of a type of NumPy or PyTorch, as text that `Value.from_text` reads."""
    number = whole_value(value)
    if number is not None:
        return str(number) if abs(number) <= LARGEST_NUMBER else abbreviated(number)
    plain = plain_value(value)
    return str(plain).lower() if isinstance(plain, bool) else str(plain)


class SimilarityOptions(TypedDict, total=False):
    """The options that float_ssim and float_ms_ssim share."""

    enable_lcs: Annotated[bool, Value(default=False, help="also give luminance, contrast and structure", adds=True)]
    enable_db: Annotated[bool, Value(default=False, help="give the score in dB, -10 log10(1 - score)")]
    precision: Annotated[
        str,
        Value(
            default=Precision.EXACT.value,
            help="round as libvmaf does, to the sixth decimal (exact); or add in float32 (fast), which takes less time and can"
            " be off by 0.03 in pictures that are bright and nearly flat",
            choices=[precision.value for precision in Precision],
        ),
    ]
    clip_db: Annotated[
        bool,
        Value(
            default=False, help="limit the dB to what the frame's size and depth can tell apart: ceil(10 log10(2 peak^2 w h))"
        ),
    ]


def parse_options(feature: str, declared: Mapping[str, Value], given: Mapping[str, OptionValue]) -> dict[str, OptionValue]:
    """Return the values of all options of a feature. Raises OptionError for an unknown option or an invalid value."""
    values = {name: option.default for name, option in declared.items()}
    for name, value in given.items():
        if name not in declared:
            supported = ", ".join(sorted(declared)) or "no options"
            raise OptionError(f"{feature} has no option {name!r}{did_you_mean(name, declared)}; it has {supported}")
        parsed = declared[name].from_text(option_text(value))
        if parsed is None:
            raise OptionError(f"{feature}: {name} is {abbreviated(value)}; it must be {declared[name].possible}")
        values[name] = parsed
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
        options = {name: option for name, option in values_of(kind).items() if not option.adds}
        signature = inspect.signature(function)
        own = [entry for entry in signature.parameters.values() if entry.kind is not Parameter.VAR_KEYWORD]
        keywords, entries = [], ""
        for name, option in options.items():
            default, type_name = defaults.get(name, option.default), option.hint.__name__
            keywords.append(Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=type_name))
            summary = f"{option.help[0].upper()}{option.help[1:]}."
            text = textwrap.fill(summary, _WIDTH, initial_indent="    ", subsequent_indent="    ")
            entries += f"{name} : {type_name}, default {default!r}\n{text}\n"
        function.__signature__ = signature.replace(parameters=[*own, *keywords])  # type: ignore[attr-defined]
        function.__doc__ = _ENTRY.sub(lambda _: entries, inspect.getdoc(function) or "")
        return function

    return decorate
