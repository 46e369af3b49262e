"""What can go wrong on a device, and the base of every error of the package (`vkssim.errors` has the whole table)."""

from __future__ import annotations

from typing import Any


class VkssimError(Exception):
    """Base of every error that this package raises on purpose. The message says what was got, the limit and what to do.

    `report` holds what was scored before a run of `score_files` went wrong; None where nothing was.
    """

    report: Any = None


class DeviceError(VkssimError):
    """No device can be used, or the one in use failed."""


class NoLoaderError(DeviceError):
    """The Vulkan loader or the binding to it is not installed."""


class NoDeviceError(DeviceError):
    """There is no Vulkan device, or none that matches the selection."""


class UnsuitableDeviceError(DeviceError):
    """The chosen device lacks something that the shaders need."""


class DeviceMemoryError(DeviceError):
    """A buffer does not fit: the device is out of memory, or the buffer is larger than the device can bind."""


class DeviceLostError(DeviceError):
    """The driver gave up on the device; everything on it has to be made again."""


class DeviceTimeoutError(DeviceError):
    """A submission did not finish in the time allowed."""


class ForkError(DeviceError):
    """A process forked from one that had opened Vulkan wants to use it; only spawned processes can."""


class WrongNumbersError(DeviceError):
    """The device gives other numbers than are known to be right; nothing else that it computes can be believed."""


class ValidationError(DeviceError):
    """The Khronos validation layer had something to say."""
