"""Test the devices that the functions of arrays and losses share: what is opened, compiled and made, and how much is kept."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch

import vkssim
from vkssim.backends import sessions
from vkssim.backends.open import OpenDevice, fit_batch
from vkssim.backends.sessions import close_sessions, use_engine
from vkssim.errors import DeviceLostError, DeviceMemoryError, FrameError, NoDeviceError
from vkssim.host.device import Device
from vkssim.host.executor import Executor
from vkssim.host.pipelines import PipelineBuilder
from vkssim.torch import ssim as tensor_ssim
from vkssim.utils.thread_pool import Closable

from ..support.pictures import clip

WAIT_S = 30.0  # longer than any test, and far below the limits of a run

OPENED, COMPILED, MADE, CLOSED = "devices", "kernels", "executors", "executors closed"


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """What was opened, compiled, made and closed since the test began."""
    close_sessions()
    counted: Counter[str] = Counter()

    def count(kind: type[Any], method: str, name: str) -> None:
        original: Callable[..., Any] = getattr(kind, method)

        def noted(self: object, *arguments: Any, **options: Any) -> Any:
            result = original(self, *arguments, **options)
            counted[name] += 1
            return result

        monkeypatch.setattr(kind, method, noted)

    count(Device, "__init__", OPENED)
    count(PipelineBuilder, "_compile", COMPILED)
    count(Executor, "__init__", MADE)
    count(Executor, "close", CLOSED)
    yield counted
    close_sessions()


def _ssim(height: int, width: int) -> float:
    first, second = clip(2, height, width)
    score = vkssim.ssim(first, second, window="uniform8")
    assert isinstance(score, float)
    return score


def _calls() -> list[Callable[[], object]]:
    """Return calls of each function and of two sizes."""
    first, second = clip(2, 176, 184)
    tensors = tuple(torch.from_numpy(image[None, None].astype(np.float32)) for image in (first, second))
    return [
        lambda: _ssim(40, 52),
        lambda: _ssim(57, 43),
        lambda: vkssim.ssim(first, second, precision="fast"),
        lambda: vkssim.ms_ssim(first, second, precision="fast"),
        lambda: vkssim.ssim(first, second, return_map=True, precision="fast"),
        lambda: vkssim.ssim_and_grad(first, second),
        lambda: tensor_ssim(tensors[0], tensors[1]),
    ]


@pytest.mark.parametrize("device", [[0], {}, 0.0])
def test_what_names_no_device_is_an_error_of_its_own(device: Any) -> None:
    first, second = clip(2, 40, 52)
    with pytest.raises(NoDeviceError, match="matches no device"):
        vkssim.ssim(first, second, device=device)


def test_calls_in_turn_open_compile_and_make_nothing(counts: Counter[str]) -> None:
    calls = _calls()
    for call in calls:
        call()
    assert counts[OPENED]
    counts.clear()
    for call in calls * 2:
        call()
    assert not counts


def test_another_size_takes_the_open_device_and_its_kernels(counts: Counter[str]) -> None:
    _ssim(40, 52)
    counts.clear()
    sizes = [(40 + step, 52 - step) for step in range(1, 6)]
    scores = [_ssim(*size) for size in sizes]
    assert counts == {MADE: 5}
    assert [_ssim(*size) for size in sizes] == scores


def test_a_picture_that_is_refused_leaves_the_device_open(counts: Counter[str]) -> None:
    first, second = clip(2, 40, 52)
    score = vkssim.ssim(first, second, window="uniform8", data_range=254)
    counts.clear()
    with pytest.raises(FrameError, match="a sample of 255"):
        vkssim.ssim(first, np.full_like(second, 255), window="uniform8", data_range=254)
    assert vkssim.ssim(first, second, window="uniform8", data_range=254) == score
    assert counts == {CLOSED: 1, MADE: 1}


def test_engines_are_few(counts: Counter[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MAX_ENGINES", 2)
    _ssim(40, 52)
    counts.clear()
    for height in (41, 42, 43):
        _ssim(height, 52)
    assert counts == {MADE: 3, CLOSED: 2}
    _ssim(42, 52)  # is still there
    assert counts[MADE] == 3


def test_engines_take_a_limited_memory(counts: Counter[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MAX_KEPT_BYTES", 1)
    _ssim(40, 52)
    counts.clear()
    _ssim(41, 52)
    assert counts == {MADE: 1, CLOSED: 1}
    _ssim(41, 52)  # the one that was used last is kept
    assert counts[MADE] == 1


def test_memory_that_idle_engines_hold_is_freed_before_batches_get_smaller(counts: Counter[str]) -> None:
    """The device has no more memory while the engine of another size is there."""
    _ssim(40, 52)
    counts.clear()
    tried: list[int] = []

    def make(frames: int) -> _Engine:
        tried.append(frames)
        if not counts[CLOSED]:
            raise DeviceMemoryError("full")
        return _Engine()

    def fit(opened: OpenDevice) -> _Engine:
        made, warnings = fit_batch(opened.device, 8, make, make_room=opened.make_room)
        assert not warnings
        return made

    use_engine(None, "another", fit, lambda engine: engine)
    assert tried == [8, 8]


# -- threads ----------------------------------------------------------------------------------------------------------


class _Engine(Closable):
    """Counts how often it is closed."""

    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


class _StandIn(Closable):
    """Stands in for an open device of that name."""

    def __init__(self, name: str) -> None:
        self.name, self.closed = name, 0
        self.device = self
        self.memory_in_use, self.abandoned = 0, False

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[_StandIn]]:
    """The stand-ins of devices that a test has opened. Each name is a device."""
    close_sessions()
    opened: list[_StandIn] = []

    def open_stand_in(name: str) -> _StandIn:
        opened.append(_StandIn(name))
        return opened[-1]

    monkeypatch.setattr(sessions, "device_uuid", lambda name: name)
    monkeypatch.setattr(sessions, "OpenDevice", open_stand_in)
    yield opened
    close_sessions()
    assert [device.closed for device in opened] == [1] * len(opened)


@pytest.mark.parametrize("places", [[("a", 1), ("b", 1)], [("a", 1), ("a", 2)]], ids=["devices", "sizes"])
def test_two_threads_compute_at_a_time(stand_ins: list[_StandIn], places: list[tuple[str, int]]) -> None:
    """Each computation ends only after the other has begun."""
    both = threading.Barrier(2)

    def compute(place: tuple[str, int]) -> None:
        use_engine(*place, lambda _opened: _Engine(), lambda _engine: both.wait(WAIT_S))

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(compute, places))
    assert [device.name for device in stand_ins] == sorted({name for name, _ in places})


def test_one_engine_is_used_by_one_thread_at_a_time(stand_ins: list[_StandIn]) -> None:
    inside, made = Counter[str](), []
    begun, may_end = threading.Event(), threading.Event()

    def make(_opened: object) -> _Engine:
        made.append(_Engine())
        return made[-1]

    def compute(_engine: _Engine) -> int:
        inside["now"] += 1
        most = inside["now"]
        begun.set()
        may_end.wait(WAIT_S)
        inside["now"] -= 1
        return most

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(use_engine, "a", 1, make, compute)
        assert begun.wait(WAIT_S)
        second = pool.submit(use_engine, "a", 1, make, compute)
        may_end.set()
        assert (first.result(), second.result()) == (1, 1)
    assert (len(made), len(stand_ins)) == (1, 1)


def test_a_lost_device_is_closed_after_its_last_user(stand_ins: list[_StandIn]) -> None:
    """The thread that lost it goes on with a new one, while another thread still uses the old one."""
    begun, may_end = threading.Event(), threading.Event()
    failures = [DeviceLostError("lost")]

    def stay(_engine: _Engine) -> None:
        begun.set()
        assert may_end.wait(WAIT_S)

    def fail_once(_engine: _Engine) -> int:
        if failures:
            raise failures.pop()
        return stand_ins[0].closed

    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(use_engine, "a", 1, lambda _opened: _Engine(), stay)
        assert begun.wait(WAIT_S)
        assert use_engine("a", 2, lambda _opened: _Engine(), fail_once) == 0
        assert len(stand_ins) == 2
        may_end.set()
        other.result()
    assert [device.closed for device in stand_ins] == [1, 0]
