"""Buffers, with memory of the type that fits their use."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import ExitStack
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

from .api import vk
from .device import Device
from .errors import DeviceMemoryError

OPAQUE_FD = 0x1
"""VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT, and the same of semaphores: the handle is a file descriptor."""

_WHOLE_SIZE = 2**64 - 1
"""VK_WHOLE_SIZE. The binding defines it as -1, which it then refuses."""


class MemoryClass(Enum):
    """The use of a buffer's memory."""

    WORK = "written and read by kernels only"
    UPLOAD = "written by the host in order, read by a copy or by kernels"
    READBACK = "written by kernels, read by the host: cached, or every read crosses the bus"
    SHARED = "as WORK, and exported to another API (host/sharing.py)"


def _memory_type(device: Device, allowed_bits: int, memory_class: MemoryClass) -> tuple[int, int]:
    """Return index and flags of the best memory type: the first list of wishes that an allowed type fulfils completely."""
    local, visible = vk.VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, vk.VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT
    coherent, cached = vk.VK_MEMORY_PROPERTY_HOST_COHERENT_BIT, vk.VK_MEMORY_PROPERTY_HOST_CACHED_BIT
    if memory_class in (MemoryClass.WORK, MemoryClass.SHARED):
        wishes = [local, 0]
    elif memory_class is MemoryClass.UPLOAD:
        wishes = [visible | coherent | (local if device.unified else 0), visible | coherent]
    else:
        wishes = [visible | cached | coherent, visible | cached, visible | coherent]

    types = device.memory_properties.memoryTypes
    for wish in wishes:
        for index in range(device.memory_properties.memoryTypeCount):
            flags = types[index].propertyFlags
            # A discrete GPU has little memory that the host can see, so staging does not use it.
            unwanted = memory_class is MemoryClass.UPLOAD and not device.unified and flags & local
            if allowed_bits >> index & 1 and flags & wish == wish and not unwanted:
                return index, flags
    raise DeviceMemoryError(f"{device.info.name} has no memory for a buffer that is {memory_class.value}")


def _created_size(device: Device, size: int) -> int:
    """Return the size to create a buffer with, so that lavapipe compiles a kernel that reads texels once for all sizes.

    Mesa 22.3 compiles it again, in seconds, for a buffer whose size is a power of two, and for one whose size has only zeros
    in bits 8 to 15, which it takes for the levels of a picture.
    """
    if not device.info.is_lavapipe or (size & 0xFF00 and size & (size - 1)):
        return size
    return min(size + 0x500, device.info.max_storage_bytes)  # the sum is of neither kind


class Buffer:
    """A storage buffer with its own memory. The stack that is passed destroys both.

    `families` are the queue families that use it, if there are several. `mapped` is its memory as (size,) uint8, or None if the
    host cannot see it. Raises DeviceMemoryError if `size` is more than the device has or can bind.
    """

    def __init__(
        self, device: Device, stack: ExitStack, size: int, memory_class: MemoryClass, families: Collection[int] = ()
    ) -> None:
        limit = device.info.max_storage_bytes
        if size > limit:
            raise DeviceMemoryError(
                f"a buffer of {size} bytes is more than the {limit} that {device.info.name} can bind; choose a smaller batch"
                " or smaller frames"
            )

        self.size = size
        self._created_size = _created_size(device, size)
        self._device = device
        self._stack = stack
        self._texel_view: Any = None

        usage = (
            vk.VK_BUFFER_USAGE_STORAGE_BUFFER_BIT
            | vk.VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT
            | vk.VK_BUFFER_USAGE_TRANSFER_SRC_BIT
            | vk.VK_BUFFER_USAGE_TRANSFER_DST_BIT
        )
        shared = memory_class is MemoryClass.SHARED
        external = vk.VkExternalMemoryBufferCreateInfo(handleTypes=OPAQUE_FD) if shared else None
        info = vk.VkBufferCreateInfo(
            pNext=external,
            size=self._created_size,
            usage=usage,
            sharingMode=vk.VK_SHARING_MODE_CONCURRENT if len(families) > 1 else vk.VK_SHARING_MODE_EXCLUSIVE,
            pQueueFamilyIndices=list(families) if len(families) > 1 else None,
        )
        self.handle = device.create(stack, "Buffer", info)

        requirements = vk.vkGetBufferMemoryRequirements(device.handle, self.handle)
        index, flags = _memory_type(device, requirements.memoryTypeBits, memory_class)
        dedicated = vk.VkMemoryDedicatedAllocateInfo(buffer=self.handle) if shared else None
        export = vk.VkExportMemoryAllocateInfo(pNext=dedicated, handleTypes=OPAQUE_FD) if shared else None
        allocation = vk.VkMemoryAllocateInfo(pNext=export, allocationSize=requirements.size, memoryTypeIndex=index)
        self.memory_size: int = requirements.size
        memory = vk.vkAllocateMemory(device.handle, allocation, None)
        self.memory = device.own(stack, "Memory", memory, vk.vkFreeMemory, requirements.size)
        vk.vkBindBufferMemory(device.handle, self.handle, memory, 0)

        self.mapped: npt.NDArray[np.uint8] | None = None
        self._stale_range: Any = None
        if memory_class in (MemoryClass.UPLOAD, MemoryClass.READBACK):
            view = vk.vkMapMemory(device.handle, memory, 0, size, 0)
            self.mapped = np.frombuffer(view, np.uint8)
            device.unless_abandoned(stack, vk.vkUnmapMemory, device.handle, memory)
            if not flags & vk.VK_MEMORY_PROPERTY_HOST_COHERENT_BIT:
                self._stale_range = vk.VkMappedMemoryRange(memory=memory, offset=0, size=_WHOLE_SIZE)

    def texel_view(self) -> Any:
        """Return a view of the whole buffer as texels of four uint32, made at the first call."""
        if self._texel_view is None:
            info = vk.VkBufferViewCreateInfo(
                buffer=self.handle, format=vk.VK_FORMAT_R32G32B32A32_UINT, offset=0, range=self._created_size
            )
            self._texel_view = self._device.create(self._stack, "BufferView", info)
        return self._texel_view

    def refresh(self) -> None:
        """Make the device's writes visible through `mapped`; coherent memory needs no call and costs nothing."""
        if self._stale_range is not None:
            vk.vkInvalidateMappedMemoryRanges(self._device.handle, 1, [self._stale_range])
