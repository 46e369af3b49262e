"""The JSON Schema (2020-12) of reports, for users who read them with other tools."""

from __future__ import annotations

import json
from typing import Any

from ..utils import facts
from ..utils.choices import SYNCS
from .record import ScoringRecord

ADDRESS = "https://json-schema.org/draft/2020-12/schema"

_TEXT: dict[str, Any] = {"type": "string"}
_TEXTS: dict[str, Any] = {"type": "array", "items": _TEXT}
_NUMBER: dict[str, Any] = {"type": "number"}
_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
_SCORE: dict[str, Any] = {"type": ["number", "null"], "description": "null where there is no finite score"}
_OPTIONAL_TEXT: dict[str, Any] = {"type": ["string", "null"]}

_FRAME = {
    "type": "object",
    "properties": {
        "frameNum": {**_COUNT, "description": "the number of the pair, counted from 0"},
        "time": {**_NUMBER, "description": "when the reference shows it, in seconds from its first frame"},
        "metrics": {"type": "object", "additionalProperties": _SCORE},
    },
    "required": ["frameNum", "metrics"],
}

_PROPERTIES: dict[str, dict[str, Any]] = {
    "version": {**_TEXT, "description": "version of vkssim"},
    "fps": {**_NUMBER, "description": "frames scored a second; 0 without --profile"},
    "frames": {"type": "array", "items": _FRAME},
    "pooled_metrics": {
        "type": "object",
        "additionalProperties": {"type": "object", "additionalProperties": _SCORE},
        "description": "for each score mean, min and so on",
    },
    "aggregate_metrics": {"type": "object", "description": "libvmaf's key; empty"},
    "reference": {**_TEXT, "description": "the file"},
    "distorted": {**_TEXT, "description": "the file"},
    "width": {**_COUNT, "description": "of the frames that were compared"},
    "height": {**_COUNT, "description": "of the frames that were compared"},
    "bitdepth": {**_COUNT, "description": "of the frames that were compared"},
    "backend": _TEXT,
    "device": _TEXT,
    "driver": _TEXT,
    "warnings": _TEXTS,
    "notes": {**_TEXTS, "description": "what was done to the pictures before they were compared"},
    "frame_rate": {"type": ["number", "null"], "description": "frames of the reference a second"},
    "frame_skip_ref": _COUNT,
    "frame_skip_dist": _COUNT,
    "offset": {"type": "integer"},
    "sync": {"enum": [*SYNCS]},
    "crop": _OPTIONAL_TEXT,
    "scale": _OPTIONAL_TEXT,
    "resampler": _TEXT,
}


def report_schema() -> dict[str, Any]:
    """Return the schema of the JSON that `vkssim score` writes. Reports of older versions lack `scoring`."""
    scoring = {"description": "how it was scored", **facts.json_schema(ScoringRecord)}
    return {
        "$schema": ADDRESS,
        "title": "A report of vkssim",
        "description": "What `vkssim score -o FILE.json` and `vkssim batch --frames` write. Other keys may come later.",
        "type": "object",
        "properties": {**_PROPERTIES, "scoring": scoring},
        "required": list(_PROPERTIES),
    }


def schema_text() -> str:
    """Return the schema as text, as it is in docs/report.schema.json."""
    return json.dumps(report_schema(), indent=2) + "\n"
