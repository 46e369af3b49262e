"""Where scores go: the output forms of libvmaf's tools. Knows nothing of Vulkan."""

from __future__ import annotations

from ..errors import OptionError
from ..storage.atomic import write_file as write
from . import csv, json, sub, xml
from .numbers import NumberFormat
from .results import ScoreReport

__all__ = ["WRITERS", "render", "write"]

WRITERS = {"json": json.render, "xml": xml.render, "csv": csv.render, "sub": sub.render}
"""The text of a report by the name of its form."""


def render(report: ScoreReport, form: str, precision: str = "6") -> str:
    """Return a report as text. `precision` is a number of decimals, or `max` for numbers that read back to the same double."""
    if form not in WRITERS:
        raise OptionError(f"unknown output form {form!r}; there are {', '.join(WRITERS)}")
    return WRITERS[form](report, NumberFormat.parse(precision))
