"""Open the requested backend, and never a different backend in its place."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import OptionError, UnusableGpuWarning
from ..features.plane_metrics import PlaneMetrics
from ..host.closing import closing_on_error
from ..utils.choices import BACKENDS
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

        engine = VulkanBackend(planes, device=device, batch=batch, slots=slots, profile=profile)
        with closing_on_error(engine):
            check(engine.device.info, engine.plan, engine.selector)
        return engine
    if name == "cpu":
        from .cpu import CpuBackend

        if device is not None:
            raise no_devices(device)
        return CpuBackend(planes, slots)
    raise unknown_backend(name)


def no_devices(device: object) -> OptionError:
    """Return the error for a device of the cpu backend."""
    return OptionError(f"device {device!r} is for the vulkan backend; the cpu backend has no devices")


def unknown_backend(name: str) -> OptionError:
    """Return the error for an unknown backend."""
    return OptionError(f"unknown backend {name!r}; there are {', '.join(BACKENDS)}")


def open_with_warnings(backend: Backend) -> Backend:
    """Issue the backend's messages as Python warnings, and return the backend; for callers without a report."""
    with closing_on_error(backend):
        warn(backend.gpu_warnings, UnusableGpuWarning)
        warn(warning for warning in backend.warnings if warning not in backend.gpu_warnings)
    return backend
