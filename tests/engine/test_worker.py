"""A worker by itself, in this process."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import numpy as np
import pytest

from vkssim.backends import vulkan
from vkssim.backends.base import Backend
from vkssim.backends.open import open_backend
from vkssim.engine import worker as worker_module
from vkssim.engine.options import Clips, ScoreOptions
from vkssim.engine.ranges import BatchScored, Event, RangeBegun, RangeScores
from vkssim.engine.task import Part, Task, WorkerSpec
from vkssim.engine.verdict import joined
from vkssim.engine.worker import Worker
from vkssim.errors import DeviceMemoryError
from vkssim.host.device import Device
from vkssim.shaders.interface import Shape

from ..support.clips import write, y4m_bytes
from ..support.devices.faults import RESULTS, Fault, layer
from ..support.pictures import clip

OPTIONS = ScoreOptions(("float_psnr",))
LUMA = clip(20)
FULL = RESULTS["OUT_OF_DEVICE_MEMORY"]


@pytest.fixture
def task(tmp_path: Path) -> Task:
    reference = write(tmp_path / "r.y4m", y4m_bytes(LUMA))
    distorted = write(tmp_path / "d.y4m", y4m_bytes(np.roll(LUMA, 1, axis=2)))
    return Task((Part(0, Clips(reference, distorted)),), OPTIONS)


SPEC = WorkerSpec("cpu", None, "cpu", "here")


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How large the batches of the device were each time it was opened, eight frames at first."""
    monkeypatch.setattr(vulkan, "_LARGEST_BATCH", dict.fromkeys(Shape, 8))
    sizes: list[int] = []

    def opened(*arguments: Any, **options: Any) -> Backend:
        backend = open_backend(*arguments, **options)
        sizes.append(backend.batch_size)
        return backend

    monkeypatch.setattr(worker_module, "open_backend", opened)
    return sizes


def _worker(device: Device) -> Worker:
    return Worker(WorkerSpec("vulkan", str(device.info.uuid), "software", "here"))


def _scores(worker: Worker, task: Task) -> RangeScores:
    events: list[Event] = []
    worker.do(task, lambda _job, event: events.append(event))
    assert isinstance(events[-1], RangeScores)
    return events[-1]


def test_a_task_says_how_large_batches_are(task: Task, device: Device, batches: list[int]) -> None:
    """Smaller ones after the device had no memory for these; the next task has the usual ones again."""
    with _worker(device) as worker:
        expected = _scores(worker, task)
    batches.clear()
    with layer(Fault("vkQueueSubmit", 1, FULL)) as made, _worker(device) as worker:
        with pytest.raises(DeviceMemoryError):
            worker.do(task, lambda _job, _event: None)
        scores = _scores(worker, replace(task, batch=2))
        _scores(worker, task)
    assert (made.injected, batches) == (1, [8, 2, 8])
    assert joined([scores]).frames == joined([expected]).frames
    assert not made.left


def test_frames_are_told_of_as_they_are_scored(task: Task) -> None:
    """With where they are, and when they are shown; those of an earlier try are not, except the last of them."""
    events: list[Event] = []
    with Worker(SPEC) as worker:
        worker.do(task, lambda _job, event: events.append(event))
    begun, *batches, ended = events
    assert isinstance(begun, RangeBegun)
    assert isinstance(ended, RangeScores)
    assert begun.report.frames == []
    scored = [event for event in batches if isinstance(event, BatchScored)]
    assert [event.first for event in scored] == list(range(0, len(LUMA), len(scored[0].frames)))
    assert [frame for event in scored for frame in event.frames] == ended.report.frames
    assert [time for event in scored for time in event.distorted_times] == ended.distorted_times
    earlier = [
        (frame, other, begun.report.backend)
        for frame, other in zip(ended.report.frames[:7], ended.distorted_times, strict=False)
    ]
    events.clear()
    with Worker(SPEC) as worker:
        worker.do(replace(task, parts=(replace(task.parts[0], earlier=earlier),)), lambda _job, event: events.append(event))
    assert next(event.first for event in events if isinstance(event, BatchScored)) == 6
    assert events[-1] == replace(ended, report=ANY)


def test_what_a_task_took(task: Task) -> None:
    with Worker(SPEC) as worker:
        done = worker.do(task, lambda _job, _event: None)
    header = len(y4m_bytes(LUMA[:0]))
    assert done.frames == len(LUMA)
    assert done.bytes == 2 * (len(y4m_bytes(LUMA)) - header - len(LUMA) * len("FRAME\n"))
