"""Render a report as JSON, with the keys that libvmaf writes and further ones."""

from __future__ import annotations

import json
from typing import Any

from ..utils.facts import to_json
from .numbers import NumberFormat
from .results import ScoreReport


def as_dict(report: ScoreReport, numbers: NumberFormat) -> dict[str, Any]:
    """Return the values that `render` writes. A score that does not exist is None."""
    return {
        "version": report.version,
        "fps": round(report.profiled_fps, 2),
        "frames": [
            {
                "frameNum": frame.index,
                **({} if frame.time is None else {"time": round(frame.time, 6)}),
                "metrics": {name: numbers.number(value) for name, value in frame.metrics.items()},
            }
            for frame in report.frames
        ],
        "pooled_metrics": {
            name: {pooling: numbers.number(value) for pooling, value in pooled.items()}
            for name, pooled in report.pooled().items()
        },
        "aggregate_metrics": {},
        "reference": report.reference,
        "distorted": report.distorted,
        "width": report.width,
        "height": report.height,
        "bitdepth": report.bits,
        "backend": report.backend.backend,
        "device": report.backend.device,
        "driver": report.backend.driver,
        "warnings": report.warnings,
        "notes": report.notes,
        "frame_rate": report.rate,
        "frame_skip_ref": report.selection.skip_reference,
        "frame_skip_dist": report.selection.skip_distorted,
        "offset": report.selection.offset,
        "sync": report.sync,
        "crop": report.pictures.crop,
        "scale": report.pictures.scale,
        "resampler": report.pictures.resampler,
        **({} if report.scoring is None else {"scoring": to_json(report.scoring)}),
    }


def render(report: ScoreReport, numbers: NumberFormat) -> str:
    """Return the report as JSON text."""
    return json.dumps(as_dict(report, numbers), indent=2, allow_nan=False) + "\n"
