"""Join the scores of another tool to a report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ..errors import InputError
from .reading import read_report
from .results import ScoreReport

_TERMS = "integer_"
"""The start of the names of the terms of VMAF, which libvmaf's files list beside it."""


def merge_report(report: ScoreReport, path: Path, other: ScoreReport | None = None) -> None:
    """Add the scores of a JSON file of libvmaf's tools to the frames of the same numbers.

    Parameters
    ----------
    report : ScoreReport
        The report, which gets the scores that it lacks, without VMAF's terms, and a note that names them.
    path : pathlib.Path
        The file.
    other : ScoreReport, optional
        The content of the file, if it was read before.

    Raises
    ------
    InputError
        The file cannot be read, lacks a frame of the report, or has no further score.

    """
    other = other or read_report(path)
    names = tuple(name for name in other.names if name not in report.names and not name.startswith(_TERMS))
    if not names:
        raise InputError(f"{path} has no score that the report lacks; it has {', '.join(other.names) or 'none'}")
    found = {frame.index: frame.metrics for frame in other.frames}
    missing = next((frame.index for frame in report.frames if frame.index not in found), None)
    if missing is not None:
        raise InputError(f"{path} has no frame {missing}: it is of other frames, and its scores are left out")
    report.frames = [
        replace(frame, metrics={**frame.metrics, **{name: found[frame.index][name] for name in names}})
        for frame in report.frames
    ]
    report.names += names
    report.notes.append(f"{', '.join(names)}: from {path}")
