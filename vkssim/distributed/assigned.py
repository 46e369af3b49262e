"""Find the Vulkan device of the GPU that a cluster assigned to a process."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import NoDeviceError, UnsuitableDeviceError
from ..host.devices import DeviceInfo, DeviceKind

_NVIDIA = 0x10DE
_BY_UUID = "GPU-"


def device_of(devices: Sequence[DeviceInfo], assigned: Sequence[str] | None) -> DeviceInfo:
    """Return the device of the GPU that a cluster assigned to this process, or the software device if `assigned` is None.

    `assigned` has the entries of CUDA_VISIBLE_DEVICES, of which there must be one. The entry is ``"GPU-"`` and a UUID or the
    beginning of one, or an index into the GPUs in the order of their PCI addresses. If there are GPUs of NVIDIA's, the index
    counts only these, because clusters do not count the graphics unit of a processor.

    Raises
    ------
    NoDeviceError
        No device fits, or several do; the message names the assigned GPU and the devices that were found.
    UnsuitableDeviceError
        That device lacks something that the shaders need.

    """
    found = _software(devices) if assigned is None else _gpus(devices, assigned)
    if len(found) != 1:
        wanted = "software is wanted" if assigned is None else f"Ray assigned GPU {', '.join(assigned) or 'none'}"
        there_are = "; ".join(f"{device.name} (UUID {device.uuid}, PCI {device.pci})" for device in devices) or "none"
        raise NoDeviceError(f"{wanted}, which fits {len(found)} of Vulkan's devices. There are: {there_are}")
    (device,) = found
    if device.lacks:
        raise UnsuitableDeviceError(f"{device.description} cannot be used: it lacks {', '.join(device.lacks)}")
    return device


def _software(devices: Sequence[DeviceInfo]) -> list[DeviceInfo]:
    return [device for device in devices if device.kind is DeviceKind.CPU][:1]


def _gpus(devices: Sequence[DeviceInfo], assigned: Sequence[str]) -> list[DeviceInfo]:
    if len(assigned) != 1:
        return []
    (entry,) = assigned
    gpus = [device for device in devices if device.kind is not DeviceKind.CPU]
    if entry.startswith(_BY_UUID):
        return [gpu for gpu in gpus if str(gpu.uuid).startswith(entry.removeprefix(_BY_UUID).lower())]
    counted = [gpu for gpu in gpus if gpu.vendor_id == _NVIDIA] or gpus
    places = sorted({gpu.pci or "" for gpu in counted}, key=lambda place: (len(place), place))
    if "" in places or not entry.isdecimal() or int(entry) >= len(places):
        return []
    return [gpu for gpu in counted if gpu.pci == places[int(entry)]][:1]  # a second driver may list it again
