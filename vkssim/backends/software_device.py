"""Warn where a software device computes on a machine whose GPU Vulkan cannot use."""

from __future__ import annotations

import os
import uuid
from contextlib import suppress
from functools import cache

from ..host.devices import DEVICE_VARIABLE, DeviceInfo, DeviceKind, list_devices
from ..host.instance import shared_instance
from ..host.machine import Machine
from ..host.unusable_gpus import unusable_gpus


def software_warnings(device: DeviceInfo, selector: str | int | None) -> tuple[str, ...]:
    """Return a warning where `device` is a software device and a GPU is present that Vulkan cannot use; else nothing.

    There is no warning for a device that the user chose by its name. An index or a UUID is no such choice: another device may
    have the index where the GPU works, and vkssim itself hands UUIDs to its workers. `host.unusable_gpus` says which signs of a
    GPU count.
    """
    if device.kind is not DeviceKind.CPU or _is_name(selector):
        return ()
    gpus = [other for other in list_devices(shared_instance()) if other.kind is not DeviceKind.CPU]
    if any(not gpu.lacks for gpu in gpus):  # the user passed over a GPU that works
        return ()
    reasons = [f"{gpu.description} lacks {', '.join(gpu.lacks)}" for gpu in gpus] or _unusable_gpus()
    if not reasons:
        return ()
    name = device.name.split(maxsplit=1)[0]
    return (
        f"{device.name} computes in software, although a GPU is present: {'; '.join(reasons)}. `vkssim doctor` says how to mend"
        f" it, and `device={name}` uses this device without the warning",
    )


@cache
def _unusable_gpus() -> tuple[str, ...]:
    """Return what `unusable_gpus` finds on this machine; it is looked for once for each process."""
    return tuple(unusable_gpus(Machine()))


def _is_name(selector: str | int | None) -> bool:
    text = str(os.environ.get(DEVICE_VARIABLE, "") if selector is None else selector).strip()
    with suppress(ValueError):
        uuid.UUID(text)
        return False
    return text != "" and not text.isdecimal()
