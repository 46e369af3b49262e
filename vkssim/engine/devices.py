"""Choose the devices of this machine that score, and the Vulkan device of the GPU that a cluster assigned to a process."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from ..backends.open import check_backend
from ..errors import NoDeviceError, OptionError, UnsuitableDeviceError
from ..host.devices import NVIDIA, DeviceInfo, DeviceKind, choose_device, list_devices
from ..host.instance import shared_instance
from .options import Selector
from .task import WorkerSpec

_ALL = "all"


def chosen_devices(backend: str, device: Selector) -> list[DeviceInfo]:
    """Return the devices that ``"all"`` or a list names. Return an empty list for a single selector.

    ``"all"`` names every GPU that can be used, or the software device of a machine without such a GPU. A list may name a device
    twice. Raises OptionError for a backend that is unknown or has no devices, and DeviceError if a device is missing or
    cannot be used. A single selector is checked when its device is opened.
    """
    if device is None or isinstance(device, int):
        return []
    selectors = device.split(",") if isinstance(device, str) else device
    every = isinstance(device, str) and device.strip().lower() == _ALL
    if isinstance(device, str) and not every and len(selectors) == 1:
        return []
    check_backend(backend, device)
    devices = list_devices(shared_instance())
    if every:
        suitable = [device for device in devices if not device.lacks]
        gpus = [device for device in suitable if device.kind != DeviceKind.CPU]
        return gpus or suitable[:1] or [choose_device(devices)]
    if isinstance(device, str):
        with suppress(NoDeviceError):
            choose_device(devices, device)  # a name may have commas
            return []
    if not selectors:
        raise OptionError("the list of devices is empty; leave it out for the first GPU, or give 'all'")
    return [choose_device(devices, selector) for selector in selectors]


def spec_of(device: DeviceInfo, *, profile: bool = False) -> WorkerSpec:
    """Return the description of a worker on a device."""
    kind = "software" if device.kind == DeviceKind.CPU else "gpu"
    return WorkerSpec("vulkan", str(device.uuid), kind, f"{device.name} ({device.index})", profile)


_BY_UUID = "GPU-"


def device_of(devices: Sequence[DeviceInfo], assigned: Sequence[str] | None) -> DeviceInfo:
    """Return the device of the GPU that a cluster assigned to this process, or the software device if `assigned` is None.

    `assigned` has the entries of CUDA_VISIBLE_DEVICES, of which there must be one. The entry is ``"GPU-"`` and a UUID or the
    beginning of one, or an index into the GPUs in the order of their PCI addresses. If there are GPUs of NVIDIA's, the index
    counts only these, because clusters do not count the graphics unit of a CPU. Raises NoDeviceError if no device fits
    or several do, and UnsuitableDeviceError if that device lacks something that the shaders need.
    """
    software = [device for device in devices if device.kind is DeviceKind.CPU]
    found = software[:1] if assigned is None else _gpus(devices, assigned)
    if len(found) != 1:
        wanted = "software is wanted" if assigned is None else f"Ray assigned GPU {', '.join(assigned) or 'none'}"
        there_are = "; ".join(f"{device.name} (UUID {device.uuid}, PCI {device.pci})" for device in devices) or "none"
        raise NoDeviceError(f"{wanted}, which fits {len(found)} of Vulkan's devices. There are: {there_are}")
    (device,) = found
    if device.lacks:
        raise UnsuitableDeviceError(f"{device.description} cannot be used: it lacks {', '.join(device.lacks)}")
    return device


def _gpus(devices: Sequence[DeviceInfo], assigned: Sequence[str]) -> list[DeviceInfo]:
    if len(assigned) != 1:
        return []
    (entry,) = assigned
    gpus = [device for device in devices if device.kind is not DeviceKind.CPU]
    if entry.startswith(_BY_UUID):
        return [gpu for gpu in gpus if str(gpu.uuid).startswith(entry.removeprefix(_BY_UUID).lower())]
    counted = [gpu for gpu in gpus if gpu.vendor_id == NVIDIA] or gpus
    places = sorted({gpu.pci or "" for gpu in counted}, key=lambda place: (len(place), place))
    if "" in places or not entry.isdecimal() or int(entry) >= len(places):
        return []
    return [gpu for gpu in counted if gpu.pci == places[int(entry)]][:1]  # a second driver may list it again
