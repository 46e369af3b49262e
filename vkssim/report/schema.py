"""The keys of a report in JSON, each declared once: its JSON Schema (2020-12), and the attribute that is written and read.

`vkssim report --schema` prints the schema, for users who read reports with other tools.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..utils.choices import SYNCS
from ..utils.values import json_schema
from .record import ScoringRecord

_TEXT: dict[str, Any] = {"type": "string"}
_TEXTS: dict[str, Any] = {"type": "array", "items": _TEXT}
_NUMBER: dict[str, Any] = {"type": "number"}
_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
_SCORE: dict[str, Any] = {"type": ["number", "null"], "description": "null if there is no finite score"}
_OPTIONAL_TEXT: dict[str, Any] = {"type": ["string", "null"]}
_FILE = {**_TEXT, "description": "the file"}
_COMPARED = {**_COUNT, "description": "of the frames that were compared"}

_FRAME = {
    "type": "object",
    "properties": {
        "frameNum": {**_COUNT, "description": "the number of the pair, counted from 0"},
        "time": {**_NUMBER, "description": "when the reference shows it, in seconds from its first frame"},
        "metrics": {"type": "object", "additionalProperties": _SCORE},
    },
    "required": ["frameNum", "metrics"],
}

_POOLED = {
    "type": "object",
    "additionalProperties": {"type": "object", "additionalProperties": _SCORE},
    "description": "for each score mean, min and so on",
}

REPORT_KEYS: dict[str, tuple[dict[str, Any], str]] = {
    "version": ({**_TEXT, "description": "version of vkssim"}, "version"),
    "fps": ({**_NUMBER, "description": "frames scored a second; 0 without --profile"}, ""),
    "frames": ({"type": "array", "items": _FRAME}, ""),
    "pooled_metrics": (_POOLED, ""),
    "aggregate_metrics": ({"type": "object", "description": "libvmaf's key; empty"}, ""),
    "reference": (_FILE, "reference"),
    "distorted": (_FILE, "distorted"),
    "width": (_COMPARED, "width"),
    "height": (_COMPARED, "height"),
    "bitdepth": (_COMPARED, "bits"),
    "backend": (_TEXT, "backend.backend"),
    "device": (_TEXT, "backend.device"),
    "driver": (_TEXT, "backend.driver"),
    "warnings": (_TEXTS, "warnings"),
    "notes": ({**_TEXTS, "description": "what was done to the pictures before they were compared"}, "notes"),
    "frame_rate": ({"type": ["number", "null"], "description": "frames of the reference a second"}, "rate"),
    "frame_skip_ref": (_COUNT, "selection.skip_reference"),
    "frame_skip_dist": (_COUNT, "selection.skip_distorted"),
    "offset": ({"type": "integer"}, "selection.offset"),
    "sync": ({"enum": [*SYNCS]}, "sync"),
    "crop": (_OPTIONAL_TEXT, "pictures.crop"),
    "scale": (_OPTIONAL_TEXT, "pictures.scale"),
    "resampler": (_TEXT, "pictures.resampler"),
}
"""The schema of each key, and the attribute of `ScoreReport` that is its value; empty if it is computed."""


def read_attributes(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of `ScoreReport` that a report in JSON has, by their places in `REPORT_KEYS`.

    Raises TypeError or ValueError for a value of another type.
    """
    read = (
        (place, schema.get("type", "string"), data[key])
        for key, (schema, place) in REPORT_KEYS.items()
        if place and key in data
    )
    return {place: _plain(kind, value) for place, kind, value in read}


def _plain(kind: Any, value: Any) -> Any:
    """Return a value as the type that a schema names."""
    if isinstance(kind, list):  # it may be null
        return None if value is None else _plain(kind[0], value)
    if kind == "array":
        return [str(entry) for entry in value]
    return {"string": str, "integer": int, "number": float}[kind](value)


def report_schema() -> dict[str, Any]:
    """Return the schema of the JSON that `vkssim score` writes. Reports of older versions lack `scoring`."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A report of vkssim",
        "description": "What `vkssim score -o FILE.json` and `vkssim batch --frames` write. Other keys may come later.",
        "type": "object",
        "properties": {
            **{key: schema for key, (schema, _) in REPORT_KEYS.items()},
            "scoring": {"description": "how it was scored", **json_schema(ScoringRecord)},
        },
        "required": list(REPORT_KEYS),
    }


def schema_text() -> str:
    """Return the schema as text, as it is in docs/report.schema.json."""
    return json.dumps(report_schema(), indent=2) + "\n"
