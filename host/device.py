"""A logical device with its queue, and the count of everything made on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, Self

from .api import vk
from .devices import DeviceInfo, DeviceKind
from .errors import UnsuitableDeviceError

SHARING_EXTENSIONS = ("VK_KHR_external_memory_fd", "VK_KHR_external_semaphore_fd", "VK_KHR_timeline_semaphore")
"""What it takes to share memory with another API and to take turns at it."""


class Device:
    """A logical device, a compute queue, and a queue for uploads where it has one of its own; use with `with`.

    `upload_family` and `upload_queue` are a family that does nothing but copy, whose copies overlap with kernels; None where
    there is none or nothing is to be copied.

    `sharing` asks for what shares memory with another API (host/sharing.py). Raises UnsuitableDeviceError where the driver
    does not offer it.

    `live_objects` counts the Vulkan objects that were made through `own` and not yet destroyed, by kind, so that a test can
    see a leak. `abandoned` is True for a device that does not answer: what it may still be using is never destroyed.
    """

    def __init__(self, info: DeviceInfo, *, sharing: bool = False) -> None:
        self.info = info
        self.live_objects: Counter[str] = Counter()
        self.abandoned = False
        self._stack = ExitStack()
        families = vk.vkGetPhysicalDeviceQueueFamilyProperties(info.physical)
        self.queue_family = next(i for i, family in enumerate(families) if family.queueFlags & vk.VK_QUEUE_COMPUTE_BIT)
        self.timestamp_bits: int = families[self.queue_family].timestampValidBits
        extensions = {extension.extensionName for extension in vk.vkEnumerateDeviceExtensionProperties(info.physical, None)}
        self.upload_family = None if self.unified else _copy_family(families)
        used = dict.fromkeys(family for family in (self.queue_family, self.upload_family) if family is not None)
        queues = [vk.VkDeviceQueueCreateInfo(queueFamilyIndex=family, pQueuePriorities=[1.0]) for family in used]
        enabled = [name for name in ("VK_KHR_portability_subset",) if name in extensions]
        features = None
        if sharing:
            missing = [name for name in SHARING_EXTENSIONS if name not in extensions]
            if missing:
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
        """Return True where host and device share one memory, so that a copy to the device gains nothing."""
        return self.info.kind in (DeviceKind.CPU, DeviceKind.INTEGRATED)

    @property
    def memory_bytes(self) -> int:
        """Return bytes of all its memory heaps together, used or free."""
        heaps = self.memory_properties
        return sum(heaps.memoryHeaps[index].size for index in range(heaps.memoryHeapCount))

    def own(self, stack: ExitStack, kind: str, handle: Any, destroy: Callable[..., None]) -> Any:
        """Count `handle` as a live `kind` and have `stack` destroy it; returns the handle."""
        self.live_objects[kind] += 1

        def release() -> None:
            destroy(self.handle, handle, None)
            self.live_objects[kind] -= 1

        self.unless_abandoned(stack, release)
        return handle

    def unless_abandoned(self, stack: ExitStack, function: Callable[..., None], *arguments: Any) -> None:
        """Have `stack` call a function, unless the device is abandoned by then."""
        stack.callback(lambda: None if self.abandoned else function(*arguments))

    def abandon(self) -> None:
        """Let everything on the device be, for good: it does not answer, and destroying what it may be using is undefined."""
        self.abandoned = True

    def wait_idle(self) -> None:
        """Return when everything submitted has finished."""
        vk.vkDeviceWaitIdle(self.handle)

    def close(self) -> None:
        """Destroy the device; a second call does nothing."""
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _copy_family(families: Sequence[Any]) -> int | None:
    """Return the first queue family that copies and does nothing else: the one that drives the copy engines."""
    busy = vk.VK_QUEUE_GRAPHICS_BIT | vk.VK_QUEUE_COMPUTE_BIT
    for index, family in enumerate(families):
        if family.queueFlags & vk.VK_QUEUE_TRANSFER_BIT and not family.queueFlags & busy:
            return index
    return None
