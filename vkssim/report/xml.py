"""Render a report as XML, as libvmaf writes it."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from typing import Any

from ..errors import OutputError
from ..utils.facts import to_json
from ..utils.sanitize import visible
from ..utils.version import __version__
from .numbers import NumberFormat
from .results import ScoreReport

_NAME = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)
_MISSING = "nan"  # C's printf writes NaN in this way: float() reads it, and no reader mistakes it for a score


def render(report: ScoreReport, numbers: NumberFormat) -> str:
    """Return the report as XML text. Raises OutputError if the name of a score cannot be the name of an attribute."""
    for name in report.names:
        if not _NAME.fullmatch(name):
            raise OutputError(f"a score is called {name!r}, which no attribute of XML can be; JSON and CSV can have it")
    root = ElementTree.Element("VMAF", version=__version__)
    ElementTree.SubElement(root, "params", qualityWidth=str(report.width), qualityHeight=str(report.height))
    device, driver = visible(report.backend.device), visible(report.backend.driver)
    ElementTree.SubElement(root, "fyi", fps=f"{report.profiled_fps:.2f}", device=device, driver=driver)
    frames = ElementTree.SubElement(root, "frames")
    for frame in report.frames:
        scores = {name: numbers.text(value, _MISSING) for name, value in frame.metrics.items()}
        ElementTree.SubElement(frames, "frame", {"frameNum": str(frame.index), **scores})
    pooled_metrics = ElementTree.SubElement(root, "pooled_metrics")
    for name, pooled in report.pooled().items():
        values = {pooling: numbers.text(value, _MISSING) for pooling, value in pooled.items()}
        ElementTree.SubElement(pooled_metrics, "metric", {"name": name, **values})
    ElementTree.SubElement(root, "aggregate_metrics")
    if report.scoring is not None:
        _add(root, "scoring", to_json(report.scoring))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=False) + "\n"


def _add(parent: ElementTree.Element, name: str, data: Mapping[str, Any]) -> None:
    """Add an element with an attribute for each single value, and a child for each object and for each entry of a list."""
    element = ElementTree.SubElement(parent, name)
    for key, value in data.items():
        if isinstance(value, Mapping):
            _add(element, key, value)
        elif isinstance(value, list):
            for entry in value:
                _add(element, key, entry if isinstance(entry, Mapping) else {"value": entry})
        elif value is not None:
            element.set(key, str(value).lower() if isinstance(value, bool) else visible(str(value)))
