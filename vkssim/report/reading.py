"""Read reports back from the JSON that `vkssim score` or libvmaf's tools wrote, and join their scores to a report.

`check_similarity` is the limit of a similarity for every reader of scores, also of tables.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from ..errors import InputError
from ..storage.folder import read_whole
from ..types import BackendInfo
from ..utils.limits import LARGEST_NUMBER, LARGEST_REPORT_BYTES, LARGEST_SCORE, MAX_REPORT_VALUES, abbreviated
from ..utils.values import from_json
from .record import ScoringRecord
from .results import FrameScores, ScoreReport
from .schema import read_attributes

_VMAF_TERMS = re.compile(r"(integer_|float_)?(adm|aim|vif|motion)\d?(_|$)")
"""The beginnings of the names of the terms of VMAF, which the files of libvmaf's tools list beside it."""

_SIMILARITY = re.compile(r"(float_(?:ms_)?ssim)(?:_(?:y|cb|cr|all))?")
"""The names of the scores that are similarities unless `enable_db` was requested."""

_ROUNDING = 1e-4
"""How far a similarity may be beyond 1 and -1: twice the largest error of `precision=fast`."""


def read_report(path: Path) -> ScoreReport:
    """Return the report of a JSON file that `vkssim score` or libvmaf's tool wrote.

    Parameters
    ----------
    path : pathlib.Path
        The file.

    Returns
    -------
    ScoreReport
        The report. Facts that the file lacks, as libvmaf's files do, are empty, 0 or None. A score of null is NaN.

    Raises
    ------
    InputError
        The file cannot be read, or is not such a report.

    """
    try:
        text = read_whole(path, LARGEST_REPORT_BYTES)
        if sum(map(text.count, (b",", b"[", b"{"))) > MAX_REPORT_VALUES:
            raise InputError(f"{path} has more than {MAX_REPORT_VALUES} values; that is no report")
        data = json.loads(text.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} is not text in UTF-8: its byte {error.start} is invalid. `vkssim score -o FILE.json` writes a report"
        ) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON: {error}") from None
    try:
        return _report(data)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InputError(
            f"{path} is no report of frames and their metrics ({type(error).__name__}: {error}); `vkssim score -o FILE.json`"
            " writes one"
        ) from None


def check_similarity(value: float) -> None:
    """Raise ValueError if a value cannot be a similarity. NaN, which stands for a score that does not exist, can."""
    if abs(value) > 1 + _ROUNDING:
        raise ValueError(f"{value:g}; a similarity is within -1 to 1")


def _report(data: Any) -> ScoreReport:
    frames = [_frame(entry) for entry in data["frames"]]
    names = tuple(frames[0].metrics) if frames else ()
    for frame in frames:
        if tuple(frame.metrics) != names:
            raise ValueError(f"frame {frame.index} has other metrics than the first")
    scoring = None if data.get("scoring") is None else from_json(ScoringRecord, data["scoring"], "scoring")
    similarities = tuple(
        name for name, pooled in data.get("pooled_metrics", {}).items() if "mean_db" in pooled and (name in names or not frames)
    )
    for name in names:
        if name in similarities or _is_plain_similarity(name, frames, scoring):
            _check_similarities(name, frames)
    report = ScoreReport("", "", 0, 0, 0, names, BackendInfo("", "", ""), frames, version="", scoring=scoring)
    report.similarities = similarities
    for place, value in read_attributes(data).items():
        part, _, name = place.rpartition(".")
        setattr(report, part or name, replace(getattr(report, part), **{name: value}) if part else value)
    if scoring is not None:
        report.selection, report.pictures = scoring.selection, scoring.pictures
    return report


def _is_plain_similarity(name: str, frames: Sequence[FrameScores], scoring: ScoringRecord | None) -> bool:
    """Return whether a score is a similarity by its name and not in dB, which files of libvmaf do not say."""
    match = _SIMILARITY.fullmatch(name)
    if match is None:
        return False
    if scoring is not None and any(feature.name == match[1] for feature in scoring.features):
        return not any(feature.name == match[1] and feature.options.get("enable_db") for feature in scoring.features)
    scores = [frame.metrics[name] for frame in frames if not math.isnan(frame.metrics[name])]
    return not scores or median(scores) <= 1  # 1 dB is a similarity of 0.2, so most scores in dB are above 1


def _check_similarities(name: str, frames: Sequence[FrameScores]) -> None:
    for frame in frames:
        try:
            check_similarity(frame.metrics[name])
        except ValueError as error:
            raise ValueError(f"{name} of frame {frame.index} is {error}") from None


def _frame(entry: Any) -> FrameScores:
    time, number = entry.get("time"), int(entry["frameNum"])
    if not 0 <= number <= LARGEST_NUMBER:
        raise ValueError(f"a frameNum is not within 0 to {LARGEST_NUMBER}")
    metrics = {str(name): _score(value, f"{name} of frame {number}") for name, value in entry["metrics"].items()}
    return FrameScores(number, metrics, None if time is None else float(time))


def _score(value: object, what: str) -> float:
    """Return a score, NaN for null. Raises ValueError for everything else that is not a finite number."""
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{what} is {abbreviated(value)}; a score is a number, or null if there is none")
    if not abs(value) <= LARGEST_SCORE:
        raise ValueError(
            f"{what} is {abbreviated(value)}; scores are within {LARGEST_SCORE:g} and its negative, and null if they are"
            " infinite or do not exist"
        )
    return float(value)


def names_to_merge(source: ScoreReport) -> list[str]:
    """Return the scores of a file that can be merged: without the terms of VMAF, if it has VMAF."""
    has_vmaf = any(name.startswith("vmaf") for name in source.names)
    return [name for name in source.names if not (has_vmaf and _VMAF_TERMS.match(name))]


def merge_report(report: ScoreReport, path: Path, source: ScoreReport | None = None) -> None:
    """Add the scores of `names_to_merge` that a report lacks from a file of libvmaf's tools, and a note that names them.

    `source` is its content, if it was read before. Raises InputError if the file cannot be read, or lacks frames or scores.
    """
    source = source or read_report(path)
    names = tuple(name for name in names_to_merge(source) if name not in report.names)
    if not names:
        raise InputError(f"{path} has no score that the report lacks; it has {', '.join(source.names) or 'none'}")
    metrics = {frame.index: frame.metrics for frame in source.frames}
    missing = next((frame.index for frame in report.frames if frame.index not in metrics), None)
    if missing is not None:
        raise InputError(f"{path} has no frame {missing}: it does not cover the same frames, and its scores are left out")
    report.frames = [
        replace(frame, metrics={**frame.metrics, **{name: metrics[frame.index][name] for name in names}})
        for frame in report.frames
    ]
    report.names += names
    report.notes.append(f"{', '.join(names)}: from {path}")
