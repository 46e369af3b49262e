"""Open the requested backend, and never a different backend in its place."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial

from ..errors import OptionError, UnusableGpuWarning
from ..features.plane_metrics import PlaneMetrics
from ..utils.choices import BACKENDS
from ..utils.thread_pool import Closable
from .base import Backend
from .open_device import OpenDevice, warn


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
    if name == "vulkan":
        from .selftest import check
        from .vulkan import VulkanBackend

        with ExitStack() as guard:
            engine = guard.enter_context(VulkanBackend(planes, device=device, batch=batch, slots=slots, profile=profile))
            check(engine.device.info, engine.plan, engine.selector)
            guard.pop_all()
        return engine
    if name == "cpu":
        from .cpu import CpuBackend

        if device is not None:
            raise no_devices(device)
        return CpuBackend(planes, slots)
    raise unknown_backend(name)


class BackendOpener(Closable):
    """Opens backends as `open_backend` does. Their device stays open, with its compiled kernels, until `close`."""

    def __init__(
        self, name: str, *, device: str | int | None = None, batch: int | None = None, slots: int = 4, profile: bool = False
    ) -> None:
        self._name = name
        self._selector = device
        self._open = partial(open_backend, name, batch=batch, slots=slots, profile=profile)
        self._devices: dict[bool, OpenDevice] = {}  # by whether they share memory with another API

    def __call__(self, planes: Sequence[PlaneMetrics]) -> Backend:
        """Return a backend for frames with these planes. Raises as `open_backend` does."""
        if self._name != "vulkan":
            return self._open(planes, device=self._selector)
        sharing = any(plane.format.external for plane in planes)
        if sharing not in self._devices:
            self._devices[sharing] = OpenDevice(self._selector, sharing=sharing)
        return self._open(planes, device=self._devices[sharing])

    def close(self) -> None:
        """Close the device, which no backend uses any more; another backend opens it again."""
        while self._devices:
            self._devices.popitem()[1].close()


def no_devices(device: object) -> OptionError:
    """Return the error for a device of the cpu backend."""
    return OptionError(f"device {device!r} is for the vulkan backend; the cpu backend has no devices")


def unknown_backend(name: str) -> OptionError:
    """Return the error for an unknown backend."""
    return OptionError(f"unknown backend {name!r}; there are {', '.join(BACKENDS)}")


def open_with_warnings(backend: Backend) -> Backend:
    """Issue the backend's messages as Python warnings, and return the backend; for callers without a report."""
    with ExitStack() as guard:
        guard.callback(backend.close)
        warn(backend.gpu_warnings, UnusableGpuWarning)
        warn(warning for warning in backend.warnings if warning not in backend.gpu_warnings)
        guard.pop_all()
    return backend
