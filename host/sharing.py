"""Share memory with another API of the same GPU, by file descriptors, and synchronise with it by semaphores."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from .api import vk
from .device import Device
from .memory import OPAQUE_FD, Buffer


def memory_descriptor(device: Device, buffer: Buffer) -> int:
    """Return a new file descriptor of a SHARED buffer's memory, `buffer.memory_size` bytes. The importer owns it."""
    info = vk.VkMemoryGetFdInfoKHR(memory=buffer.memory, handleType=OPAQUE_FD)
    descriptor: int = vk.load(device.handle, "vkGetMemoryFdKHR")(device.handle, info)
    return descriptor


class Timeline:
    """A timeline semaphore that is shared with another API. The device must have been opened for sharing.

    `descriptor` is its file descriptor. The importer owns it.
    """

    def __init__(self, device: Device, stack: ExitStack) -> None:
        kind = vk.VkSemaphoreTypeCreateInfo(semaphoreType=vk.VK_SEMAPHORE_TYPE_TIMELINE, initialValue=0)
        export = vk.VkExportSemaphoreCreateInfo(pNext=kind, handleTypes=OPAQUE_FD)
        info = vk.VkSemaphoreCreateInfo(pNext=export)
        handle = vk.vkCreateSemaphore(device.handle, info, None)
        self.handle = device.own(stack, "semaphore", handle, vk.vkDestroySemaphore)
        descriptor_info = vk.VkSemaphoreGetFdInfoKHR(semaphore=self.handle, handleType=OPAQUE_FD)
        self.descriptor: int = vk.load(device.handle, "vkGetSemaphoreFdKHR")(device.handle, descriptor_info)


class Turns:
    """Submissions between two timelines: each waits until the first reaches a number, and then sets the second to this number.

    The structs of a submission are made once, because the other API waits while the host submits.
    """

    def __init__(self, device: Device, wait: Timeline, signal: Timeline) -> None:
        ffi = vk.ffi
        self._queue = device.queue
        self._number = ffi.new("uint64_t[1]")
        self._commands = ffi.new("VkCommandBuffer[1]")
        self._handles = ffi.new("VkSemaphore[2]", [wait.handle, signal.handle])
        self._stage = ffi.new("VkPipelineStageFlags[1]", [vk.VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT])
        self._numbers = ffi.new(
            "VkTimelineSemaphoreSubmitInfo*",
            {
                "sType": vk.VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
                "waitSemaphoreValueCount": 1,
                "pWaitSemaphoreValues": self._number,
                "signalSemaphoreValueCount": 1,
                "pSignalSemaphoreValues": self._number,
            },
        )
        self._submission = ffi.new(
            "VkSubmitInfo*",
            {
                "sType": vk.VK_STRUCTURE_TYPE_SUBMIT_INFO,
                "pNext": self._numbers,
                "waitSemaphoreCount": 1,
                "pWaitSemaphores": self._handles,
                "pWaitDstStageMask": self._stage,
                "commandBufferCount": 1,
                "pCommandBuffers": self._commands,
                "signalSemaphoreCount": 1,
                "pSignalSemaphores": self._handles + 1,
            },
        )

    def submit(self, commands: Any, number: int) -> None:
        """Submit recorded commands for turn `number`, which grows from call to call."""
        self._number[0] = number
        self._commands[0] = commands
        vk.vkQueueSubmit(self._queue, 1, self._submission, None)
