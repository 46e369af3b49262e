"""A worker by itself, in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vkssim import score_files
from vkssim.distributed import worker as module
from vkssim.distributed.task import Task, WorkerSpec
from vkssim.distributed.worker import Worker
from vkssim.errors import DeviceMemoryError
from vkssim.scoring.options import Clips, ScoreOptions
from vkssim.scoring.ranges import joined

from ..support.clips import write, y4m_bytes
from ..support.pictures import clip

OPTIONS = ScoreOptions(("float_ssim=scale=1",), backend="cpu")
LUMA = clip(20)


@pytest.fixture
def task(tmp_path: Path) -> Task:
    names = (("r.y4m", LUMA), ("d.y4m", np.roll(LUMA, 1, axis=2)))
    return Task(Clips(*(write(tmp_path / name, y4m_bytes(luma)) for name, luma in names)), OPTIONS)


SPEC = WorkerSpec("cpu", None, "cpu", "here")


def _full(monkeypatch: pytest.MonkeyPatch, times: int) -> list[Any]:
    """Memory runs out that many times; how large batches may be at each attempt."""
    batches: list[Any] = []
    score, open_backend = module.score_part, module.open_backend

    def scored(*arguments: Any, **options: Any) -> Any:
        done = score(*arguments, **options)
        if len(batches) <= times:
            raise DeviceMemoryError("full")
        return done

    def opened(*arguments: Any, batch: int | None, **options: Any) -> Any:
        batches.append(batch)
        return open_backend(*arguments, batch=batch, **options)

    monkeypatch.setattr(module, "score_part", scored)
    monkeypatch.setattr(module, "open_backend", opened)
    return batches


def test_memory_that_runs_out_on_the_way(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of one frame may fit; the next task has the usual ones again."""
    batches = _full(monkeypatch, 1)
    with Worker(SPEC) as worker:
        done = worker.do(task)
        worker.do(task)
    assert done.scores is not None
    expected = score_files(task.clips.reference, task.clips.distorted, features=OPTIONS.features, backend="cpu")
    assert joined([done.scores]).frames == expected.frames
    assert batches == [None, 1, None]


def test_memory_that_does_not_do_for_a_frame(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    batches = _full(monkeypatch, 2)
    with Worker(SPEC) as worker:
        with pytest.raises(DeviceMemoryError, match="full"):
            worker.do(task)
        assert batches == [None, 1]
        assert worker.do(task).frames == len(LUMA)


def test_what_a_task_took(task: Task) -> None:
    with Worker(SPEC) as worker:
        done = worker.do(task)
    header = len(y4m_bytes(LUMA[:0]))
    assert (done.frames, done.device) == (len(LUMA), "here")
    assert done.bytes == 2 * (len(y4m_bytes(LUMA)) - header - len(LUMA) * len("FRAME\n"))
    assert done.seconds > 0
