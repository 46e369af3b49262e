"""Share memory with another API of the same GPU, by file descriptors, and synchronise with it by semaphores."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, Protocol

from .api import vk
from .device import Device
from .memory import OPAQUE_FD, Buffer, MemoryClass


class ExternalInputs(Protocol):
    """Another API of the GPU that writes the input buffers of a plan, so that the host need not."""

    memory_class: MemoryClass
    """The class of the memory that both can reach."""
    timeline: Any
    """The handle of a timeline semaphore that the API counts up when it has written; see `Executor.submit`."""

    def address(self, stack: ExitStack, buffer: Buffer) -> int:
        """Return the address of a buffer for the API. The stack ends its use."""
        ...


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


class TimelineSubmitter:
    """Submissions between two timelines: each waits until the first reaches a number, and then sets the second to this number.

    `wait` and `signal` are the semaphores' handles; without `signal` a submission only waits. The structs of a submission are
    made once, because the other API waits while the host submits.
    """

    def __init__(self, device: Device, wait: Any, signal: Any = None) -> None:
        ffi = vk.ffi
        signals = 0 if signal is None else 1
        self._queue = device.queue
        self._number = ffi.new("uint64_t[1]")
        self._commands = ffi.new("VkCommandBuffer[1]")
        self._handles = ffi.new("VkSemaphore[2]", [wait, ffi.NULL if signal is None else signal])
        self._stage = ffi.new("VkPipelineStageFlags[1]", [vk.VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT])
        self._numbers = ffi.new(
            "VkTimelineSemaphoreSubmitInfo*",
            {
                "sType": vk.VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
                "waitSemaphoreValueCount": 1,
                "pWaitSemaphoreValues": self._number,
                "signalSemaphoreValueCount": signals,
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
                "signalSemaphoreCount": signals,
                "pSignalSemaphores": self._handles + 1,
            },
        )

    def submit(self, commands: Any, number: int, fence: Any = None) -> None:
        """Submit recorded commands for turn `number`, which never falls from call to call."""
        self._number[0] = number
        self._commands[0] = commands
        vk.vkQueueSubmit(self._queue, 1, self._submission, fence)
