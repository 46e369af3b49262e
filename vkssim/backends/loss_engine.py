"""Losses on a Vulkan device, of arrays of the host or of planes that another API of the GPU has."""

from __future__ import annotations

import warnings
from contextlib import ExitStack
from itertools import cycle
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..host.api import check_fork
from ..host.closing import Closable, closing_on_error
from ..host.executor import Bytes, Executor, Slot
from ..host.sharing import Timelines
from ..loss.plan import DISTORTED, GRADIENT, MEANS, REFERENCE, loss_plan
from ..loss.spec import Loss
from ..metrics.dispatches import KernelShape
from ..types import Doubles
from .failures import fit_batch
from .sessions import Session, opened_session

Floats = npt.NDArray[np.float32]

_BATCH_BYTES = 1 << 26


class LossStep(NamedTuple):
    """A loss, whether it is computed with its gradient, and the factor of the gradient."""

    loss: Loss
    gradient: bool
    weight: float = 1.0


class LossExecutor:
    """A loss on an open device. Its executor grows with the planes of a call, as far as the memory allows.

    A frame of the plan is a plane. With `timelines`, another API has the planes, which are packed as `loss_plan` says, and
    there are no slots.
    """

    executor: Executor | None = None

    def __init__(self, session: Session, step: LossStep, timelines: Timelines | None = None) -> None:
        self.loss, self.has_gradient = step.loss, step.gradient
        self.device = device = session.device
        self._session, self._timelines = session, timelines
        shape, packed = KernelShape.for_device(device.info), timelines is not None
        self.plan = loss_plan(step.loss, shape, gradient=step.gradient, weight=step.weight, packed=packed)
        largest = max(spec.frame_bytes for spec in self.plan.buffers)
        limit = device.info.max_storage_bytes
        self._most = max(1, (min(_BATCH_BYTES, limit) if timelines is None else limit) // largest)

    def room_for(self, planes: int) -> Executor:
        """Return the executor; it is replaced by a larger one if the number of planes requires it."""
        executor = self.executor
        if executor is not None:
            second_slot = planes > executor.batch and len(executor.slots) == 1
            if not second_slot and executor.batch >= min(planes, self._most):
                return executor
            self.close_executor()  # if making the larger one fails, there is none

        def make(batch: int) -> Executor:
            slots = 1 if planes <= batch else 2  # a second slot helps only if there are several batches
            return self.new_executor(batch, slots if self._timelines is None else 0)

        most = min(planes, self._most)
        made, smaller = fit_batch(self.device, most, make, make_room=self._session.make_room)
        self.executor = made
        if smaller:
            self._most = made.batch
        for warning in smaller:
            warnings.warn(warning, stacklevel=2)
        return made

    def new_executor(self, batch: int, slots: int) -> Executor:
        """Return an executor for batches of a number of planes. Raises DeviceMemoryError if they do not fit."""
        return Executor(self.device, self.plan, self._session.pipelines, batch=batch, slots=slots, timelines=self._timelines)

    def close_executor(self) -> None:
        """Wait for the device and destroy the executor; a second call does nothing."""
        executor, self.executor = self.executor, None
        if executor is not None:
            executor.close()


class LossEngine(LossExecutor, Closable):
    """A loss for planes of one size on one device, with arrays of the host.

    `planes` is the expected number of planes of a call. A call with more planes gets larger buffers, up to a limit. Beyond it,
    planes are computed in batches. See `host.devices.choose_device` for `device`; that of a session stays open. Raises
    DeviceError if no device is usable, or if the buffers of one plane do not fit.
    """

    def __init__(self, step: LossStep, *, planes: int = 1, device: str | int | Session | None = None) -> None:
        self._stack = ExitStack()
        with closing_on_error(self):
            super().__init__(opened_session(self._stack, device), step)
            self.room_for(planes)

    def new_executor(self, batch: int, slots: int) -> Executor:
        """Return an executor whose inputs are zero: nothing writes the padding of rows, but kernels read it."""
        executor = super().new_executor(batch, slots)
        for slot in executor.slots:
            for memory in slot.inputs.values():
                memory[:] = 0
        return executor

    def run(self, reference: Floats, distorted: Floats, gradient: Floats | None = None) -> Doubles:
        """Return the mean of each scale's term of each plane, (P, scales), from two (P, H, W) float32 arrays of any strides.

        `gradient`, (P, H, W) float32 of any strides, receives the gradient of each plane by the distorted plane: that of the
        mean, if there is one scale, or of the plane's whole value, if there are several. It must be given if the engine was
        made for it.
        """
        check_fork()
        executor = self.room_for(len(distorted))
        means = np.empty((len(distorted), len(self.loss.weights)), np.float64)
        pending: list[tuple[Slot, int]] = []  # with the first plane
        for slot, start in zip(cycle(executor.slots), range(0, len(distorted), executor.batch)):
            if len(pending) == len(executor.slots):
                self._collect(executor, *pending.pop(0), means, gradient)
            count = min(executor.batch, len(distorted) - start)
            for name, planes in ((DISTORTED, distorted), (REFERENCE, reference)):
                self._view(slot.inputs[name])[:count] = planes[start : start + count]
            executor.submit(slot, count)
            pending.append((slot, start))
        for slot, start in pending:
            self._collect(executor, slot, start, means, gradient)
        return means

    def _collect(self, executor: Executor, slot: Slot, start: int, means: Doubles, gradient: Floats | None) -> None:
        count = executor.wait(slot)
        deficits = slot.outputs[MEANS][:count].view(np.float32).reshape(count, -1, 4)[..., 0]
        means[start : start + count] = 1.0 - deficits.astype(np.float64)
        if gradient is not None:
            gradient[start : start + count] = self._view(slot.outputs[GRADIENT])[:count]

    def _view(self, memory: Bytes) -> Floats:
        """Return a mapped buffer as (batch, H, W)."""
        return memory.view(np.float32).reshape(len(memory), self.loss.height, -1)[..., : self.loss.width]

    def close(self) -> None:
        """Wait for the device and destroy everything of the engine; a second call does nothing."""
        self.close_executor()
        self._stack.close()
