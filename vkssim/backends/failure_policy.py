"""The policy for devices that fail: which work is tried again on the same device, how often, and with which batches.

=================  =================================================================================================
a device that      what happens
=================  =================================================================================================
is lost            It is opened again, once for each call or task. It is lost for good at the second time.
runs out of        Batches of half as many frames are used, down to one frame. If not even the first batch fits, the
memory             backend has halved them already while it was opened.
does not answer    It is not used again in this process: its work cannot be stopped.
fails otherwise    Nothing is tried again: it would fail again.
=================  =================================================================================================

Work that came from a pipe is not tried again, because it cannot be read again. If there are several devices, the others
take over the work of one that is lost or does not answer; see `distributed.scheduler`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ..errors import DeviceError, DeviceLostError, DeviceMemoryError

Result = TypeVar("Result")


class FailurePolicy:
    """The failures of one call or one task. `batch` is the number of frames of a batch, None until it is known."""

    def __init__(self, batch: int | None = None) -> None:
        self.batch = batch
        self._lost = False

    def allows_another_try(self, error: BaseException) -> bool:
        """Return whether the work that ended with an error is tried again; `batch` is then smaller, if that may help."""
        if isinstance(error, DeviceLostError) and not self._lost:
            self._lost = True
            return True
        if isinstance(error, DeviceMemoryError) and self.batch is not None and self.batch > 1:
            self.batch //= 2
            return True
        return False


def tried_again(work: Callable[[], Result]) -> Result:
    """Return the result of `work`, which opens its device itself. It is called again as often as the policy allows."""
    policy: FailurePolicy | None = None
    while True:
        try:
            return work()
        except DeviceError as error:
            policy = policy or FailurePolicy()
            if not policy.allows_another_try(error):
                raise
