"""Open devices and backends: a selector always means the same device, and no backend ever takes the place of another."""

from __future__ import annotations

import os
import threading
import uuid
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from functools import cache
from typing import TypeVar

import platformdirs

from ..errors import DeviceMemoryError, NoDeviceError, OptionError, SmallerBatchWarning, UnusableGpuWarning
from ..host.closing import Closable, closing_on_error
from ..host.device import Device
from ..host.devices import DEVICE_VARIABLE, DeviceInfo, DeviceKind, choose_device, list_devices
from ..host.errors import DOCTOR
from ..host.gpus import unlisted_gpus
from ..host.instance import shared_instance
from ..host.pipelines import PipelineBuilder
from ..host.plan import Plan, Role
from ..metrics.plane_metrics import PlaneMetrics
from ..shaders import load_module
from ..types import BackendInfo
from ..utils.choices import BACKENDS
from .base import Backend

Thing = TypeVar("Thing")

_lock = threading.Lock()
_meant: dict[tuple[str | None, str | None], uuid.UUID] = {}


def _meant_by(selector: str | int | None) -> tuple[str | None, str | None]:
    """Return the key of a remembered device: the text that `choose_device` compares, since any value can be passed."""
    return None if selector is None else str(selector), os.environ.get(DEVICE_VARIABLE)


def info_of(device: DeviceInfo) -> BackendInfo:
    """Return the backend ``"vulkan"`` on a device, as reports name it."""
    return BackendInfo("vulkan", device.name, device.driver)


def device_uuid(selector: str | int | None) -> uuid.UUID:
    """Return the UUID of the device that a selector means, without opening it."""
    with _lock:
        meant = _meant.get(_meant_by(selector))
    return choose_device(list_devices(shared_instance()), selector).uuid if meant is None else meant


def open_device(stack: ExitStack, selector: str | int | None, *, sharing: bool = False) -> Device:
    """Return a device, which `stack` closes. See `host.devices.choose_device` for selectors, and `Device` for `sharing`.

    A selector means the same device until the process ends. If it is lost and a different device becomes the first of the
    list, that device must not silently replace it. Raises NoDeviceError instead.
    """
    instance = shared_instance()
    stack.callback(instance.check)
    devices = list_devices(instance)
    key = _meant_by(selector)
    with _lock:
        meant = _meant.get(key)
    info = next((device for device in devices if device.uuid == meant), None)
    if info is None:
        info = choose_device(devices, selector)
        if meant is not None:
            raise NoDeviceError(
                f"the device {meant} that was used so far is gone; there is {info.name}, which is taken only if it is asked"
                " for by its name"
            )
    device = stack.enter_context(Device(info, sharing=sharing))
    with _lock:
        _meant[key] = info.uuid
    return device


class OpenDevice(Closable):
    """A device and its compiled kernels, for several backends at a time or one after the other; use with `with`.

    `selector` is what chose the device. See `open_device` for `sharing` and the errors. `make_room` frees memory of the device
    that nothing uses at the moment, and returns whether there was any.
    """

    make_room: Callable[[], bool] = staticmethod(lambda: False)

    def __init__(self, selector: str | int | None, *, sharing: bool = False) -> None:
        self.selector = selector
        self._stack = ExitStack()
        with closing_on_error(self._stack):
            self.device = open_device(self._stack, selector, sharing=sharing)
            self.pipelines = PipelineBuilder(self.device, self._stack, load_module, platformdirs.user_cache_path("vkssim"))

    def close(self) -> None:
        """Close the device; a second call does nothing."""
        self._stack.close()


def largest_batch(device: Device, plan: Plan, slots: int) -> int:
    """Return the number of frames whose buffers the device can bind and could have memory for, at least 1.

    It is an upper bound from the limits of the device. The free memory usually holds fewer frames.
    """
    largest = max(spec.frame_bytes for spec in plan.buffers)
    frame_bytes = sum(spec.frame_bytes * (1 if spec.role is Role.WORK else slots) for spec in plan.buffers)
    return max(1, min(device.info.max_storage_bytes // largest, device.memory_bytes // frame_bytes))


def fit_batch(
    device: Device,
    most: int,
    make: Callable[[int], Thing],
    possible: int | None = None,
    make_room: Callable[[], bool] = lambda: False,
) -> tuple[Thing, tuple[Warning, ...]]:
    """Return `make(frames)` for the largest batches for which the device has memory, and a warning if they are small.

    The function tries `most` frames first, then half as many, and so on down to 1. It tries a size again if `make_room` freed
    memory. The warning says that the batches are smaller than `most`.

    `possible` is the `largest_batch`. If it is less than `most`, the search starts there, because each attempt compiles and
    allocates. Raises DeviceMemoryError if one frame is still too much.
    """
    frames = most if possible is None else min(most, possible)
    while True:
        try:
            made = make(frames)
            break
        except DeviceMemoryError:
            if make_room():
                continue
            if frames == 1:
                raise
            frames //= 2
    if frames == most:
        return made, ()
    text = f"{device.info.name} has no memory for batches of {most} frames; batches of {frames} are used"
    return made, (SmallerBatchWarning(text),)


def warn(about_device: Iterable[Warning]) -> None:
    """Issue warnings about a device, for callers without a report."""
    for warning in about_device:
        warnings.warn(warning, stacklevel=2)


def software_warnings(device: DeviceInfo, selector: str | int | None) -> tuple[Warning, ...]:
    """Return a warning if `device` is a software device and a GPU is present that Vulkan cannot use.

    There is no warning for a device that the user chose by its name. An index or a UUID is no such choice: another device may
    have the index if the GPU works, and vkssim itself hands UUIDs to its workers. `host.gpus` says which signs of a
    GPU count.
    """
    if device.kind is not DeviceKind.CPU or _is_name(selector):
        return ()
    gpus = [other for other in list_devices(shared_instance()) if other.kind is not DeviceKind.CPU]
    if any(not gpu.lacks for gpu in gpus):  # the user passed over a GPU that works
        return ()
    reasons = [f"{gpu.description} lacks {', '.join(gpu.lacks)}" for gpu in gpus] or _unlisted_gpus()
    if not reasons:
        return ()
    text = (
        f"{device.name} computes in software, although a GPU is present: {'; '.join(reasons)}. {DOCTOR};"
        f" `device={device.name.split(maxsplit=1)[0]}` uses this device without the warning"
    )
    return (UnusableGpuWarning(text),)


@cache
def _unlisted_gpus() -> tuple[str, ...]:
    """Return the signs of GPUs on this machine, which are looked for once in each process."""
    return tuple(unlisted_gpus())


def _is_name(selector: str | int | None) -> bool:
    text = str(os.environ.get(DEVICE_VARIABLE, "") if selector is None else selector).strip()
    with suppress(ValueError):
        uuid.UUID(text)
        return False
    return text != "" and not text.isdecimal()


# -- backends ---------------------------------------------------------------------------------------------------------


def open_backend(
    name: str,
    planes: Sequence[PlaneMetrics],
    *,
    device: str | int | OpenDevice | None = None,
    batch: int | None = None,
    slots: int = 4,
    profile: bool = False,
) -> Backend:
    """Return the backend of the given name, with `slots` batches; no other backend is ever used instead.

    Raises OptionError for an unknown name, WrongNumbersError for a device that fails the self-test.
    """
    check_backend(name, device)
    if name == "vulkan":
        from .selftest import check
        from .vulkan import VulkanBackend

        engine = VulkanBackend(planes, device=device, batch=batch, slots=slots, profile=profile)
        with closing_on_error(engine):
            check(engine.device.info, engine.plan, engine.selector)
        return engine
    from .cpu import CpuBackend

    return CpuBackend(planes, slots)


def check_backend(name: str, device: object = None) -> None:
    """Raise OptionError for an unknown backend, and for a device of the cpu backend."""
    if name not in BACKENDS:
        raise OptionError(f"unknown backend {name!r}; there are {', '.join(BACKENDS)}")
    if name == "cpu" and device is not None:
        raise OptionError(f"device {device!r} is for the vulkan backend; the cpu backend has no devices")


def open_with_warnings(backend: Backend) -> Backend:
    """Issue the backend's warnings, and return the backend; for callers without a report."""
    with closing_on_error(backend):
        warn(backend.warnings)
    return backend
