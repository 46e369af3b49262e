"""Writes a report in one of its forms."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from ..errors import OptionError
from ..storage.atomic import write_file as write
from .forms import FORMS
from .numbers import NumberFormat
from .results import ScoreReport

__all__ = ["WRITERS", "render", "write"]

WRITERS: dict[str, Callable[[ScoreReport, NumberFormat], str]] = {
    name: import_module(f".{name}", __package__).render for name in FORMS
}
"""The function that renders a report as text, by the name of the form."""


def render(report: ScoreReport, form: str, precision: str = "6") -> str:
    """Return a report as text. `precision` is a number of decimals, or `max` for numbers that read back to the same double."""
    if form not in WRITERS:
        raise OptionError(f"unknown output form {form!r}; there are {', '.join(WRITERS)}")
    return WRITERS[form](report, NumberFormat.parse(precision))
