"""Share memory with another API of the same GPU, by file descriptors, and synchronise with it by semaphores."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, NamedTuple

from .api import vk
from .device import Device
from .memory import OPAQUE_FD, Buffer


def memory_descriptor(device: Device, buffer: Buffer) -> int:
    """Return a new file descriptor of a SHARED buffer's memory, `buffer.memory_size` bytes. The importer owns it."""
    info = vk.VkMemoryGetFdInfoKHR(memory=buffer.memory, handleType=OPAQUE_FD)
    descriptor: int = vk.load(device.handle, "vkGetMemoryFdKHR")(device.handle, info)
    return descriptor


def timeline(device: Device, stack: ExitStack) -> tuple[Any, int]:
    """Return a timeline semaphore for another API, and its file descriptor, which the importer owns.

    The device must have been opened for sharing.
    """
    kind = vk.VkSemaphoreTypeCreateInfo(semaphoreType=vk.VK_SEMAPHORE_TYPE_TIMELINE, initialValue=0)
    export = vk.VkExportSemaphoreCreateInfo(pNext=kind, handleTypes=OPAQUE_FD)
    handle = device.create(stack, "Semaphore", vk.VkSemaphoreCreateInfo(pNext=export))
    info = vk.VkSemaphoreGetFdInfoKHR(semaphore=handle, handleType=OPAQUE_FD)
    return handle, vk.load(device.handle, "vkGetSemaphoreFdKHR")(device.handle, info)


class Timelines(NamedTuple):
    """The handles of two timeline semaphores that another API shares.

    Submissions wait until the API has set `handed` to a number, and set `returned` to this number when they are done. None if
    the API does not wait for them.
    """

    handed: Any
    returned: Any = None


class TimelineSubmitter:
    """Submissions between two timelines. Their structs are made once, because the other API waits while the host submits."""

    def __init__(self, device: Device, timelines: Timelines) -> None:
        ffi = vk.ffi
        wait, signal = timelines
        self._device, self._returned = device, signal
        self._counter = vk.load(device.handle, "vkGetSemaphoreCounterValueKHR")
        self._number = ffi.new("uint64_t[1]")
        self._commands = ffi.new("VkCommandBuffer[1]")
        self._handles = ffi.new("VkSemaphore[2]", [wait, ffi.NULL if signal is None else signal])
        self._stage = ffi.new("VkPipelineStageFlags[1]", [vk.VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT])
        self._numbers = ffi.new(
            "VkTimelineSemaphoreSubmitInfo*",
            {
                "sType": vk.VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
                "pWaitSemaphoreValues": self._number,
                "pSignalSemaphoreValues": self._number,
            },
        )
        self._submission = ffi.new(
            "VkSubmitInfo*",
            {
                "sType": vk.VK_STRUCTURE_TYPE_SUBMIT_INFO,
                "pNext": self._numbers,
                "pWaitSemaphores": self._handles,
                "pWaitDstStageMask": self._stage,
                "commandBufferCount": 1,
                "pCommandBuffers": self._commands,
                "pSignalSemaphores": self._handles + 1,
            },
        )

    def submit(self, commands: Any, turn: int, fence: Any = None, *, waits: bool = True, signals: bool = False) -> None:
        """Submit recorded commands, which wait for the number `turn`, or set it. It never falls from call to call."""
        self._number[0] = turn
        self._commands[0] = commands
        self._submission.waitSemaphoreCount = self._numbers.waitSemaphoreValueCount = waits
        self._submission.signalSemaphoreCount = self._numbers.signalSemaphoreValueCount = signals
        self._device.submit(self._device.queue, self._submission, fence)

    def is_done(self, turn: int) -> bool:
        """Return whether the submissions that set the number `turn` are done."""
        reached: int = self._counter(self._device.handle, self._returned)
        return reached >= turn
