"""A logical device with its queue, and the count of everything made on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Self

from .api import vk
from .devices import DeviceInfo, DeviceKind


class Device:
    """A logical device and one compute queue; use with `with`.

    `live_objects` counts the Vulkan objects that were made through `own` and not yet destroyed, by kind, so that a test can
    see a leak.
    """

    def __init__(self, info: DeviceInfo) -> None:
        self.info = info
        self.live_objects: Counter[str] = Counter()
        self._stack = ExitStack()
        families = vk.vkGetPhysicalDeviceQueueFamilyProperties(info.physical)
        self.queue_family = next(i for i, family in enumerate(families) if family.queueFlags & vk.VK_QUEUE_COMPUTE_BIT)
        self.timestamp_bits: int = families[self.queue_family].timestampValidBits
        extensions = {extension.extensionName for extension in vk.vkEnumerateDeviceExtensionProperties(info.physical, None)}
        queue = vk.VkDeviceQueueCreateInfo(queueFamilyIndex=self.queue_family, pQueuePriorities=[1.0])
        create_info = vk.VkDeviceCreateInfo(
            pQueueCreateInfos=[queue],
            ppEnabledExtensionNames=[name for name in ("VK_KHR_portability_subset",) if name in extensions],
        )
        self.handle = vk.vkCreateDevice(info.physical, create_info, None)
        self._stack.callback(vk.vkDestroyDevice, self.handle, None)
        self.queue = vk.vkGetDeviceQueue(self.handle, self.queue_family, 0)
        self.memory_properties = vk.vkGetPhysicalDeviceMemoryProperties(info.physical)

    @property
    def unified(self) -> bool:
        """True where host and device share one memory, so that a copy to the device gains nothing."""
        return self.info.kind in (DeviceKind.CPU, DeviceKind.INTEGRATED)

    def own(self, stack: ExitStack, kind: str, handle: Any, destroy: Callable[..., None]) -> Any:
        """Count `handle` as a live `kind` and have `stack` destroy it; returns the handle."""
        self.live_objects[kind] += 1

        def release() -> None:
            destroy(self.handle, handle, None)
            self.live_objects[kind] -= 1

        stack.callback(release)
        return handle

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
