"""Open the requested backend, and never a different backend in its place."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import OptionError
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
