"""Write a report in one of its forms."""

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
    """Return a report as text.

    Parameters
    ----------
    report : ScoreReport
        The report.
    form : {"json", "xml", "csv", "sub"}
        The form of the text.
    precision : str
        A number of decimals, 0 to 17, or ``"max"`` for numbers that read back to the same double.

    Returns
    -------
    str
        The text, with a line feed at its end.

    Raises
    ------
    OptionError
        There is no such form or precision.

    Examples
    --------
    >>> from vkssim import FrameScores, ScoreReport
    >>> from vkssim.report import render
    >>> from vkssim.report.backend_info import BackendInfo
    >>> backend = BackendInfo("cpu", "NumPy", "2.0")
    >>> report = ScoreReport("ref.y4m", "dis.y4m", 64, 48, 8, ("float_ssim",), backend, [FrameScores(0, {"float_ssim": 0.98})])
    >>> print(render(report, "csv", "3"), end="")
    Frame,float_ssim
    0,0.980

    """
    if form not in WRITERS:
        raise OptionError(f"unknown output form {form!r}. Available forms: {', '.join(WRITERS)}")
    return WRITERS[form](report, NumberFormat.parse(precision))
