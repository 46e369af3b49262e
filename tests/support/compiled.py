"""Devices as the tests open them: one for many tests, on which each kernel is compiled once, in 0.1 s to 0.3 s on lavapipe."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import pytest

from vkssim.backends import sessions
from vkssim.backends.sessions import close_sessions
from vkssim.host import executor
from vkssim.host.device import Device
from vkssim.host.devices import choose_device, list_devices
from vkssim.host.errors import DeviceError
from vkssim.host.instance import Instance
from vkssim.host.pipelines import PipelineBuilder
from vkssim.shaders import load_module

_OPEN_DEVICE = sessions.open_device


@contextmanager
def opened_device(instance: Instance) -> Iterator[Device]:
    """Open the device that the tests run on, and check at the end that nothing is left on it.

    Fails the test if there is none: a test that skips itself proves nothing.
    """
    try:
        info = choose_device(list_devices(instance))
    except DeviceError as error:
        pytest.fail(f"the tests need a Vulkan device: {error}", pytrace=False)
    with Device(info) as device:
        yield device
        gc.collect()  # a scorer in a circle of references is closed by it
        assert not +device.live_objects, f"objects outlived their tests: {dict(+device.live_objects)}"


@contextmanager
def shared(device: Device, kept: PipelineBuilder) -> Iterator[None]:
    """Open `device` for everything that names no device, and have it use the kernels that are kept.

    It is for tests of numbers. Those of opening, of closing and of threads open devices of their own.
    """

    def builder(
        asked: Device, stack: ExitStack, load: Callable[[str], bytes], cache_folder: Path | None = None
    ) -> PipelineBuilder:
        if asked is device and load is load_module:
            return kept
        return PipelineBuilder(asked, stack, load, cache_folder)

    def open_shared(stack: ExitStack, selector: str | int | None, *, sharing: bool = False) -> Device:
        return device if selector is None and not sharing else _OPEN_DEVICE(stack, selector, sharing=sharing)

    with _opened_by(open_shared), pytest.MonkeyPatch.context() as patch:
        for module in (executor, sessions):
            patch.setattr(module, "PipelineBuilder", builder)
        yield


def unshared() -> AbstractContextManager[None]:
    """Let everything open a device of its own, as without `shared`."""
    return _opened_by(_OPEN_DEVICE)


@contextmanager
def _opened_by(open_device: Callable[..., Device]) -> Iterator[None]:
    """Have devices opened by a function; what the functions of arrays keep open is closed before and after."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sessions, "open_device", open_device)
        close_sessions()
        yield
        close_sessions()
