"""The errors of devices, the base class of all errors of the package (`vkssim.errors` has the whole table), and the log."""

from __future__ import annotations

import logging
from typing import Any

LOG = logging.getLogger("vkssim")
"""The log of the package: devices lost, runs repeated, decoders chosen."""

LOG.addHandler(logging.NullHandler())  # Python would print warnings on standard error if the caller has no handler

COMPILE_LOG = LOG.getChild("compile")
"""The log of long compilations, which commands show on a terminal."""

DOCTOR = "Run `vkssim doctor` for a fix"
"""The advice in each message about a missing Vulkan loader, driver or device; doctor has it for each distribution."""

INSTALL_DRIVER = f"`apt install mesa-vulkan-drivers` installs one for any CPU on Debian and Ubuntu. {DOCTOR}"
"""The advice if there is no driver or no device."""


class VkssimError(Exception):
    """Base class of all errors of this package. A message says what was given, what the limit is, and what to do.

    `report` has the scores that a run of `score_files` finished before the error; it is None if there are none.
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
    """A process uses Vulkan although it was forked from a process that had opened it; only spawned processes can."""


class WrongNumbersError(DeviceError):
    """The device computed wrong numbers in the self-test, so none of its numbers can be trusted."""


class ValidationError(DeviceError):
    """The Khronos validation layer reported messages."""
