"""Results are plain values here, and become JSON, XML, CSV and subtitles as libvmaf's tools write them.

It knows the options by which clips were read, for reports record these, and nothing of Vulkan. Read `results` first, then
`json`.
"""

from __future__ import annotations

from ..errors import OptionError
from ..storage.atomic import write_file as write
from . import csv, json, sub, xml
from .numbers import NumberFormat
from .reading import read_report
from .results import ScoreReport
from .worst import worst_frames

__all__ = ["WRITERS", "read_report", "render", "worst_frames", "write"]

WRITERS = {"json": json.render, "xml": xml.render, "csv": csv.render, "sub": sub.render}
"""The text of a report by the name of its form."""


def render(report: ScoreReport, form: str, precision: str = "6") -> str:
    """Return a report as text. `precision` is a number of decimals, or `max` for numbers that read back to the same double."""
    if form not in WRITERS:
        raise OptionError(f"unknown output form {form!r}; there are {', '.join(WRITERS)}")
    return WRITERS[form](report, NumberFormat.parse(precision))
