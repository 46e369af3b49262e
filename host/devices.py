"""List the Vulkan devices, check which of them are usable, and choose one."""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import pairwise
from typing import Any

from .api import vk
from .errors import INSTALL_DRIVER, NoDeviceError, UnsuitableDeviceError
from .instance import Instance

DEVICE_VARIABLE = "VKSSIM_DEVICE"
"""The environment variable that chooses a device if no argument does."""

NVIDIA = 0x10DE
"""The PCI number of NVIDIA as a vendor."""

_MAX_SHOWN = 80
_LAVAPIPE = "llvmpipe"  # the name of its device begins so in every version of Mesa
_MIN_API = (1, 1)
_MIN_WORKGROUP = 256
_MIN_SHARED_BYTES = 24576


class DeviceKind(IntEnum):
    """Vulkan's device types, in the order in which they are preferred."""

    DISCRETE = 0
    INTEGRATED = 1
    VIRTUAL = 2
    OTHER = 3
    CPU = 4


_KINDS = dict(enumerate((DeviceKind.OTHER, DeviceKind.INTEGRATED, DeviceKind.DISCRETE, DeviceKind.VIRTUAL, DeviceKind.CPU)))
"""The kinds by VkPhysicalDeviceType."""


@dataclass(frozen=True)
class DeviceInfo:
    """The properties of a physical device that are known before it is opened."""

    index: int
    """The place in order of preference: GPUs before software, lavapipe before other software."""
    name: str
    kind: DeviceKind
    uuid: uuid.UUID
    """It stays the same between runs."""
    pci: str | None
    """The PCI address, such as ``"0000:3b:00.0"``; None if the driver does not report it."""
    vendor_id: int
    device_id: int
    api_version: tuple[int, int, int]
    driver_version: int
    driver: str
    extensions: frozenset[str]
    subgroup_size: int
    max_storage_bytes: int
    timestamp_period_ns: float
    lacks: tuple[str, ...]
    """The missing requirements; empty for a usable device."""
    physical: Any

    @property
    def description(self) -> str:
        """Return name and driver on one line, as in reports."""
        return f"{self.name}, {self.driver}"

    @property
    def cache_name(self) -> str:
        """Return the stem of the names of files that are valid for this device, its driver and its subgroups alone."""
        return f"{self.uuid.hex}-{self.driver_version:08x}-{self.subgroup_size}"

    @property
    def is_lavapipe(self) -> bool:
        """Return True for the device of lavapipe, Mesa's software driver."""
        return self.kind is DeviceKind.CPU and self.name.startswith(_LAVAPIPE)


def list_devices(instance: Instance) -> list[DeviceInfo]:
    """Return all devices of the instance; order and indices are the same on every call.

    Discrete GPUs come first and software last, with lavapipe before other software, such as SwiftShader, which is slower.
    """
    described = [_describe(physical) for physical in vk.vkEnumeratePhysicalDevices(instance.handle)]
    described.sort(key=lambda device: (device.kind, not device.is_lavapipe))
    return [replace(device, index=index) for index, device in enumerate(described)]


def _describe(physical: Any) -> DeviceInfo:
    ffi = vk.ffi
    base = vk.vkGetPhysicalDeviceProperties(physical)
    api_version = (base.apiVersion >> 22 & 0x7F, base.apiVersion >> 12 & 0x3FF, base.apiVersion & 0xFFF)
    names = (extension.extensionName for extension in vk.vkEnumerateDeviceExtensionProperties(physical, None))
    extensions = frozenset(names)

    subgroup, identity, driver, place, properties = (
        ffi.new(f"{struct}*", {"sType": kind})
        for struct, kind in (
            ("VkPhysicalDeviceSubgroupProperties", vk.VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES),
            ("VkPhysicalDeviceIDProperties", vk.VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES),
            ("VkPhysicalDeviceDriverProperties", vk.VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES),
            ("VkPhysicalDevicePCIBusInfoPropertiesEXT", vk.VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT),
            ("VkPhysicalDeviceProperties2", vk.VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2),
        )
    )

    pci = None
    if api_version >= _MIN_API:
        has_driver = api_version >= (1, 2) or "VK_KHR_driver_properties" in extensions
        has_place = "VK_EXT_pci_bus_info" in extensions
        for struct, following in pairwise([properties, identity, subgroup, *[driver] * has_driver, *[place] * has_place]):
            struct.pNext = following
        vk.vkGetPhysicalDeviceProperties2(physical, properties)
        if has_place:
            pci = f"{place.pciDomain:04x}:{place.pciBus:02x}:{place.pciDevice:02x}.{place.pciFunction:x}"

    driver_words = [ffi.string(text).decode(errors="replace") for text in (driver.driverName, driver.driverInfo)]
    return DeviceInfo(
        index=0,  # until all devices are sorted
        name=base.deviceName,
        kind=_KINDS.get(base.deviceType, DeviceKind.OTHER),
        uuid=uuid.UUID(bytes=bytes(ffi.buffer(identity.deviceUUID))),
        pci=pci,
        vendor_id=base.vendorID,
        device_id=base.deviceID,
        api_version=api_version,
        driver_version=base.driverVersion,
        driver=" ".join(word for word in driver_words if word) or f"driver {base.driverVersion:#x}",
        extensions=extensions,
        subgroup_size=subgroup.subgroupSize,
        max_storage_bytes=base.limits.maxStorageBufferRange,
        timestamp_period_ns=base.limits.timestampPeriod,
        lacks=tuple(_missing(physical, base.limits, api_version, subgroup)),
        physical=physical,
    )


def _missing(physical: Any, limits: Any, api_version: tuple[int, int, int], subgroup: Any) -> list[str]:
    if api_version < _MIN_API:
        return [f"Vulkan 1.1 (it offers {api_version[0]}.{api_version[1]})"]
    missing = []
    families = vk.vkGetPhysicalDeviceQueueFamilyProperties(physical)
    if not any(family.queueFlags & vk.VK_QUEUE_COMPUTE_BIT for family in families):
        missing.append("a compute queue")
    in_compute = subgroup.supportedStages & vk.VK_SHADER_STAGE_COMPUTE_BIT
    needed = vk.VK_SUBGROUP_FEATURE_ARITHMETIC_BIT | vk.VK_SUBGROUP_FEATURE_SHUFFLE_BIT
    if not in_compute or needed & ~subgroup.supportedOperations:
        missing.append("subgroup arithmetic and shuffles in compute shaders")
    if limits.maxComputeWorkGroupInvocations < _MIN_WORKGROUP:
        missing.append(f"workgroups of {_MIN_WORKGROUP} (at most {limits.maxComputeWorkGroupInvocations})")
    if limits.maxComputeSharedMemorySize < _MIN_SHARED_BYTES:
        missing.append(f"{_MIN_SHARED_BYTES} bytes of shared memory (it has {limits.maxComputeSharedMemorySize})")
    return missing


def choose_device(devices: Sequence[DeviceInfo], selector: str | int | None = None) -> DeviceInfo:
    """Return the device for a selector: an index of `list_devices`, part of a name, or a UUID.

    None uses the environment variable VKSSIM_DEVICE. If it is not set, the first usable device is chosen. Raises NoDeviceError
    if there is no device, or if none matches, with a list of the existing ones; and UnsuitableDeviceError if the chosen device
    lacks something that the shaders need.
    """
    if not devices:
        raise no_device()
    origin = "device"
    if selector is None:
        selector, origin = os.environ.get(DEVICE_VARIABLE) or None, DEVICE_VARIABLE
    if selector is None:
        suitable = next((device for device in devices if not device.lacks), devices[0])
    else:
        suitable = _match(devices, str(selector).strip(), origin)
    if suitable.lacks:
        raise UnsuitableDeviceError(f"{suitable.description} cannot be used: it lacks {', '.join(suitable.lacks)}")
    return suitable


def no_device() -> NoDeviceError:
    """Return the error for a machine on which Vulkan lists no device."""
    return NoDeviceError(f"no Vulkan device found. {INSTALL_DRIVER}")


def _match(devices: Sequence[DeviceInfo], selector: str, origin: str) -> DeviceInfo:
    text = selector.lower()
    if text.isdecimal():  # a number is only an index: the names of many drivers contain numbers such as 15
        matches = [device for device in devices if str(device.index) == (text.lstrip("0") or "0")]
    else:
        matches = [device for device in devices if text and (text == str(device.uuid) or text in device.name.lower())]
    if not matches:
        there_are = "; ".join(f"{device.index}: {device.name} ({device.uuid})" for device in devices)
        raise NoDeviceError(
            f"{origin} {selector[:_MAX_SHOWN]!r} matches no device by index, name or UUID. There are: {there_are}"
        )
    return matches[0]
