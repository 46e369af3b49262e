"""Wait until a device has finished submissions, and give up one that does not answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .api import vk
from .device import Device
from .errors import DeviceTimeoutError
from .timeouts import SLICE_SECONDS, TIMEOUT_VARIABLE


def check_answering(device: Device) -> None:
    """Raise DeviceTimeoutError for a device that did not answer before."""
    if device.abandoned:
        raise DeviceTimeoutError(f"{device.info.name} has stopped answering; choose another device")


def wait_for_fences(device: Device, fences: Sequence[Any], timeout: float, work: str) -> None:
    """Wait until all fences are signalled.

    Raises DeviceTimeoutError, which names the `work`, if they are not within `timeout` seconds. The device is abandoned then.
    """
    # Slices are counted, not seconds: the time during which a process was stopped does not count as waiting.
    for _ in range(math.ceil(timeout / SLICE_SECONDS)):
        check_answering(device)
        try:
            vk.vkWaitForFences(device.handle, len(fences), fences, vk.VK_TRUE, int(SLICE_SECONDS * 1e9))
        except vk.module.VkTimeout:
            continue
        return
    device.abandon()
    raise DeviceTimeoutError(
        f"{device.info.name} did not finish {work} in {timeout:g} s. If it is only slow, {TIMEOUT_VARIABLE}=SECONDS gives it"
        " longer; if it hangs, choose another device or restart its driver"
    )
