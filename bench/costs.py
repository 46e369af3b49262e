"""The costs of tasks, fitted to the times that bench/task_times took: a fixed part, and a part a frame."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Record = dict[str, Any]

FRAMES_A_MINUTE = 24 * 60


@dataclass(frozen=True)
class Cost:
    """The cost of scoring ranges of clips of one kind and size on one device, as (a task, a frame) in seconds or bytes.

    `spread` has the time of each task as a ratio to the fitted one. `opening` is the additional time of a worker's first task,
    in seconds. `gpu_seconds` and `upload_seconds` are per frame.
    """

    device: str
    device_kind: str
    cores: int
    kind: str
    size: str
    seconds: tuple[float, float]
    cpu_seconds: tuple[float, float]
    bytes: tuple[float, float]
    gpu_seconds: float
    upload_seconds: float
    uploaded_bytes: int
    spread: list[float]
    opening: float | None

    @property
    def frames_a_second(self) -> float:
        """Return the frames a second of one worker on endless ranges."""
        return 1 / self.seconds[1]

    @property
    def upload_rate(self) -> float | None:
        """Return the GB/s of uploads alone; None if the device has no memory of its own."""
        return self.uploaded_bytes / self.upload_seconds / 1e9 if self.device_kind == "DISCRETE" else None

    def percentiles(self, *ranks: float) -> list[float]:
        """Return percentiles of the spread."""
        return [float(value) for value in np.percentile(self.spread, ranks)]


def read(paths: Iterable[Path]) -> list[Record]:
    """Return the records of files of JSON lines."""
    return [json.loads(line) for path in paths for line in path.read_text().splitlines()]


def costs(records: Iterable[Record]) -> list[Cost]:
    """Return one entry for each device, size and kind."""
    groups: dict[tuple[Any, ...], list[Record]] = defaultdict(list)
    for record in records:
        groups[tuple(record[key] for key in ("device", "device_kind", "cores", "width", "height", "kind"))].append(record)
    return [_cost(group) for group in groups.values()]


def _cost(group: list[Record]) -> Cost:
    profiled = [record for record in group if record["gpu_seconds"] is not None]
    profiled = [record for record in profiled if not record["first"]] or profiled
    timed = [record for record in group if record["gpu_seconds"] is None and not record["first"]]
    fixed, per_frame = _line(timed, "seconds")
    expected = [fixed + per_frame * record["frames"] for record in timed]
    first = [record for record in group if record["gpu_seconds"] is None and record["first"]]
    frames = sum(record["frames"] for record in profiled)
    one = group[0]
    return Cost(
        one["device"],
        one["device_kind"],
        one["cores"],
        one["kind"],
        f"{one['width']}x{one['height']}",
        (fixed, per_frame),
        _line(timed, "cpu_seconds"),
        _line(timed, "bytes"),
        sum(record["gpu_seconds"] for record in profiled) / frames,
        sum(record["upload_seconds"] for record in profiled) / frames,
        2 * one["width"] * one["height"],
        [record["seconds"] / seconds for record, seconds in zip(timed, expected, strict=True)],
        first[0]["seconds"] - fixed - per_frame * first[0]["frames"] if first else None,
    )


def _line(timed: list[Record], field: str) -> tuple[float, float]:
    """Fit (a task, a frame) by least squares of relative errors, as longer tasks vary more. No part is below 0."""
    frames = np.array([record["frames"] for record in timed], np.float64)
    values = np.array([record[field] for record in timed], np.float64)
    slope, intercept = np.polyfit(frames, values, 1, w=1 / frames)
    if min(slope, intercept) < 0:
        return 0.0, float(np.mean(values / frames))
    return float(intercept), float(slope)
