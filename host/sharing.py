"""What another API of the same GPU is given: file descriptors of memory, and a semaphore to take turns by."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from .api import vk
from .device import Device
from .memory import OPAQUE_FD, Buffer


def memory_descriptor(device: Device, buffer: Buffer) -> int:
    """A new file descriptor of a SHARED buffer's memory, `buffer.memory_size` bytes; whoever imports it owns it."""
    info = vk.VkMemoryGetFdInfoKHR(memory=buffer.memory, handleType=OPAQUE_FD)
    descriptor: int = vk.load(device.handle, "vkGetMemoryFdKHR")(device.handle, info)
    return descriptor


class Timeline:
    """A semaphore that counts up, shared with another API; a device opened for sharing makes it.

    `descriptor` is its file descriptor, which whoever imports it owns.
    """

    def __init__(self, device: Device, stack: ExitStack) -> None:
        kind = vk.VkSemaphoreTypeCreateInfo(semaphoreType=vk.VK_SEMAPHORE_TYPE_TIMELINE, initialValue=0)
        export = vk.VkExportSemaphoreCreateInfo(pNext=kind, handleTypes=OPAQUE_FD)
        info = vk.VkSemaphoreCreateInfo(pNext=export)
        handle = vk.vkCreateSemaphore(device.handle, info, None)
        self.handle = device.own(stack, "semaphore", handle, vk.vkDestroySemaphore)
        descriptor_info = vk.VkSemaphoreGetFdInfoKHR(semaphore=self.handle, handleType=OPAQUE_FD)
        self.descriptor: int = vk.load(device.handle, "vkGetSemaphoreFdKHR")(device.handle, descriptor_info)


def submit_between(device: Device, commands: Any, turns: tuple[Timeline, int], done: tuple[Timeline, int]) -> None:
    """Run recorded commands once the first semaphore has come to its value, then bring the second to its value."""
    (wait, wait_value), (signal, signal_value) = turns, done
    values = vk.VkTimelineSemaphoreSubmitInfo(
        waitSemaphoreValueCount=1,
        pWaitSemaphoreValues=[wait_value],
        signalSemaphoreValueCount=1,
        pSignalSemaphoreValues=[signal_value],
    )
    submission = vk.VkSubmitInfo(
        pNext=values,
        pWaitSemaphores=[wait.handle],
        pWaitDstStageMask=[vk.VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT],
        pCommandBuffers=[commands],
        pSignalSemaphores=[signal.handle],
    )
    vk.vkQueueSubmit(device.queue, 1, [submission], None)
