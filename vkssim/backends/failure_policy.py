"""The policy for devices that fail: what is tried again on the same device, how often, and with which batches.

=================  =================================================================================================
a device that      what happens
=================  =================================================================================================
is lost            It is opened again, once for each run, call or task. It is lost for good at the second time.
runs out of        Batches of half as many frames are used, down to one frame. Where not even the first batch fits, the
memory             backend has halved them already while it was opened.
does not answer    It is not used again in this process: what runs on it cannot be stopped.
fails otherwise    Nothing is tried again: it would fail again.
=================  =================================================================================================

Work that came from a pipe is not tried again, because it cannot be read again. Where there are several devices, another one
takes over what a lost device or one that does not answer had on its way; see `distributed.scheduler`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from ..errors import DeviceError, DeviceLostError, DeviceMemoryError
from ..features.plane_metrics import PlaneMetrics
from .base import Backend

Result = TypeVar("Result")


class FailurePolicy:
    """Decides about the failures of one run, one call or one task.

    `batch` is how many frames a batch has, None until that is known. `losses` is how often the device may be lost: a worker
    among several gives its task back at the first loss.
    """

    def __init__(self, batch: int | None = None, losses: int = 1) -> None:
        self.batch = batch
        self._losses = losses

    def allows_another_try(self, error: BaseException) -> bool:
        """Return whether the work that ended with an error is tried again; `batch` is smaller then, where that may help."""
        if isinstance(error, DeviceLostError) and self._losses:
            self._losses -= 1
            return True
        if isinstance(error, DeviceMemoryError) and self.batch is not None and self.batch > 1:
            self.batch //= 2
            return True
        return False


class BackendOpener:
    """Opens the backend of a run, as often as it takes, with the batches that the policy allows."""

    def __init__(self, open_backend: Callable[..., Backend], policy: FailurePolicy) -> None:
        self._open = open_backend
        self.policy = policy

    def __call__(self, planes: Sequence[PlaneMetrics]) -> Backend:
        """Return the backend for planes and their metrics; the policy knows the size of its batches from then on."""
        backend = self._open(planes, batch=self.policy.batch)
        self.policy.batch = backend.batch_size
        return backend


def tried_again(work: Callable[[], Result]) -> Result:
    """Return what `work` gives, which opens what it needs. It is called again as often as the policy allows."""
    policy = FailurePolicy()
    while True:
        try:
            return work()
        except DeviceError as error:
            if not policy.allows_another_try(error):
                raise
