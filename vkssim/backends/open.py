"""Open backends and evaluate losses, on devices that stay open. No backend ever takes the place of another."""

from __future__ import annotations

import os
import uuid
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..errors import DeviceError, OptionError, UnusableGpuWarning
from ..host.devices import DEVICE_VARIABLE, DeviceInfo, DeviceKind, list_devices
from ..host.errors import DOCTOR
from ..host.gpus import unlisted_gpus
from ..host.instance import shared_instance
from ..metrics.plane_metrics import PlaneMetrics
from ..types import Doubles
from ..utils.choices import BACKEND
from ..utils.thread_pool import closing_on_error
from .base import Backend, Batch
from .cpu import CpuBackend
from .sessions import EngineInUse, Session, use_engine

if TYPE_CHECKING:
    from .loss_engine import LossEngine, LossStep
    from .vulkan import VulkanBackend

Planes = npt.NDArray[Any]


def check_backend(name: str, device: object = None) -> None:
    """Raise OptionError for an unknown backend, and for a device of the cpu backend."""
    BACKEND.check(name)
    if name == "cpu" and device is not None:
        raise OptionError(f"device {device!r} is for the vulkan backend; the cpu backend has no devices")


# -- warnings ---------------------------------------------------------------------------------------------------------


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


def _warn(about_device: Sequence[Warning]) -> None:
    """Issue warnings about a device, for callers without a report."""
    for warning in about_device:
        warnings.warn(warning, stacklevel=2)


def open_with_warnings(backend: Backend) -> Backend:
    """Issue the backend's warnings, and return the backend; for callers without a report."""
    with closing_on_error(backend):
        _warn(backend.warnings)
    return backend


# -- backends ---------------------------------------------------------------------------------------------------------


def open_backend(
    name: str,
    planes: Sequence[PlaneMetrics],
    *,
    device: str | int | Session | None = None,
    batch: int | None = None,
    slots: int = 4,
    taken: int | None = None,
    profile: bool = False,
    keep: bool = True,
) -> Backend:
    """Return the backend of the given name, with `slots` batches; no other backend is ever used instead.

    The device stays open and, with `keep`, so does its memory, for the next backend of the same formats, metrics and arguments.
    If only some of the batches are `taken`, backends that are open at the same time share it, each with batches of its own.

    Raises OptionError for an unknown name, WrongNumbersError for a device that fails the self-test.
    """
    check_backend(name, device)
    if name == "cpu":
        return CpuBackend(planes, slots if taken is None else max(1, taken))

    from .selftest import check  # which imports all metrics and losses: an import of vkssim need not wait for them
    from .vulkan import VulkanBackend

    def make(session: Session) -> VulkanBackend:
        engine = VulkanBackend(planes, device=session, batch=batch, slots=slots, profile=profile)
        with closing_on_error(engine):
            check(engine.device.info, engine.plan, session)
        return engine

    if isinstance(device, Session):
        engine = make(device)
        engine.warnings = (*software_warnings(engine.device.info, device.selector), *engine.warnings)
        return engine
    formats = tuple((plane.format, tuple((type(scorer), scorer.text) for scorer in plane.scorers)) for plane in planes)
    sharing = any(plane.format.external for plane in planes)
    for number in count():  # another engine if too few batches of those before are free
        key = formats, batch, slots, profile, number
        used = EngineInUse(device, key, make, sharing=sharing)
        with closing_on_error(used):
            warned = used.session.warnings
            if str(device) not in warned:  # devices are listed for it, which takes milliseconds
                warned[str(device)] = software_warnings(used.session.device.info, device)
            about_device = warned[str(device)]
            batches = used.engine.take(slots if taken is None else taken)
            if batches is not None:
                if not keep:
                    used.drop()
                return _SharedBackend(used, batches, about_device)
        used.close()
    raise AssertionError


class _SharedBackend(Backend):
    """Some of the batches of a backend that is kept open. Only submissions must take turns."""

    def __init__(self, used: EngineInUse[VulkanBackend], batches: tuple[Batch, ...], about_device: Sequence[Warning]) -> None:
        self._used, self._backend = used, used.engine
        self._in_flight: list[Batch] = []
        self._has_failed = self._is_closed = False
        self.info, self.planes = self._backend.info, self._backend.planes
        self.batches = batches
        self.warnings = (*about_device, *self._backend.warnings)

    def check_process(self) -> None:
        self._backend.check_process()

    def submit(self, batch: Batch, frames: int, after: Batch | None = None) -> None:
        with self._noting_failure():
            with self._used.lock:
                self._backend.submit(batch, frames, after)
            self._in_flight.append(batch)

    def is_done(self, batch: Batch) -> bool:
        with self._noting_failure():
            return self._backend.is_done(batch)

    def collect(self, batch: Batch) -> list[list[Doubles]]:
        with self._noting_failure():
            means = self._backend.collect(batch)
            self._in_flight.remove(batch)
            return means

    @contextmanager
    def _noting_failure(self) -> Iterator[None]:
        """Let nobody use the engine again after a call that fails, or that Ctrl-C ends: its state is unknown."""
        try:
            yield
        except BaseException as error:
            self._has_failed = True
            self._used.fail(error)
            raise

    def stage_seconds(self) -> Mapping[str, float]:
        return self._backend.stage_seconds()

    def close(self) -> None:
        """Wait for the submissions of a failed run, so that its batches are free for the next run."""
        if self._is_closed:
            return
        self._is_closed = True
        with self._used, suppress(DeviceError):  # the failed run has its error, and other runs on the device get their own
            while self._in_flight and not self._has_failed:
                self.collect(self._in_flight[-1])
            if not self._has_failed:
                self._backend.give_back(self.batches)


# -- losses -----------------------------------------------------------------------------------------------------------


def evaluate(
    step: LossStep, reference: Planes, distorted: Planes, *, backend: str = "vulkan", device: str | int | None = None
) -> tuple[Doubles, Planes | None]:
    """Return values (P,) float64 of planes and, if the step has them, their gradients (P, H, W) by the distorted planes.

    Planes are (P, H, W) arrays of any strides. "vulkan" computes in float32 on a device, with gradients in float32. "cpu" is
    the NumPy twin, in float64.
    """
    from ..loss.reference import value_and_gradient
    from ..loss.spec import product
    from .loss_engine import LossEngine
    from .selftest import check

    check_backend(backend)
    if backend == "cpu":
        values, slopes = value_and_gradient(step.loss, reference.astype(np.float64), distorted.astype(np.float64))
        return values, step.weight * slopes if step.gradient else None
    result = np.empty(distorted.shape, np.float32) if step.gradient else None

    def make(session: Session) -> LossEngine:
        _warn(software_warnings(session.device.info, session.selector))
        engine = LossEngine(step, planes=len(distorted), device=session)
        with closing_on_error(engine):
            check(engine.device.info, engine.plan, session)
        return engine

    means = use_engine(device, step, make, lambda engine: engine.run(reference, distorted, result))
    values, slopes = product(step.loss, means)
    if result is not None and means.shape[1] == 1:  # it is the gradient of the mean so far, not yet of the value
        for plane in np.flatnonzero(slopes[:, 0] != 1.0):
            result[plane] *= np.float32(slopes[plane, 0])
    return values, result
