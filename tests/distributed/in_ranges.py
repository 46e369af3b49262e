"""Score clips in ranges as several devices do, and compare the report with the report of one device."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from vkssim import score_files
from vkssim.distributed import coordinator, division, pair
from vkssim.distributed.coordinator import Coordinator, Job
from vkssim.distributed.scheduler import Scheduler, TaskKey
from vkssim.distributed.task import Done, Task, WorkerSpec
from vkssim.distributed.threads import LocalPool
from vkssim.errors import VkssimError
from vkssim.frames.options import RawDescription
from vkssim.report import render
from vkssim.report.results import ScoreReport
from vkssim.scoring.options import Clips, ScoreOptions
from vkssim.scoring.ranges import FrameRange, RangeScores

from ..frames.reading import NOTHING_SAID

CPU = WorkerSpec("cpu", None, "cpu", "cpu")
FEATURES = ("float_ssim=scale=1",)


class AnyOrder(Scheduler):
    """Hands tasks out in another order than they come, the same every time."""

    _random = random.Random(0)

    def put(self, key: TaskKey, task: Task) -> None:
        super().put(key, task)
        self._random.shuffle(self._queue)


def small_ranges(monkeypatch: pytest.MonkeyPatch, pairs: int = 3, most: int = 100) -> None:
    """Have clips divided into ranges of about `pairs` pairs, `most` ranges at most."""
    monkeypatch.setattr(division, "_LEAST_PAIRS", pairs)
    monkeypatch.setattr(coordinator, "_RANGES_EACH", most)


def in_ranges(
    reference: str, distorted: str, raw: RawDescription = NOTHING_SAID, **options: Any
) -> tuple[ScoreReport | Exception, Sequence[FrameRange]]:
    """Return the outcome of two clips, and the ranges in the order in which they were scored."""
    ranges: list[FrameRange] = []

    def note(_job: Job, frame_range: FrameRange, _scores: RangeScores, _done: Done | None) -> None:
        ranges.append(frame_range)

    with LocalPool(CPU) as engine:
        scorer = Coordinator(AnyOrder(engine, pytest.fail), ScoreOptions(FEATURES, **options), on_range=note)
        ((_, outcome),) = scorer.score([Job("job", Clips(reference, distorted, raw))])
    return outcome, ranges


def same_in_ranges(reference: str | Path, distorted: str | Path, raw: RawDescription = NOTHING_SAID, **options: Any) -> int:
    """Return the number of ranges that two clips were scored in. Fails where the report differs from that of one range."""
    outcome, ranges = in_ranges(str(reference), str(distorted), raw, **options)
    assert told(outcome) == told(_in_one(str(reference), str(distorted), raw, **options))
    return 1 if ranges[-1:] == [FrameRange()] else len(ranges)


def _in_one(reference: str, distorted: str, raw: RawDescription, **options: Any) -> ScoreReport | Exception:
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pair, "add_hint", lambda *_arguments: None)  # the hint at an offset is one of whole clips
            return score_files(reference, distorted, raw=raw, features=FEATURES, backend="cpu", **options)
    except VkssimError as error:
        return error


def told(outcome: ScoreReport | Exception) -> list[object]:
    """All that anybody learns of scores: files of every kind, warnings, and the error."""
    report = getattr(outcome, "report", None) if isinstance(outcome, Exception) else outcome
    scores = [] if report is None else [render(report, form, "max") for form in ("json", "xml", "csv")]
    more = [] if report is None else [report.warnings, report.notes, report.rate]
    return [*scores, *more, (type(outcome), str(outcome)) if isinstance(outcome, Exception) else None]
