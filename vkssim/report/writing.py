"""Write a report in one of its forms: JSON, XML, CSV and subtitles, as libvmaf's tools write them, with further keys."""

from __future__ import annotations

import csv
import io
import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import OptionError, OutputError
from ..storage.atomic import write_file as write
from ..utils.sanitize import cell, visible
from ..utils.values import to_json
from ..utils.version import __version__
from .numbers import NumberFormat, shortest
from .results import ScoreReport, as_dict

__all__ = ["WRITERS", "render", "write"]

_XML_NAME = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)
_XML_MISSING = "nan"  # C's printf writes NaN in this way: float() reads it, and no reader mistakes it for a score
_NOT_OF_SUBTITLES = str.maketrans("{}|", "()/")  # these end a line or begin a command


def _json(report: ScoreReport, numbers: NumberFormat) -> str:
    return json.dumps(as_dict(report, numbers), indent=2, allow_nan=False) + "\n"


def _xml(report: ScoreReport, numbers: NumberFormat) -> str:
    """Return the report as XML. Raises OutputError if the name of a score cannot be the name of an attribute."""
    for name in report.names:
        if not _XML_NAME.fullmatch(name):
            raise OutputError(f"a score is called {name!r}, which no attribute of XML can be; JSON and CSV can have it")
    root = ElementTree.Element("VMAF", version=__version__)
    ElementTree.SubElement(root, "params", qualityWidth=str(report.width), qualityHeight=str(report.height))
    device, driver = visible(report.backend.device), visible(report.backend.driver)
    ElementTree.SubElement(root, "fyi", fps=f"{report.profiled_fps:.2f}", device=device, driver=driver)
    frames = ElementTree.SubElement(root, "frames")
    for frame in report.frames:
        scores = {name: numbers.text(value, _XML_MISSING) for name, value in frame.metrics.items()}
        ElementTree.SubElement(frames, "frame", {"frameNum": str(frame.index), **scores})
    pooled_metrics = ElementTree.SubElement(root, "pooled_metrics")
    for name, pooled in report.pooled().items():
        values = {pooling: numbers.text(value, _XML_MISSING) for pooling, value in pooled.items()}
        ElementTree.SubElement(pooled_metrics, "metric", {"name": name, **values})
    ElementTree.SubElement(root, "aggregate_metrics")
    if report.scoring is not None:
        _add_element(root, "scoring", to_json(report.scoring))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _add_element(parent: ElementTree.Element, name: str, data: Mapping[str, Any]) -> None:
    """Add an element with an attribute for each single value, and a child for each object and for each entry of a list."""
    element = ElementTree.SubElement(parent, name)
    for key, value in data.items():
        if isinstance(value, Mapping):
            _add_element(element, key, value)
        elif isinstance(value, list):
            for entry in value:
                _add_element(element, key, entry if isinstance(entry, Mapping) else {"value": entry})
        elif value is not None:
            element.set(key, str(value).lower() if isinstance(value, bool) else visible(str(value)))


def _csv(report: ScoreReport, numbers: NumberFormat) -> str:
    """Return the report as CSV: a header, then a row for each frame. A score that does not exist is an empty field.

    The column `time` has seconds, if those of all frames are known. The last column has no name, and the record as JSON in its
    first row: libvmaf ends each line with a comma, so programs that read its files skip such a column.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    scoring = [] if report.scoring is None else [json.dumps(to_json(report.scoring), separators=(",", ":"))]
    timed = bool(report.frames) and all(frame.time is not None for frame in report.frames)
    writer.writerow(["Frame", *map(cell, report.names), *(["time"] if timed else []), *([""] * len(scoring))])
    for frame in report.frames:
        scores = [numbers.text(frame.metrics[name], "") for name in report.names]
        time = [shortest(frame.time)] if timed and frame.time is not None else []
        writer.writerow([frame.index, *scores, *time, *scoring])
        scoring = [""] * len(scoring)
    return text.getvalue()


def _sub(report: ScoreReport, numbers: NumberFormat) -> str:
    """Return the report as MicroDVD subtitles, which show the scores of each frame over the clip, as libvmaf writes them."""
    lines = []
    for frame in report.frames:
        texts = {name: numbers.text(value, "null") for name, value in frame.metrics.items()}
        scores = "|".join(f"{visible(name).translate(_NOT_OF_SUBTITLES)}: {text}" for name, text in texts.items())
        lines.append(f"{{{frame.index}}}{{{frame.index + 1}}}frame: {frame.index}|{scores}\n")
    return "".join(lines)


WRITERS: dict[str, Callable[[ScoreReport, NumberFormat], str]] = {"json": _json, "xml": _xml, "csv": _csv, "sub": _sub}
"""The function that renders a report as text, by the name of the form; `FORMS` has their titles."""


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
    >>> from vkssim.types import BackendInfo
    >>> backend = BackendInfo("cpu", "NumPy", "2.0")
    >>> report = ScoreReport("ref.y4m", "dis.y4m", 64, 48, 8, ("float_ssim",), backend, [FrameScores(0, {"float_ssim": 0.98})])
    >>> print(render(report, "csv", "3"), end="")
    Frame,float_ssim
    0,0.980

    """
    if form not in WRITERS:
        raise OptionError(f"unknown output form {form!r}. Available forms: {', '.join(WRITERS)}")
    return WRITERS[form](report, NumberFormat.parse(precision))
