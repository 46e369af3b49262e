"""A logical device with its queues, and a count of the objects that were made on it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from .api import vk
from .closing import Closable
from .devices import DeviceInfo, DeviceKind
from .errors import UnsuitableDeviceError

SHARING_EXTENSIONS = ("VK_KHR_external_memory_fd", "VK_KHR_external_semaphore_fd", "VK_KHR_timeline_semaphore")
"""The extensions for sharing memory with another API and for synchronising with it."""


class Device(Closable):
    """A logical device, which threads may share, each with executors of its own; use with `with`.

    `sharing` enables the extensions for sharing memory with another API (host/sharing.py). Raises UnsuitableDeviceError if the
    driver does not offer them.
    """

    def __init__(self, info: DeviceInfo, *, sharing: bool = False) -> None:
        self.info = info
        self.live_objects: Counter[str] = Counter()
        """The objects that are not yet destroyed, by kind, so that tests can detect leaks."""
        self.memory_in_use = 0
        """The bytes that are allocated on the device."""
        self.abandoned = False
        """Whether it does not answer. Its objects are left alone then: to destroy an object in use is undefined."""
        self._queue_lock = threading.RLock()
        self._count_lock = threading.RLock()
        self._stack = ExitStack()

        families = vk.vkGetPhysicalDeviceQueueFamilyProperties(info.physical)
        self.queue_family = next(i for i, family in enumerate(families) if family.queueFlags & vk.VK_QUEUE_COMPUTE_BIT)
        self.timestamp_bits: int = families[self.queue_family].timestampValidBits
        self.upload_family = None if self.unified else _copy_family(families)
        """A queue family that can only copy, beside kernels; None if there is none, or if nothing has to be copied."""
        used = dict.fromkeys(family for family in (self.queue_family, self.upload_family) if family is not None)
        queues = [vk.VkDeviceQueueCreateInfo(queueFamilyIndex=family, pQueuePriorities=[1.0]) for family in used]

        enabled = [name for name in ("VK_KHR_portability_subset",) if name in info.extensions]
        features = None
        if sharing:
            if missing := missing_for_sharing(info):
                raise UnsuitableDeviceError(f"{info.description} cannot share memory: it lacks {', '.join(missing)}")
            enabled += SHARING_EXTENSIONS
            features = vk.VkPhysicalDeviceTimelineSemaphoreFeatures(timelineSemaphore=1)

        create_info = vk.VkDeviceCreateInfo(pNext=features, pQueueCreateInfos=queues, ppEnabledExtensionNames=enabled)
        self.handle = vk.vkCreateDevice(info.physical, create_info, None)
        self.unless_abandoned(self._stack, vk.vkDestroyDevice, self.handle, None)

        self.queue = vk.vkGetDeviceQueue(self.handle, self.queue_family, 0)
        self.upload_queue = None if self.upload_family is None else vk.vkGetDeviceQueue(self.handle, self.upload_family, 0)
        self.memory_properties = vk.vkGetPhysicalDeviceMemoryProperties(info.physical)

    @property
    def unified(self) -> bool:
        """Return True if host and device share one memory, so that a copy to the device has no use."""
        return self.info.kind in (DeviceKind.CPU, DeviceKind.INTEGRATED)

    @property
    def memory_bytes(self) -> int:
        """Return the bytes of all memory heaps together, used or free."""
        heaps = self.memory_properties
        return sum(heaps.memoryHeaps[index].size for index in range(heaps.memoryHeapCount))

    def create(self, stack: ExitStack, kind: str, info: Any) -> Any:
        """Return the handle of a new object of a kind of Vulkan's, such as ``"Fence"``, which `stack` destroys."""
        handle = getattr(vk, f"vkCreate{kind}")(self.handle, info, None)
        return self.own(stack, kind, handle, getattr(vk, f"vkDestroy{kind}"))

    def own(self, stack: ExitStack, kind: str, handle: Any, destroy: Callable[..., None], size: int = 0) -> Any:
        """Count `handle` as a live `kind` of `size` bytes, and have `stack` destroy it; returns the handle."""
        self._count(kind, 1, size)

        def release() -> None:
            destroy(self.handle, handle, None)
            self._count(kind, -1, -size)

        self.unless_abandoned(stack, release)
        return handle

    def _count(self, kind: str, objects: int, size: int) -> None:
        with self._count_lock:
            self.live_objects[kind] += objects
            self.memory_in_use += size

    def unless_abandoned(self, stack: ExitStack, function: Callable[..., None], *arguments: Any) -> None:
        """Have `stack` call a function, unless the device is abandoned by then."""
        stack.callback(lambda: None if self.abandoned else function(*arguments))

    def submit(self, queue: Any, submission: Any, fence: Any) -> None:
        """Submit work to one of the queues, which one thread at a time may use."""
        with self._queue_lock:
            vk.vkQueueSubmit(queue, 1, submission, fence)

    def wait_idle(self) -> None:
        """Wait until all submissions have finished."""
        with self._queue_lock:
            vk.vkDeviceWaitIdle(self.handle)

    def close(self) -> None:
        """Destroy the device."""
        self._stack.close()


def missing_for_sharing(info: DeviceInfo) -> list[str]:
    """Return the extensions that a device lacks for sharing; empty if it can be opened for it."""
    return [name for name in SHARING_EXTENSIONS if name not in info.extensions]


def _copy_family(families: Sequence[Any]) -> int | None:
    """Return the first queue family that can only copy; it drives the copy engines."""
    busy = vk.VK_QUEUE_GRAPHICS_BIT | vk.VK_QUEUE_COMPUTE_BIT
    for index, family in enumerate(families):
        if family.queueFlags & vk.VK_QUEUE_TRANSFER_BIT and not family.queueFlags & busy:
            return index
    return None
