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
from functools import cache
from inspect import Parameter
from types import MappingProxyType
from typing import Annotated, Any, TypedDict, TypeVar, cast, get_args, get_type_hints

import numpy as np

from ..errors import OptionError
from ..reference.samples import decibel
from ..shaders.interface import Precision
from ..types import Doubles, FrameFormat
from ..utils.limits import check_option, whole_number
from ..utils.wording import did_you_mean

OptionValue = str | float | bool

Options = TypeVar("Options", bound=Mapping[str, object])


@dataclass(frozen=True)
class MetricOption:
    """The default of an option, its parser, and its help text. `parse` raises ValueError for an invalid value.

    An option that `adds` requests further scores and changes no other score. With the value `automatic`, if there is one, the
    size of the frames determines the option.
    """

    default: OptionValue
    parse: Callable[[str], OptionValue]
    summary: str
    adds: bool = False
    automatic: OptionValue | None = None


@dataclass(frozen=True)
class MetricSettings:
    """A metric as it was requested and as it is computed.

    `text` is the request, `name=key=value` with the options that differ from their defaults. `options` has all options with the
    values that are used. `automatic` names the options that the size of the frames determined. `limit_db` is the largest dB
    that a score can have, or None if there is no limit.
    """

    text: str
    options: Mapping[str, OptionValue]
    automatic: tuple[str, ...]
    limit_db: float | None


def settings(
    feature: str,
    kind: type[Mapping[str, object]],
    options: Mapping[str, object],
    used: Mapping[str, OptionValue],
    limit_db: float | None,
) -> MetricSettings:
    """Return the settings of a feature from the requested `options` and the `used` values of options that can be automatic.

    `kind` declares the options. `limit_db` is the largest dB that a score can have, or None if there is no limit.
    """
    known, values = declared_options(kind), cast(Mapping[str, OptionValue], options)
    changed = [f"{name}={option_text(value)}" for name, value in values.items() if value != known[name].default]
    return MetricSettings(
        "=".join([feature, *([":".join(changed)] if changed else [])]),
        {**values, **used},
        tuple(name for name in used if values[name] == known[name].automatic),
        limit_db,
    )


def option_text(value: OptionValue) -> str:
    """Return the value of an option as text that its parser accepts."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def boolean(text: str) -> bool:
    """Return the boolean that a text means. Raises ValueError for any other text."""
    lowered = text.lower()
    if lowered in ("true", "1", "yes", "on"):
        return True
    if lowered in ("false", "0", "no", "off"):
        return False
    raise ValueError("true or false")


def integer_between(low: int, high: int) -> Callable[[str], int]:
    """Return a parser for whole numbers from `low` to `high`."""

    def parse(text: str) -> int:
        number = whole_number(text.strip().removeprefix("+"))
        if number is None or not low <= number <= high:
            raise ValueError(f"a whole number from {low} to {high}")
        return number

    return parse


def one_of(*choices: str) -> Callable[[str], str]:
    """Return a parser for one of a few words."""

    def parse(text: str) -> str:
        if text not in choices:
            raise ValueError(" or ".join(choices))
        return text

    return parse


class SimilarityOptions(TypedDict, total=False):
    """The options that float_ssim and float_ms_ssim share."""

    enable_lcs: Annotated[bool, MetricOption(False, boolean, "also give luminance, contrast and structure", adds=True)]
    enable_db: Annotated[bool, MetricOption(False, boolean, "give the score in dB, -10 log10(1 - score)")]
    precision: Annotated[
        str,
        MetricOption(
            Precision.EXACT.value,
            one_of(*(precision.value for precision in Precision)),
            "round as libvmaf does, to the sixth decimal (exact); or add in float32 (fast), which takes less time and can be"
            " off by 0.03 in pictures that are bright and nearly flat",
        ),
    ]
    clip_db: Annotated[
        bool,
        MetricOption(
            False, boolean, "limit the dB to what the frame's size and depth can tell apart: ceil(10 log10(2 peak^2 w h))"
        ),
    ]


@cache
def declared_options(kind: type[Mapping[str, object]]) -> Mapping[str, MetricOption]:
    """Return the options that a TypedDict declares, by name, those of its bases first."""
    return {name: get_args(hint)[1] for name, hint in get_type_hints(kind, include_extras=True).items()}


def parse_options(feature: str, kind: type[Options], given: Mapping[str, OptionValue]) -> Options:
    """Return all options that the TypedDict of a feature declares, with their values.

    Raises OptionError for an unknown option or an invalid value.
    """
    known = declared_options(kind)
    values: dict[str, OptionValue] = {name: option.default for name, option in known.items()}
    for name, value in given.items():
        if name not in known:
            there = ", ".join(sorted(known)) or "no options"
            raise OptionError(f"{feature} has no option {name!r}{did_you_mean(name, known)}; it has {there}")
        try:
            values[name] = known[name].parse(option_text(value))
        except ValueError as error:
            raise OptionError(f"{feature}: {name} is {value!r}; it must be {error}") from None
    return cast(Options, values)


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


def unknown_feature(name: str, known: Mapping[str, object]) -> OptionError:
    """Return the error for an unknown feature."""
    return OptionError(f"unknown feature {name!r}{did_you_mean(name, known)}. Available features: {', '.join(sorted(known))}")


class SimilarityScorer:
    """A metric with its options, for frames of one format, whose score is a similarity, or in dB if `enable_db` requests it.

    `terms` are the names of the means that `enable_lcs` adds. `used` has the values of options that can be automatic. In dB,
    the score is min(-10 log10(1 - score), limit). The limit is ceil(10 log10(peak^2 2 w h)) with `clip_db`. Without it there is
    none, and a perfect score is infinite.
    """

    def __init__(
        self,
        feature: str,
        terms: Sequence[str],
        frame: FrameFormat,
        kind: type[SimilarityOptions],
        options: SimilarityOptions,
        used: Mapping[str, OptionValue] = MappingProxyType({}),
    ) -> None:
        self._options = options
        self.names = (feature, *terms) if options["enable_lcs"] else (feature,)
        self.similarities: tuple[str, ...] = () if options["enable_db"] else (feature,)
        limit = None
        if options["enable_db"] and options["clip_db"]:
            limit = float(np.ceil(10 * np.log10(frame.peak**2 * 2 * frame.width * frame.height)))
        self.settings = settings(feature, kind, options, used, limit)

    def as_requested(self, score: Doubles) -> Doubles:
        """Return a score in the requested unit; NaN stays NaN."""
        if not self._options["enable_db"]:
            return score
        limit = self.settings.limit_db
        limited: Doubles = np.minimum(decibel(score), np.inf if limit is None else limit)
        return limited


# -- keywords ---------------------------------------------------------------------------------------------------------

Function = TypeVar("Function", bound=Callable[..., Any])

_ENTRY = re.compile(r"^\*\*options\b.*\n(?: {4}.*\n)+", re.MULTILINE)
_WIDTH = 116


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
        entries = "".join(_entry(name, *option) for name, option in options.items())
        function.__doc__ = _ENTRY.sub(lambda _: entries, inspect.getdoc(function) or "")
        return function

    return decorate


def _entry(name: str, hint: type, default: OptionValue, summary: str) -> str:
    text = textwrap.fill(f"{summary[0].upper()}{summary[1:]}.", _WIDTH)
    return f"{name} : {hint.__name__}, default {default!r}\n{textwrap.indent(text, '    ')}\n"
