"""Test how much of the device's memory an engine takes, and when it takes more."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from vkssim.backends import loss_engine as engine
from vkssim.backends.loss_engine import LossEngine, LossStep
from vkssim.errors import DeviceMemoryError
from vkssim.host import executor
from vkssim.host.memory import Buffer
from vkssim.loss.spec import Loss, constants

from .images import Floats, images

STEP = LossStep(Loss(64, 64, **constants(1.0)), gradient=True)


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Bytes of the buffers made since."""
    made: list[int] = []

    class Counted(Buffer):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            made.append(self.size)

    monkeypatch.setattr(executor, "Buffer", Counted)
    return made


def _run(made: LossEngine, planes: int) -> tuple[Any, Floats]:
    reference, distorted = images("natural", planes, 64, 64)
    gradient = np.empty_like(distorted)
    return made.run(reference, distorted, gradient), gradient


def test_one_small_plane_takes_little(sizes: list[int]) -> None:
    """Two images, a gradient, three maps in the shape for CPUs, and what is small."""
    plane = 4 * 64 * 64
    with LossEngine(STEP) as made:
        _run(made, 1)
    assert 3 * plane <= sum(sizes) <= 7 * plane


def test_more_planes_make_more_room_once(sizes: list[int]) -> None:
    """The buffers grow to what a call brings, stay so for smaller calls, and change no bit."""
    with LossEngine(STEP) as made:
        first = _run(made, 1)
        of_one = sum(sizes)
        sizes.clear()
        many = _run(made, 6)
        assert sum(sizes) <= 6 * of_one
        sizes.clear()
        for count in (6, 2, 1):
            means, gradient = _run(made, count)
            np.testing.assert_equal((means, gradient), (many[0][:count], many[1][:count]))
        assert not sizes
    np.testing.assert_equal(first, (many[0][:1], many[1][:1]))


def test_planes_beyond_the_limit_go_in_batches(sizes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Two slots then, so that the host fills one while the device works on the other; no more than before for fewer."""
    with LossEngine(STEP, planes=5) as made:
        whole = _run(made, 5)
    sizes.clear()
    monkeypatch.setattr(engine, "_BATCH_BYTES", 2 * 3 * 4 * 64 * 64)  # two planes of three maps, or six without maps
    with LossEngine(STEP) as made:
        _run(made, 1)
        limit = 3 * sum(sizes) * 6
        for planes in (5, 17):
            sizes.clear()
            split = _run(made, planes)
            assert sum(sizes) <= limit
            np.testing.assert_equal((split[0][:5], split[1][:5]), whole)


def test_room_that_could_not_be_made_is_made_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that there was no memory for leaves an engine that takes the next one."""
    with LossEngine(STEP) as made:
        expected = _run(made, 1)

        def refuse(*_: Any, **__: Any) -> None:
            raise DeviceMemoryError("there is none")

        with monkeypatch.context() as full:
            full.setattr(engine, "Executor", refuse)
            with pytest.raises(DeviceMemoryError):
                _run(made, 3)
        np.testing.assert_equal(_run(made, 1), expected)
