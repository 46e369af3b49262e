"""XML as libvmaf writes it."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

from .. import __version__
from ..results import ScoreReport
from .numbers import NumberFormat

_MISSING = "nan"  # as C's printf has it: float() reads it, and no reader takes it for a score


def render(report: ScoreReport, numbers: NumberFormat) -> str:
    """The report as XML text."""
    root = ElementTree.Element("VMAF", version=__version__)
    ElementTree.SubElement(root, "params", qualityWidth=str(report.width), qualityHeight=str(report.height))
    ElementTree.SubElement(
        root, "fyi", fps=f"{report.profiled_fps:.2f}", device=report.backend.device, driver=report.backend.driver
    )
    frames = ElementTree.SubElement(root, "frames")
    for frame in report.frames:
        scores = {name: numbers.text(value, _MISSING) for name, value in frame.metrics.items()}
        ElementTree.SubElement(frames, "frame", {"frameNum": str(frame.index), **scores})
    pooled_metrics = ElementTree.SubElement(root, "pooled_metrics")
    for name, pooled in report.pooled().items():
        values = {pooling: numbers.text(value, _MISSING) for pooling, value in pooled.items()}
        ElementTree.SubElement(pooled_metrics, "metric", {"name": name, **values})
    ElementTree.SubElement(root, "aggregate_metrics")
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=False) + "\n"
