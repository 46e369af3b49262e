"""The size of a driver's subgroups: by lavapipe's width of vectors, or by VK_EXT_subgroup_size_control."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from vkssim.host.api import vk
from vkssim.host.device import Device
from vkssim.host.devices import DeviceInfo
from vkssim.host.vectors import WIDTH_VARIABLE

SIZES = (4, 8, 16, 32)
"""The sizes that are checked if a driver offers them."""

_LAVAPIPE_SIZES = (4, 8, 16)
_CONTROL_EXTENSION = "VK_EXT_subgroup_size_control"


def sizes_of(info: DeviceInfo) -> tuple[int, ...]:
    """Return the sizes that a device offers, those of SIZES alone if it offers several."""
    if info.is_lavapipe:
        return _LAVAPIPE_SIZES
    smallest, largest = _controlled(info)
    offered = tuple(size for size in SIZES if smallest <= size <= largest)
    return offered if len(offered) > 1 else (info.subgroup_size,)


def environment_of(info: DeviceInfo, size: int) -> dict[str, str]:
    """Return the variables with which a device has subgroups of a size."""
    return {WIDTH_VARIABLE: str(32 * size)} if info.is_lavapipe else {}


def _controlled(info: DeviceInfo) -> tuple[int, int]:
    """Return the smallest and the largest size that may be required of compute shaders; (0, 0) if none may."""
    extensions = {extension.extensionName for extension in vk.vkEnumerateDeviceExtensionProperties(info.physical, None)}
    if _CONTROL_EXTENSION not in extensions:
        return 0, 0
    sizes = vk.ffi.new(
        "VkPhysicalDeviceSubgroupSizeControlProperties*",
        {"sType": vk.VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES},
    )
    properties = vk.ffi.new("VkPhysicalDeviceProperties2*", {"sType": vk.VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2})
    properties.pNext = sizes
    vk.vkGetPhysicalDeviceProperties2(info.physical, properties)
    if not sizes.requiredSubgroupSizeStages & vk.VK_SHADER_STAGE_COMPUTE_BIT:
        return 0, 0
    return sizes.minSubgroupSize, sizes.maxSubgroupSize


@contextmanager
def required(info: DeviceInfo, size: int) -> Iterator[None]:
    """Give subgroups of a size to every kernel that is compiled within the context, on devices that are opened within it.

    Nothing changes if the device has subgroups of this size anyway. Raises ValueError for lavapipe, whose size is chosen
    by `environment_of` before the process starts.
    """
    if info.subgroup_size == size:
        yield
        return
    if info.is_lavapipe:
        raise ValueError(f"lavapipe has subgroups of {info.subgroup_size} here, and {WIDTH_VARIABLE} decides about {size}")
    feature = vk.VkPhysicalDeviceSubgroupSizeControlFeatures(subgroupSizeControl=1)
    extension = vk.ffi.new("char[]", _CONTROL_EXTENSION.encode())
    wanted = vk.VkPipelineShaderStageRequiredSubgroupSizeCreateInfo(requiredSubgroupSize=size)
    create_device, create_pipelines, begin = vk.vkCreateDevice, vk.vkCreateComputePipelines, Device.__init__

    def with_feature(physical: Any, create_info: Any, allocator: Any) -> Any:
        feature.pNext = create_info.pNext
        create_info.pNext = vk.ffi.cast("void *", vk.ffi.addressof(feature))
        count = create_info.enabledExtensionCount
        names = [create_info.ppEnabledExtensionNames[number] for number in range(count)]
        extensions = vk.ffi.new("char *[]", [*names, extension])
        create_info.enabledExtensionCount = count + 1
        create_info.ppEnabledExtensionNames = vk.ffi.cast("const char * const *", extensions)
        return create_device(physical, create_info, allocator)

    def with_size(device: Any, cache: Any, count: int, infos: list[Any], allocator: Any) -> Any:
        for create_info in infos:
            create_info.stage.pNext = vk.ffi.cast("void *", vk.ffi.addressof(wanted))
        return create_pipelines(device, cache, count, infos, allocator)

    def begin_with_size(self: Any, opened: DeviceInfo, **options: Any) -> None:
        begin(self, replace(opened, subgroup_size=size), **options)

    with (
        patch.object(vk, "vkCreateDevice", with_feature),
        patch.object(vk, "vkCreateComputePipelines", with_size),
        patch.object(Device, "__init__", begin_with_size),
    ):
        yield
