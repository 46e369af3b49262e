"""Runs a loss on a Vulkan device from arrays of the host: NumPy's, and PyTorch's on the CPU."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Self

import numpy as np
import numpy.typing as npt
import platformdirs

from ..features.planes import KernelShape
from ..host import fork
from ..host.executor import Bytes, Executor
from ..host.plan import Plan
from ..loss.plan import DISTORTED, GRADIENT, MEANS, REFERENCE, loss_plan
from ..loss.spec import Loss
from ..shaders import load_module
from .open_device import fitted, open_device, warn

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]

_BATCH_BYTES = 1 << 26


class LossEngine:
    """A loss for planes of one size on one device; use with `with`.

    Parameters
    ----------
    loss
        What is computed.
    gradient
        Whether the gradient by the distorted planes is wanted too.
    weight
        What the gradient is multiplied by.
    planes
        How many planes a call is expected to bring. A call that brings more gets larger buffers, up to a limit beyond which
        planes are computed in batches.
    device
        Index, name or UUID of the device; see `host.devices.choose_device`.
    profile
        Take the time of every stage.

    Raises
    ------
    DeviceError
        No device will do, or the buffers of one plane do not fit.

    """

    def __init__(
        self,
        loss: Loss,
        *,
        gradient: bool,
        weight: float = 1.0,
        planes: int = 1,
        device: str | int | None = None,
        profile: bool = False,
    ) -> None:
        self.loss = loss
        self._profile = profile
        self._stack = ExitStack()
        with ExitStack() as guard:
            guard.callback(self._stack.close)
            self.device = open_device(self._stack, device)
            info = self.device.info
            made = loss_plan(loss, KernelShape.for_device(info), gradient=gradient, weight=weight)
            self._plan, self._planes = made.plan, made.planes
            largest = max(spec.frame_bytes for spec in made.plan.buffers)
            self._most = max(1, min(_BATCH_BYTES, info.max_storage_bytes) // largest)
            self._buffers = self._stack.enter_context(ExitStack())
            self._executor: Executor | None = self._make_executor(planes)
            guard.pop_all()

    def _make_executor(self, planes: int) -> Executor:
        """Return an executor for that many planes at a time, or for as many as there is memory for."""

        def make(batch: int) -> Executor:
            return Executor(
                self.device,
                self._plan,
                load_module,
                batch=batch,
                slots=1 if planes <= batch else 2,  # a second one pays where one batch follows another
                cache_folder=platformdirs.user_cache_path("vkssim"),
                profile=self._profile,
            )

        wanted = min(planes, self._most)
        executor, warnings = fitted(self.device, wanted, make)
        if executor.batch < wanted:
            self._most = executor.batch
        self._buffers.enter_context(executor)
        warn(warnings)
        for slot in executor.slots:  # rows' ends are never filled, and whoever reads them must find numbers
            for memory in slot.inputs.values():
                memory[:] = 0
        return executor

    def _make_room(self, planes: int) -> Executor:
        """Return the executor, a larger one where that many planes need it."""
        executor = self._executor
        if executor is not None:
            second_slot = planes > executor.batch and len(executor.slots) == 1
            if not second_slot and executor.batch >= min(planes, self._most):
                return executor
            self._executor = None  # there is none where making the larger one fails
            self._buffers.close()
        self._executor = self._make_executor(planes)
        return self._executor

    @property
    def plan(self) -> Plan:
        """Return what is run for a batch."""
        return self._plan

    def run(self, reference: Floats, distorted: Floats, gradient: Floats | None = None) -> Doubles:
        """Return the mean of each scale's term of each plane, (P, scales), from two (P, H, W) float32 arrays of any strides.

        `gradient`, (P, H, W) float32 of any strides, receives that of each plane by the distorted one: of the one scale's
        mean, or of the plane's whole value where there are several. It is given where the engine was made for it.
        """
        fork.check()
        executor = self._make_room(len(distorted))
        means = np.empty((len(distorted), len(self.loss.weights)), np.float64)
        starts = range(0, len(distorted), executor.batch)
        pending: list[tuple[int, int]] = []  # slot, first plane
        for number, start in enumerate(starts):
            index = number % len(executor.slots)
            if len(pending) == len(executor.slots):
                self._collect(executor, *pending.pop(0), means, gradient)
            slot = executor.slots[index]
            count = min(executor.batch, len(distorted) - start)
            for name, planes in ((DISTORTED, distorted), (REFERENCE, reference)):
                self._view(slot.inputs[name])[:count] = planes[start : start + count]
            executor.submit(slot, count)
            pending.append((index, start))
        for index, start in pending:
            self._collect(executor, index, start, means, gradient)
        return means

    def _collect(self, executor: Executor, index: int, start: int, means: Doubles, gradient: Floats | None) -> None:
        slot = executor.slots[index]
        count = executor.wait(slot)
        deficits = slot.outputs[MEANS][:count].view(np.float32).reshape(count, -1, 4)[..., 0]
        means[start : start + count] = 1.0 - deficits.astype(np.float64)
        if gradient is not None:
            gradient[start : start + count] = self._view(slot.outputs[GRADIENT])[:count]

    def _view(self, memory: Bytes) -> Floats:
        """Return a mapped buffer as (batch, H, W)."""
        rows = memory.view(np.float32).reshape(len(memory), self._planes.height, self._planes.pitch)
        return rows[..., : self._planes.width]

    def stage_times(self) -> Mapping[str, float]:
        """Return the seconds of each stage of the first slot's last batch; empty without `profile`."""
        return {} if self._executor is None else self._executor.stage_times(self._executor.slots[0])

    def close(self) -> None:
        """Wait for the device and destroy everything on it; a second call does nothing."""
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
