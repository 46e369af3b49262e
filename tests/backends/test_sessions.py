"""Test the devices that the functions of arrays and losses share: what is opened, compiled and made, and how much is kept."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import vkssim
from vkssim.backends import open as open_module
from vkssim.backends import selftest, sessions, vulkan
from vkssim.backends.failures import fit_batch
from vkssim.backends.open import open_backend
from vkssim.backends.sessions import Session, close_sessions, use_engine
from vkssim.backends.vulkan import VulkanBackend
from vkssim.errors import DeviceLostError, DeviceMemoryError, FrameError, NoDeviceError, SmallerBatchWarning
from vkssim.host.device import Device
from vkssim.host.executor import Executor
from vkssim.host.pipelines import PipelineBuilder
from vkssim.metrics.plane_metrics import PlaneMetrics
from vkssim.torch import ssim as tensor_ssim
from vkssim.types import FrameFormat
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

    def fit(opened: Session) -> _Engine:
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
        self.info = SimpleNamespace(description=name)
        self.memory_in_use, self.abandoned = 0, False

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[_StandIn]]:
    """The stand-ins of devices that a test has opened. Each name is a device."""
    close_sessions()
    opened: list[_StandIn] = []

    def open_stand_in(stack: ExitStack, name: str, *, sharing: bool) -> _StandIn:
        assert not sharing
        opened.append(stack.enter_context(_StandIn(name)))
        return opened[-1]

    monkeypatch.setattr(sessions, "device_uuid", lambda name: name)
    monkeypatch.setattr(sessions, "open_device", open_stand_in)
    monkeypatch.setattr(sessions, "PipelineBuilder", lambda *_: None)
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


def test_a_loss_is_logged(stand_ins: list[_StandIn], caplog: pytest.LogCaptureFixture) -> None:
    failures = [DeviceLostError("lost while it computed")]

    def fail_once(_engine: _Engine) -> None:
        if failures:
            raise failures.pop()

    with caplog.at_level("INFO", "vkssim"):
        use_engine("a", 1, lambda _session: _Engine(), fail_once)
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("INFO", "opened a"),
        ("WARNING", "a is closed: lost while it computed"),
        ("WARNING", "the device is reopened: lost while it computed"),
        ("INFO", "opened a"),
    ]
    assert len(stand_ins) == 2


@pytest.mark.parametrize("failures", [1, 2])
def test_a_lost_device_is_opened_again_once(stand_ins: list[_StandIn], failures: int) -> None:
    errors = [DeviceLostError("lost") for _ in range(failures)]

    def use(_engine: _Engine) -> None:
        if errors:
            raise errors.pop()

    with pytest.raises(DeviceLostError) if failures > 1 else nullcontext():
        use_engine("a", 1, lambda _session: _Engine(), use)
    assert [device.closed for device in stand_ins] == [1, failures - 1]


@pytest.mark.parametrize("harmless", [(), (FrameError,)])
def test_an_error_of_the_input_costs_at_most_the_engine(
    stand_ins: list[_StandIn], harmless: tuple[type[BaseException], ...]
) -> None:
    engines: list[_Engine] = []

    def fail(engine: _Engine) -> None:
        engines.append(engine)
        raise FrameError("too small")

    for _ in range(2):
        with pytest.raises(FrameError):
            use_engine("a", 1, lambda _session: _Engine(), fail, harmless=harmless)
    assert (engines[0] is engines[1], engines[0].closed) == ((True, 0) if harmless else (False, 1))
    assert len(stand_ins) == 1


# -- backends that runs share ----------------------------------------------------------------------------------------


class _Backend(_Engine):
    """A backend of four batches, each a number, which remembers its submissions."""

    info: Any = None
    warnings = (SmallerBatchWarning("smaller batches"),)
    batches: Any = tuple(range(4))
    plan: Any = None

    def __init__(self, planes: Any, *, device: Any, **_: Any) -> None:
        super().__init__()
        self.planes, self.device = planes, device.device
        self.failure: BaseException | None = None
        self.collected: list[int] = []
        self._free, self._taking = list(self.batches), threading.Lock()

    take, give_back = VulkanBackend.take, VulkanBackend.give_back

    def submit(self, _batch: int, _frames: int, _after: int | None = None) -> None:
        if self.failure is not None:
            raise self.failure

    def collect(self, batch: int) -> None:
        self.collected.append(batch)


@pytest.fixture
def made(stand_ins: list[_StandIn], monkeypatch: pytest.MonkeyPatch) -> list[_Backend]:
    """The backends that were made on stand-ins of devices."""
    backends: list[_Backend] = []

    def make(*arguments: Any, **options: Any) -> _Backend:
        backends.append(_Backend(*arguments, **options))
        return backends[-1]

    assert stand_ins == []
    monkeypatch.setattr(vulkan, "VulkanBackend", make)
    monkeypatch.setattr(selftest, "check", lambda *_: None)
    monkeypatch.setattr(open_module, "software_warnings", lambda *_: ())
    return backends


def _open(width: int = 64, **options: Any) -> Any:
    planes = [PlaneMetrics("y", FrameFormat.of_bits(width, 48, 8), ())]
    return open_backend("vulkan", planes, device="a", **options)


def test_runs_share_the_batches_of_a_backend(made: list[_Backend]) -> None:
    """A run for which there are too few of them gets another backend, and the next run finds both."""
    first, second = _open(taken=2), _open(taken=2)
    assert (first.batches, second.batches, len(made)) == ((0, 1), (2, 3), 1)
    with _open(taken=2):
        assert len(made) == 2
    first.close()
    second.close()
    with _open() as whole:
        assert (sorted(whole.batches), len(made)) == ([0, 1, 2, 3], 2)
        assert whole.warnings == _Backend.warnings


def test_another_format_leaves_the_device_and_the_backend_open(made: list[_Backend], stand_ins: list[_StandIn]) -> None:
    for width in (64, 80, 64, 80):
        _open(width).close()
    assert (len(made), len(stand_ins), [backend.closed for backend in made]) == (2, 1, [0, 0])


def test_a_backend_that_was_opened_ahead(made: list[_Backend]) -> None:
    ahead = _open(taken=0)
    with _open() as backend:
        assert (len(backend.batches), len(made)) == (4, 1)
    ahead.close()


def test_a_backend_that_is_not_kept_frees_its_memory(made: list[_Backend], stand_ins: list[_StandIn]) -> None:
    with _open(keep=False), _open() as other:
        assert len(other.batches) == 4
    assert [backend.closed for backend in made] == [1, 0]
    assert stand_ins[0].closed == 0


def test_what_a_run_that_ends_early_has_submitted_is_awaited(made: list[_Backend]) -> None:
    """Then its batches belong to the next run."""
    with _open(taken=2) as backend:
        for batch in backend.batches:
            backend.submit(batch, 1)
    assert made[0].collected == [1, 0]
    _open().close()
    assert len(made) == 1


@pytest.mark.parametrize("failure", [KeyboardInterrupt(), DeviceMemoryError("full"), DeviceLostError("lost")])
def test_a_run_that_fails_costs_its_backend(made: list[_Backend], stand_ins: list[_StandIn], failure: BaseException) -> None:
    """It is closed after its last run. Only a device that failed is opened again."""
    other, backend = _open(taken=2), _open(taken=2)
    made[0].failure = failure
    with pytest.raises(type(failure)):
        backend.submit(backend.batches[0], 1)
    backend.close()
    assert (made[0].collected, made[0].closed) == ([], 0)
    _open().close()
    assert len(stand_ins) == 1 + isinstance(failure, DeviceLostError)
    other.close()
    assert [backend.closed for backend in made] == [1, 0]


def test_closing_leaves_a_run_its_backend(made: list[_Backend], stand_ins: list[_StandIn]) -> None:
    with _open():
        close_sessions()
        assert (made[0].closed, stand_ins[0].closed) == (0, 0)
    assert (made[0].closed, stand_ins[0].closed) == (1, 1)
