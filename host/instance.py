"""The Vulkan instance, and the validation layer on request."""

from __future__ import annotations

import functools
import os
from contextlib import ExitStack
from typing import Any, Self

from .api import vk
from .errors import ValidationError

VALIDATION_LAYER = "VK_LAYER_KHRONOS_validation"
VALIDATION_VARIABLE = "VKSSIM_VALIDATION"
"""Set to 1, this environment variable switches the validation layer on."""

_API_VERSION = (1, 1)
_PORTABILITY_EXTENSION = "VK_KHR_portability_enumeration"
_ENUMERATE_PORTABILITY_BIT = 0x1


class Instance:
    """A Vulkan 1.1 instance; use with `with`. Closing raises ValidationError if the layer reported anything.

    Parameters
    ----------
    validation
        Load the Khronos validation layer. None asks the environment variable VKSSIM_VALIDATION.

    Raises
    ------
    NoLoaderError
        The Vulkan loader is not installed.
    ValidationError
        Validation was asked for and the layer is not installed.

    """

    def __init__(self, validation: bool | None = None) -> None:
        if validation is None:
            validation = _validation_asked()
        self.validation = validation
        self.validation_messages: list[str] = []
        self._stack = ExitStack()
        self.handle = self._create()
        self._stack.callback(vk.vkDestroyInstance, self.handle, None)
        if validation:
            with ExitStack() as guard:
                guard.callback(self._stack.close)
                self._listen()
                guard.pop_all()

    def _create(self) -> Any:
        available = {extension.extensionName for extension in vk.vkEnumerateInstanceExtensionProperties(None)}
        layers: list[str] = []
        extensions: list[str] = []
        flags = 0
        if self.validation:
            if VALIDATION_LAYER not in {layer.layerName for layer in vk.vkEnumerateInstanceLayerProperties()}:
                raise ValidationError(
                    f"{VALIDATION_LAYER} is not installed: `apt install vulkan-validationlayers`,"
                    f" or unset {VALIDATION_VARIABLE}"
                )
            layers.append(VALIDATION_LAYER)
            extensions.append("VK_EXT_debug_utils")
        if _PORTABILITY_EXTENSION in available:  # without it MoltenVK hides itself
            extensions.append(_PORTABILITY_EXTENSION)
            flags = _ENUMERATE_PORTABILITY_BIT
        application = vk.VkApplicationInfo(
            pApplicationName="vkssim", pEngineName="vkssim", apiVersion=vk.VK_MAKE_VERSION(*_API_VERSION, 0)
        )
        info = vk.VkInstanceCreateInfo(
            flags=flags, pApplicationInfo=application, ppEnabledLayerNames=layers, ppEnabledExtensionNames=extensions
        )
        return vk.vkCreateInstance(info, None)

    def _listen(self) -> None:
        ffi = vk.ffi

        def report(_severity: int, _types: int, data: Any, _user: Any) -> int:
            self.validation_messages.append(ffi.string(data.pMessage).decode())
            return 0

        info = vk.VkDebugUtilsMessengerCreateInfoEXT(
            messageSeverity=vk.VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT
            | vk.VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
            messageType=vk.VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT,
            pfnUserCallback=report,
        )
        create = vk.vkGetInstanceProcAddr(self.handle, "vkCreateDebugUtilsMessengerEXT")
        destroy = vk.vkGetInstanceProcAddr(self.handle, "vkDestroyDebugUtilsMessengerEXT")
        messenger = create(self.handle, info, None)
        self._stack.callback(destroy, self.handle, messenger, None)

    def close(self) -> None:
        """Destroy the instance; a second call does nothing."""
        self._stack.close()
        messages, self.validation_messages = self.validation_messages, []
        if messages:
            raise ValidationError(f"the validation layer reported {len(messages)} messages, the first: {messages[0]}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def shared_instance() -> Instance:
    """The instance of this process, made at the first call and left to the end of the process: whoever still has a device open
    then must find it alive.

    Loading and unloading a driver over and over is slow, and NVIDIA's can be loaded only some dozen times by one process. Where
    the validation layer is switched on the caller gets an instance of its own, so that its messages stay its own.
    """
    return Instance() if _validation_asked() else _instance_of(os.getpid())


@functools.cache
def _instance_of(_process: int) -> Instance:
    return Instance(validation=False)


def _validation_asked() -> bool:
    return os.environ.get(VALIDATION_VARIABLE, "0") not in ("", "0")
