"""Score clips in ranges as several devices do, and compare the report with the report of one device."""

from __future__ import annotations

import random
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from vkssim import score_files
from vkssim.engine import engine, worker
from vkssim.engine import ranges as division
from vkssim.engine.engine import Engine, Job, RunSettings
from vkssim.engine.options import Clips, ScoreOptions
from vkssim.engine.ranges import FrameRange
from vkssim.engine.scheduler import MakeTask, Scheduler, TaskKey
from vkssim.engine.task import FixedPool, OnEvent, Task, TaskResult, WorkerSpec
from vkssim.engine.worker import Worker
from vkssim.errors import VkssimError
from vkssim.frames.options import RawDescription
from vkssim.frames.pairing.schedule import Schedule
from vkssim.frames.source import FrameSource
from vkssim.report.results import ScoreReport

from ..frames.reading import NOTHING_SAID

CPU = WorkerSpec("cpu", None, "cpu", "cpu")
FEATURES = ("float_psnr",)


class AnyOrder(Scheduler):
    """Hands tasks out in another order than they come, the same every time."""

    _random = random.Random(0)

    def put(self, key: TaskKey, make: MakeTask, **how: Any) -> None:
        super().put(key, make, **how)
        self._random.shuffle(self._queue)


class InTurn(Worker):
    """One of two workers in this thread: what it does is noted."""

    def __init__(self, ranges: list[FrameRange]) -> None:
        super().__init__(CPU)
        self._ranges = ranges

    def submit(self, task: Task, on_event: OnEvent) -> Future[TaskResult]:
        future = super().submit(task, on_event)
        if not (task.division is not None and future.exception() is None and future.result().ranges):
            self._ranges.append(task.parts[0].frame_range)
        return future


def failed(error: Exception) -> Future[TaskResult]:
    """The outcome of a task that fails."""
    future: Future[TaskResult] = Future()
    future.set_exception(error)
    return future


def small_ranges(monkeypatch: pytest.MonkeyPatch, pairs: int = 3) -> None:
    """Have clips divided into ranges of about `pairs` pairs, however short they are."""
    divide = division.divide_pairs

    def divide_in_small_ranges(
        sources: tuple[FrameSource, FrameSource], schedule: Schedule, _max_pairs: int, workers: int, *, lead: bool
    ) -> list[FrameRange]:
        return divide(sources, schedule, pairs, workers, lead=lead)

    monkeypatch.setattr(division, "MIN_PAIRS", pairs)
    monkeypatch.setattr(worker, "MIN_PAIRS", pairs)
    monkeypatch.setattr(worker, "_MIN_SECONDS_EACH", 0.0)
    monkeypatch.setattr(worker, "divide_pairs", divide_in_small_ranges)


def in_ranges(
    reference: str,
    distorted: str,
    raw: RawDescription = NOTHING_SAID,
    *,
    features: tuple[str, ...] = FEATURES,
    **options: Any,
) -> tuple[ScoreReport | Exception, Sequence[FrameRange]]:
    """Return the outcome of two clips, and the ranges in the order in which they were scored."""
    ranges: list[FrameRange] = []
    with FixedPool([InTurn(ranges), InTurn(ranges)]) as pool, pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "Scheduler", AnyOrder)
        scorer = Engine(pool, ScoreOptions(features, **options), RunSettings(warn=pytest.fail))
        ((_, outcome),) = scorer.score([Job("job", Clips(reference, distorted, raw))])
    return outcome, ranges


def same_in_ranges(reference: str | Path, distorted: str | Path, raw: RawDescription = NOTHING_SAID, **options: Any) -> int:
    """Return the number of ranges that two clips were scored in. Fails where the report differs from that of one range."""
    outcome, ranges = in_ranges(str(reference), str(distorted), raw, **options)
    assert told(outcome) == told(_in_one(str(reference), str(distorted), raw, **options))
    return 1 if ranges[-1:] == [FrameRange()] else len(ranges)


def _in_one(
    reference: str, distorted: str, raw: RawDescription, *, features: tuple[str, ...] = FEATURES, **options: Any
) -> ScoreReport | Exception:
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(engine, "add_hint", lambda *_arguments: None)  # only a pair that is scored alone gets a hint
            return score_files(reference, distorted, raw=raw, features=features, backend="cpu", **options)
    except VkssimError as error:
        return error


def told(outcome: ScoreReport | Exception) -> list[object]:
    """All that anybody learns of scores: what files of every kind are written from, warnings, and the error.

    As text, which has every digit of a number, and in which a NaN is like another.
    """
    report = getattr(outcome, "report", None) if isinstance(outcome, Exception) else outcome
    facts = [] if report is None else [repr(getattr(report, name)) for name in _FACTS]
    return [*facts, (type(outcome), str(outcome)) if isinstance(outcome, Exception) else None]


_OF_THE_RUN = {"seconds", "resumed", "worker_warnings", "unequal"}
_FACTS = [field.name for field in fields(ScoreReport) if field.name not in _OF_THE_RUN]
"""What reports of the same clips have in common, however they were scored: scores first."""
