"""A worker by itself, in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vkssim.backends import vulkan
from vkssim.backends.base import Backend
from vkssim.backends.open import open_backend
from vkssim.distributed import worker as module
from vkssim.distributed.task import Task, WorkerSpec
from vkssim.distributed.worker import Worker
from vkssim.errors import DeviceLostError, DeviceMemoryError
from vkssim.host.device import Device
from vkssim.scoring.options import Clips, ScoreOptions
from vkssim.scoring.ranges import joined
from vkssim.shaders.interface import Shape

from ..support.clips import write, y4m_bytes
from ..support.faults import RESULTS, Fault, layer
from ..support.pictures import clip

OPTIONS = ScoreOptions(("float_ssim=scale=1:precision=fast",))
LUMA = clip(20)
LOST, FULL = RESULTS["DEVICE_LOST"], RESULTS["OUT_OF_DEVICE_MEMORY"]


@pytest.fixture
def task(tmp_path: Path) -> Task:
    reference = write(tmp_path / "r.y4m", y4m_bytes(LUMA))
    distorted = write(tmp_path / "d.y4m", y4m_bytes(np.roll(LUMA, 1, axis=2)))
    return Task(Clips(reference, distorted), OPTIONS)


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

    monkeypatch.setattr(module, "open_backend", opened)
    return sizes


def _worker(device: Device) -> Worker:
    return Worker(WorkerSpec("vulkan", str(device.info.uuid), "software", "here"))


def test_memory_that_runs_out_on_the_way(task: Task, device: Device, batches: list[int]) -> None:
    """Smaller batches may fit; the next task has the usual ones again."""
    with _worker(device) as worker:
        expected = worker.do(task)
    batches.clear()
    with layer(Fault("vkQueueSubmit", 1, FULL), Fault("vkQueueSubmit", 2, FULL)) as made, _worker(device) as worker:
        done = worker.do(task)
        assert (made.injected, batches) == (2, [8, 4, 2])
        worker.do(task)
    assert batches == [8, 4, 2, 8]
    assert done.scores is not None
    assert expected.scores is not None
    assert joined([done.scores]).frames == joined([expected.scores]).frames
    assert not made.left


def test_memory_that_does_not_do_for_a_frame(task: Task, device: Device, batches: list[int]) -> None:
    with layer(*(Fault("vkQueueSubmit", number, FULL) for number in range(4))), _worker(device) as worker:
        with pytest.raises(DeviceMemoryError):
            worker.do(task)
        assert batches == [8, 4, 2, 1]
        assert worker.do(task).frames == len(LUMA)


def test_a_lost_device_is_opened_for_the_next_task(task: Task, device: Device, batches: list[int]) -> None:
    """The task itself goes to another worker."""
    with layer(Fault("vkWaitForFences", 1, LOST)) as made, _worker(device) as worker:
        with pytest.raises(DeviceLostError):
            worker.do(task)
        assert worker.do(task).frames == len(LUMA)
    assert (made.injected, made.left, batches) == (1, {}, [8, 8])


def test_what_a_task_took(task: Task) -> None:
    with Worker(SPEC) as worker:
        done = worker.do(task)
    header = len(y4m_bytes(LUMA[:0]))
    assert (done.frames, done.device) == (len(LUMA), "here")
    assert done.bytes == 2 * (len(y4m_bytes(LUMA)) - header - len(LUMA) * len("FRAME\n"))
    assert done.seconds > 0
