"""Opens the backend that was asked for, and never another."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from ..errors import OptionError
from ..features.plane_metrics import PlaneMetrics
from ..utils.choices import BACKENDS
from .base import Backend
from .open_device import warn


def open_backend(
    name: str,
    planes: Sequence[PlaneMetrics],
    *,
    device: str | int | None = None,
    batch: int | None = None,
    slots: int = 4,
    profile: bool = False,
) -> Backend:
    """Return the backend of that name, with `slots` batches; only the one asked for, never another.

    Raises OptionError for an unknown name, WrongNumbersError for a device that fails the self-test.
    """
    if name == "vulkan":
        from .selftest import check
        from .vulkan import VulkanBackend

        with ExitStack() as guard:
            engine = guard.enter_context(VulkanBackend(planes, device=device, batch=batch, slots=slots, profile=profile))
            check(engine.device.info, engine.plan, device)
            guard.pop_all()
        return engine
    if name == "cpu":
        from .cpu import CpuBackend

        if device is not None:
            raise OptionError(f"device {device!r} is for the vulkan backend; the cpu backend has no devices")
        return CpuBackend(planes, slots)
    raise unknown_backend(name)


def unknown_backend(name: str) -> OptionError:
    """Return what to say of a backend that there is not."""
    return OptionError(f"unknown backend {name!r}; there are {', '.join(BACKENDS)}")


def open_with_warnings(backend: Backend) -> Backend:
    """Return the backend, after Python's `warnings` have had what it is to be warned of; for who makes no report."""
    with ExitStack() as guard:
        guard.callback(backend.close)
        warn(backend.warnings)
        guard.pop_all()
    return backend
