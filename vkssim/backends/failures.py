"""Devices that fail: what is tried again, and batches that fit into the memory."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from ..errors import DeviceError, DeviceLostError, DeviceMemoryError, SmallerBatchWarning
from ..host.device import Device
from ..host.plan import Plan, Role

Result = TypeVar("Result")

log = logging.getLogger("vkssim")
log.addHandler(logging.NullHandler())  # nothing is printed unless the program asks for it


class FailurePolicy:
    """The failures of one call or one task, and the policy: what is tried again on the same device, and with which batches.

    =================  =============================================================================================
    a device that      what happens
    =================  =============================================================================================
    is lost            It is reopened, once per call or task. It is lost for good at the second time.
    runs out of        Batches of half as many frames are used, down to one frame. If not even the first batch fits, the
    memory             backend has halved them already while it was opened.
    does not answer    It is not used again in this process: its work cannot be stopped.
    fails otherwise    Nothing is tried again: it would fail again.
    =================  =============================================================================================

    Work that came from a pipe is not tried again, because it cannot be read again. If there are several devices, the others
    take over the work of one that is lost or does not answer; see `engine.scheduler`.

    `batch` is the number of frames of a batch, None until it is known.
    """

    def __init__(self, batch: int | None = None) -> None:
        self.batch = batch
        self._lost = False

    def allows_another_try(self, error: BaseException) -> bool:
        """Return whether the work that ended with an error is tried again; `batch` is then smaller, if that may help."""
        if isinstance(error, DeviceLostError) and not self._lost:
            self._lost = True
            log.warning("the device is reopened: %s", error)
            return True
        if isinstance(error, DeviceMemoryError) and self.batch is not None and self.batch > 1:
            self.batch //= 2
            log.warning("batches of %d frames are tried: %s", self.batch, error)
            return True
        return False


def with_retries(action: Callable[[], Result]) -> Result:
    """Return the result of an action, which is called again if a device fails and the policy allows another try."""
    policy = FailurePolicy()
    while True:
        try:
            return action()
        except DeviceError as error:
            if not policy.allows_another_try(error):
                raise


# -- memory -----------------------------------------------------------------------------------------------------------


def largest_batch(device: Device, plan: Plan, slots: int) -> int:
    """Return the number of frames whose buffers the device can bind and could have memory for, at least 1.

    It is an upper bound from the limits of the device. The free memory usually holds fewer frames.
    """
    largest = max(spec.frame_bytes for spec in plan.buffers)
    of_frames = [spec for spec in plan.buffers if spec.role not in (Role.TABLE, Role.LEAD)]
    frame_bytes = sum(spec.frame_bytes * (1 if spec.role is Role.WORK else slots) for spec in of_frames)
    return max(1, min(device.info.max_storage_bytes // largest, device.memory_bytes // frame_bytes))


def fit_batch(
    device: Device,
    most: int,
    make: Callable[[int], Result],
    possible: int | None = None,
    make_room: Callable[[], bool] = lambda: False,
) -> tuple[Result, tuple[Warning, ...]]:
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
