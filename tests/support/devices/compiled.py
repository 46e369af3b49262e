"""Devices as the tests open them: one for many tests, on which each kernel is compiled once, in 0.1 s to 2 s on lavapipe.

Mesa's cache of compiled kernels is kept from run to run, and `ci/lavapipe_gate` adds to it. It names an entry by the kernel and
the build of the driver, so a change of either is compiled anew.
"""

from __future__ import annotations

import gc
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
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

_KEPT = Path(__file__).resolve().parents[3] / "build" / "mesa-cache"
_OF_MESA = ("mesa_shader_cache*", "vkssim/mesa-*")  # in a user's folder of caches: Mesa's own, and those by width
_MAX_FILES = 2000  # a run of all tests makes 140, some 20 KiB each


def restore_kernels(cache: Path) -> None:
    """Put the kernels that earlier runs compiled into the folder of caches of this run, unless there are too many by now."""
    if sum(path.is_file() for path in _KEPT.rglob("*")) > _MAX_FILES:
        shutil.rmtree(_KEPT)
    _copy_kernels(_KEPT, cache)


def keep_kernels(cache: Path) -> None:
    """Keep the kernels that are in the folder of caches of this run."""
    _copy_kernels(cache, _KEPT)


def _copy_kernels(source: Path, target: Path) -> None:
    for folder in (path for pattern in _OF_MESA for path in source.glob(pattern)):
        copy = target / folder.relative_to(source)
        copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # vkssim uses no folder that another user could write to
        with suppress(OSError):  # a driver may write there just now
            shutil.copytree(folder, copy, dirs_exist_ok=True)


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
