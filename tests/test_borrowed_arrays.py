"""Staging memory that is lent to a caller: nothing written too late, nothing freed too early."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from vkssim import Scorer
from vkssim.backends.sessions import close_sessions
from vkssim.errors import FrameError
from vkssim.scorer import Lending

from .support.commands import python_process
from .support.pictures import clip

pytestmark = pytest.mark.usefixtures("shared_device")

REFERENCE, DISTORTED = clip(2, 48, 64, seed=1), clip(2, 48, 64, seed=2)


def _scorer(backend: str = "vulkan") -> Scorer:
    return Scorer(64, 48, bits=8, features=["float_psnr"], batch=4, backend=backend)


@pytest.mark.parametrize("backend", ["vulkan", "cpu"])
def test_a_committed_frame_cannot_be_changed(backend: str) -> None:
    with _scorer(backend) as scorer:
        expected = scorer.feed(REFERENCE[0], DISTORTED[0]) + scorer.flush()
        first, second = scorer.reserve()
        first[:], second[:] = REFERENCE[0], DISTORTED[0]
        scores = scorer.commit()
        for array in (first, second, first[2:], second.T):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0
        scores += scorer.flush()
        third, _ = scorer.reserve()
        scorer.feed(REFERENCE[0], DISTORTED[0])  # takes it back
        with pytest.raises(ValueError, match="read-only"):
            third[0] = 0
    assert scores[0].metrics == expected[0].metrics


@pytest.mark.parametrize("derive", [lambda a: a[1:], lambda a: a.reshape(-1), lambda a: a.T, lambda a: a.view(np.int8)])
def test_an_array_made_from_a_reserved_one_is_noticed(derive: object) -> None:
    assert callable(derive)
    with _scorer() as scorer:
        first, second = scorer.reserve()
        first[:10], second[:] = 1, 2  # a slice that is gone at once is no trouble
        other = derive(second)
        with pytest.raises(FrameError, match=r"delete arrays that you made from the reserved ones.* before commit\(\)"):
            scorer.commit()
        assert scorer.reserve()[1] is second, "nothing was taken"
        del other
        scorer.commit()
        assert len(scorer.flush()) == 1


@pytest.mark.usefixtures("own_devices")
def test_views_outlive_the_scorer() -> None:
    """The memory is there as long as a view of it, even if everything is closed; then everything on the device goes."""
    with _scorer() as scorer:
        first, second = scorer.reserve()
        first[:], second[:] = 3, 4
        backend: Any = scorer._backend
        live = backend._backend.device.live_objects
    close_sessions()
    rows = first[5:, ::2]
    del first
    assert (live.total() > 0, rows.mean(), second.mean()) == (True, 3.0, 4.0)
    bare = memoryview(second)
    del rows, second
    assert (live.total() > 0, bare[7, 7]) == (True, 4)
    del bare
    assert live.total() == 0


def test_memory_that_nobody_looks_at_is_freed_at_once() -> None:
    lending, memory, freed = Lending(), np.zeros((4, 4), np.uint8), []
    for _ in range(3):
        (array,) = lending.lend([memory])
        array[0] += 1
        lending.take_back()
    del array
    lending.close(lambda: freed.append(True))
    assert (freed, memory[0].tolist()) == ([True], [3] * 4)


def test_a_view_at_the_end_of_the_process() -> None:
    program = """
from vkssim import Scorer
with Scorer(1920, 1080, bits=8, features=["float_psnr"], batch=2) as scorer:
    a, b = scorer.reserve()
print(int(a.mean() >= 0))
"""
    process = python_process("-c", program)
    assert (process.returncode, process.stdout, process.stderr) == (0, b"1\n", b"")
