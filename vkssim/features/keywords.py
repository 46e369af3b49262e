"""Document the options of a metric as keywords of a Python function."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Mapping
from inspect import Parameter
from typing import Any, TypeVar, get_type_hints

from .options import OptionValue, declared_options

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
