"""Losses of tensors in memory that is shared with Vulkan: by CUDA if it is there, else by its stand-in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import product
from threading import Thread
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from vkssim import torch as front
from vkssim.backends import loss_engine, selftest
from vkssim.backends.loss_engine import LossStep
from vkssim.backends.sessions import close_sessions
from vkssim.errors import (
    DeviceError,
    DeviceLostError,
    DeviceMemoryError,
    SmallerBatchWarning,
    UnsuitableDeviceError,
    WrongNumbersError,
)
from vkssim.host import executor
from vkssim.host.executor import Executor
from vkssim.host.memory import Buffer
from vkssim.loss.spec import Loss, constants
from vkssim.torch import cuda
from vkssim.torch.cuda import Sharing

from ..loss.images import images, relative, twin
from ..support.devices.faults import RESULTS, Fault, layer, wrong_readback
from ..support.differences import check_number
from ..support.tolerances import LOSS_GRADIENT, LOSS_VALUE
from . import stand_in

WEIGHTS = (0.2, 0.3, 0.5)
LOST = RESULTS["DEVICE_LOST"]


@pytest.fixture(autouse=True)
def shared() -> Iterator[None]:
    with stand_in.sharing():
        yield


def _ordinary(image: Any) -> Tensor:
    return torch.from_numpy(np.array(image)).to(stand_in.DEVICE)


def _in_shared_memory(image: Any) -> Tensor:
    return stand_in.empty(image.shape).copy_(torch.from_numpy(image))


by_place = pytest.mark.parametrize("place", [_ordinary, _in_shared_memory], ids=["ordinary", "shared"])


def _pair(*shape: int, place: Any = _ordinary) -> tuple[Tensor, Tensor]:
    """A distorted and a reference tensor; gradients flow to the first one."""
    reference, distorted = images("natural", *shape)
    return place(distorted).requires_grad_(), place(reference)


def _step(pair: tuple[Tensor, Tensor], **options: Any) -> tuple[float, Any]:
    """The value of a loss and its gradient by the distorted images."""
    pair[0].grad = None
    function = front.ms_ssim if "weights" in options else front.ssim
    value = function(*pair, data_range=1.0, **options)
    value.backward()
    assert pair[0].grad is not None
    return value.item(), pair[0].grad.cpu().numpy().copy()


def _check(pair: tuple[Tensor, Tensor], got: tuple[float, Any], **options: Any) -> None:
    distorted, reference = (image.detach().cpu().numpy() for image in pair)
    value, gradient = twin(reference, distorted, **options)
    check_number(LOSS_VALUE, "cuda", f"{options}", got[0], value)
    check_number(LOSS_GRADIENT, "cuda", f"{options}", relative(got[1], gradient), 0.0)


def _opened() -> Sharing:
    return cuda.use_sharing(torch.device(stand_in.DEVICE), lambda sharing: sharing)


OPTIONS: list[dict[str, Any]] = [{}, {"weights": WEIGHTS}, {"weights": WEIGHTS, "pyramid": "libvmaf"}, {"weights": (0.5,)}]


@by_place
@pytest.mark.parametrize("padding", ["same", "valid"])
def test_against_the_twin(place: Any, padding: str) -> None:
    """One loss after the other, on a device that stays open."""
    for options, shape in product(OPTIONS, [(2, 3, 51, 61), (1, 1, 64, 48)]):
        pair = _pair(*shape, place=place)
        _check(pair, _step(pair, padding=padding, **options), padding=padding, **options)


def test_shared_tensors_are_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[str] = []
    copy = Sharing._copied
    monkeypatch.setattr(Sharing, "_copied", lambda self, name, *rest: copied.append(name) or copy(self, name, *rest))
    pair = _pair(1, 3, 32, 40, place=_in_shared_memory)
    got = _step(pair)
    assert copied == []
    assert _step(_pair(1, 3, 32, 40))[0] == got[0]
    assert copied == ["distorted", "reference"]


def test_memory_and_commands_are_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    monkeypatch.setattr(executor, "Buffer", lambda *words: made.append(words[2]) or Buffer(*words))
    bound: list[int] = []
    bind = Executor.bind
    monkeypatch.setattr(Executor, "bind", lambda self, *words: bound.append(1) or bind(self, *words))
    pair = _pair(2, 3, 32, 40)
    first = _step(pair)
    blocks = len(_opened()._memory.by_address)
    made.clear()
    for _ in range(5):
        np.testing.assert_equal(_step(pair), first)
    assert not made
    assert len(_opened()._memory.by_address) == blocks
    assert len(bound) == 1


def test_numbers_of_images_may_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """More planes make a larger executor; fewer planes use it as it is."""
    batches: list[int] = []
    new = Executor.__init__
    monkeypatch.setattr(
        Executor,
        "__init__",
        lambda self, *words, **options: (batches.append(options["batch"]), new(self, *words, **options))[1],
    )
    selftest_kernels = _step(_pair(1, 1, 32, 40))  # the self-test of these kernels has passed then
    batches.clear()
    values = [front.ssim(*_pair(count, 1, 32, 40), data_range=1.0, size_average=False) for count in (2, 5, 3, 1)]
    assert batches == [2, 5]
    assert values[3][0].item() == pytest.approx(selftest_kernels[0], abs=1e-7)
    for value in values:
        assert value.tolist() == values[1][: len(value)].tolist()


def test_many_losses_and_many_places() -> None:
    """The least recently used are closed, and opened again when they are used again."""
    pairs = [_pair(1, 1, 32, 32 + 4 * number, place=_in_shared_memory) for number in range(10)]
    first = [_step(pair) for pair in pairs]
    assert len(_opened()._losses) == 8
    for pair, got in zip(pairs, first, strict=True):
        np.testing.assert_equal(_step(pair), got)
    same = [_pair(1, 1, 32, 32, place=_in_shared_memory) for _ in range(20)]
    assert {_step(pair)[0] for pair in same} == {first[0][0]}
    front.empty_cache()
    np.testing.assert_equal(_step(pairs[0]), first[0])


def test_wrong_gradients_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """The self-test of the scores also runs before a loss of tensors. The values of this device are right."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(selftest, "_passed", set())
    pair = _pair(1, 3, 32, 40)
    with layer() as made:
        wrong_readback(made, least=4 * 176 * 176)
        with pytest.raises(WrongNumbersError, match="wrong numbers: SSIM and its gradient of two known pictures"):
            _step(pair)
    _check(pair, _step(pair))


def test_a_lost_device_is_opened_once_more() -> None:
    pair = _pair(2, 3, 32, 40, place=_in_shared_memory)
    expected = _step(pair)
    before = _opened()
    with layer(Fault("vkQueueSubmit", 0, LOST)) as made:
        np.testing.assert_equal(_step(pair), expected)
        assert made.injected == 1
    assert _opened() is not before
    with layer(Fault("vkQueueSubmit", 0, LOST, forever=True)) as made, pytest.raises(DeviceLostError):
        _step(pair)
    assert made.injected == 2, "the call was made twice"
    np.testing.assert_equal(_step(pair), expected)


@by_place
def test_too_little_memory_halves_the_batches(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = _pair(3, 3, 41, 60, place=place)
    expected = [_step(pair, **options) for options in ({}, {"weights": WEIGHTS})]
    front.empty_cache()
    tried: list[int] = []

    def small(*words: Any, **options: Any) -> Executor:
        tried.append(options["batch"])
        if options["batch"] > 2:
            raise DeviceMemoryError("full")
        return Executor(*words, **options)

    monkeypatch.setattr(loss_engine, "Executor", small)
    for options, wanted in zip(({}, {"weights": WEIGHTS}), expected, strict=True):
        tried.clear()
        with pytest.warns(SmallerBatchWarning, match="no memory for batches of 9 frames; batches of 2 are used"):
            got = _step(pair, **options)
        assert tried == [9, 9, 4, 4, 2], "each size is tried again after unused memory was freed"
        assert got[0] == pytest.approx(wanted[0], abs=1e-7)  # PyTorch adds the values in another order
        np.testing.assert_equal(got[1], wanted[1])


def test_too_little_memory_leaves_the_device_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tensors that the caller has stay where losses need no copy of them."""
    pair = _pair(1, 3, 32, 40, place=_in_shared_memory)
    before = _opened()
    with monkeypatch.context() as full:
        full.setattr(cuda, "_Block", lambda *_: _refuse())
        with pytest.raises(DeviceMemoryError, match="full"):
            stand_in.empty((1, 3, 1000, 1000))
    assert _opened() is before
    _check(pair, _step(pair))


def _refuse() -> None:
    raise DeviceMemoryError("full")


def test_tensors_outlive_the_sharing() -> None:
    """The device is closed after the last tensor in its memory."""
    tensor = stand_in.empty((4, 5)).fill_(7.0)
    live = _opened().device.live_objects
    close_sessions()
    view = tensor[1:, ::2]
    del tensor
    assert live["Memory"] == 1
    assert view.mean().item() == 7.0
    del view
    assert not +live, dict(+live)


def test_all_is_closed_with_the_sharing() -> None:
    _step(_pair(2, 3, 41, 60))
    _step(_pair(2, 3, 41, 60), weights=WEIGHTS)
    live: Counter[str] = _opened().device.live_objects
    assert live["Pipeline"] > 0
    close_sessions()
    assert not +live, dict(+live)


def test_memory_that_cannot_be_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason is remembered, and names the way through the host's memory."""
    opened: list[int] = []

    def refuse(_gpu: Any) -> None:
        opened.append(1)
        raise DeviceError("CUDA knows no device")

    monkeypatch.setattr(cuda, "Cuda", refuse)
    for _ in range(2):
        with pytest.raises(UnsuitableDeviceError, match=r"CUDA knows no device.*vkssim\.torch\.host_staging\(\)"):
            front.ssim(*_pair(1, 3, 32, 40), data_range=1.0)
    assert len(opened) == 1


def test_no_other_thread_overwrites_values() -> None:
    """All values lie in the same memory, one step after the other; a step of another thread waits until they are read."""
    pairs = [[image.detach() for image in _pair(1, 1, 32, 36)] for _ in range(2)]
    pairs[1][0].mul_(0.5)
    expected = [front.ssim(pair[0], pair[1], data_range=1.0).item() for pair in pairs]
    loss = Loss(32, 36, **constants(1.0))
    other = Thread(target=lambda: front.ssim(pairs[1][0], pairs[1][1], data_range=1.0))

    def pool(values: Tensor) -> Tensor:
        other.start()
        other.join(0.2)
        return values.mean()

    place, step = torch.device(stand_in.DEVICE), LossStep(loss, gradient=False)
    value, _ = cuda.use_sharing(place, lambda sharing: sharing.compute(pairs[0][0], pairs[0][1], step, pool))
    other.join()
    assert value.item() == expected[0] != expected[1]


def test_another_stream_waits_for_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = _pair(1, 3, 32, 40)
    expected = _step(pair)
    if stand_in.DEVICE == "cuda":
        with torch.cuda.stream(torch.cuda.Stream()):
            np.testing.assert_equal(_step(pair), expected)
        return
    waited: list[Any] = []
    sharing, last = _opened(), stand_in.STREAM
    other: Any = type(last)(cuda_stream=5, wait_stream=waited.append)
    monkeypatch.setattr(sharing, "stream", lambda: other)
    for _ in range(2):
        np.testing.assert_equal(_step(pair), expected)
    assert waited == [last]
