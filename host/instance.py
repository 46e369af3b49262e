"""Open the Vulkan instance, with the validation layer on request."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from . import vectors
from .api import CallOrder, check_fork, debug_messenger, is_forked, vk, vulkan_is_opened
from .closing import Closable, closing_on_error
from .errors import ValidationError

VALIDATION_LAYER = "VK_LAYER_KHRONOS_validation"
VALIDATION_VARIABLE = "VKSSIM_VALIDATION"
"""The environment variable that enables the validation layer: 1, or the path of a file to which every process appends its
messages, one per line.
"""

_VALIDATION_EXTENSIONS = ("VK_EXT_debug_utils", "VK_EXT_validation_features")
_LAYER_SETTINGS = {
    "VK_LAYER_ENABLES": "VALIDATION_CHECK_ENABLE_SYNCHRONIZATION_VALIDATION_QUEUE_SUBMIT",
    "VK_KHRONOS_VALIDATION_ENABLES": "VALIDATION_CHECK_ENABLE_SYNCHRONIZATION_VALIDATION_QUEUE_SUBMIT",
    "VK_KHRONOS_VALIDATION_SYNCVAL_SHADER_ACCESSES_HEURISTIC": "true",
}
"""Environment variables that make synchronisation validation complete. The first two, for older and newer layers, extend it to
conflicts between submissions. Layers of 2024 and later check the accesses of shaders only if the third is set.
"""
_API_VERSION = (1, 1)
_PORTABILITY_EXTENSION = "VK_KHR_portability_enumeration"
_ENUMERATE_PORTABILITY_BIT = 0x1


class Instance(Closable):
    """A Vulkan 1.1 instance; use with `with`. Closing raises ValidationError if the layer reported anything.

    `validation` loads the Khronos validation layer, with synchronisation validation. None uses the environment variable
    VKSSIM_VALIDATION. Raises NoLoaderError if there is no Vulkan loader, ValidationError if the layer is requested and not
    installed, and ForkError in a fork of a process that had opened Vulkan.
    """

    def __init__(self, validation: bool | None = None) -> None:
        check_fork()
        vectors.choose_width()
        setting = _validation_asked() if validation is None else "1" if validation else ""
        self.validation = bool(setting)
        self._log = None if setting in ("", "1") else Path(setting)
        self.validation_messages: list[str] = []
        self._checked = 0

        self._stack = ExitStack()
        self.handle = self._create()
        self._stack.callback(vk.vkDestroyInstance, self.handle, None)
        if self.validation:
            with closing_on_error(self._stack):
                self._listen()

    def _create(self) -> Any:
        available = {extension.extensionName for extension in vk.vkEnumerateInstanceExtensionProperties(None)}
        layers: list[str] = []
        extensions: list[str] = []
        flags = 0
        if self.validation:
            vk.order = vk.order or CallOrder()
            if VALIDATION_LAYER not in {layer.layerName for layer in vk.vkEnumerateInstanceLayerProperties()}:
                raise ValidationError(
                    f"{VALIDATION_LAYER} is not installed: `apt install vulkan-validationlayers`,"
                    f" or unset {VALIDATION_VARIABLE}"
                )
            for variable, value in _LAYER_SETTINGS.items():
                os.environ.setdefault(variable, value)
            layers.append(VALIDATION_LAYER)
            extensions += _VALIDATION_EXTENSIONS

        if _PORTABILITY_EXTENSION in available:  # without it MoltenVK hides itself
            extensions.append(_PORTABILITY_EXTENSION)
            flags = _ENUMERATE_PORTABILITY_BIT

        application = vk.VkApplicationInfo(
            pApplicationName="vkssim", pEngineName="vkssim", apiVersion=vk.VK_MAKE_VERSION(*_API_VERSION, 0)
        )
        # The variable holds the struct until the call returns: the binding keeps no nested structs alive.
        synchronisation = vk.VkValidationFeaturesEXT(
            pEnabledValidationFeatures=[vk.VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT]
        )
        info = vk.VkInstanceCreateInfo(
            pNext=synchronisation if self.validation else None,
            flags=flags,
            pApplicationInfo=application,
            ppEnabledLayerNames=layers,
            ppEnabledExtensionNames=extensions,
        )

        vulkan_is_opened()
        return vk.vkCreateInstance(info, None)

    def _listen(self) -> None:
        def on_message(message: str) -> None:
            self.validation_messages.append(message)
            if self._log is not None:
                with self._log.open("a") as log:
                    log.write(message.replace("\n", " ") + "\n")

        severity = vk.VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | vk.VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT
        kind = vk.VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT
        info, self._report = debug_messenger(vk.module, severity, kind, on_message)

        create = vk.load(self.handle, "vkCreateDebugUtilsMessengerEXT", "vkGetInstanceProcAddr")
        destroy = vk.load(self.handle, "vkDestroyDebugUtilsMessengerEXT", "vkGetInstanceProcAddr")
        messenger = create(self.handle, info, None)
        self._stack.callback(destroy, self.handle, messenger, None)

    def check(self) -> None:
        """Raise ValidationError if the layer reported anything since the last call."""
        reported = len(self.validation_messages)
        messages = self.validation_messages[self._checked : reported]
        self._checked = reported  # if two threads check at a time, both raise the same messages, and none is passed over
        if messages:
            count = "1 message" if len(messages) == 1 else f"{len(messages)} messages, the first"
            raise ValidationError(f"the validation layer reported {count}: {messages[0]}")

    def close(self) -> None:
        """Destroy the instance; a second call and a call in a fork do nothing."""
        if not is_forked():
            self._stack.close()
            self.check()


def shared_instance() -> Instance:
    """Return the instance of this process, made at the first call.

    It is never closed before the end of the process, because open devices need it. Loading and unloading a driver repeatedly is
    slow, and a process can load NVIDIA's only some dozen times. Call `check` on the instance after you closed a device.
    """
    check_fork()
    with _making:  # two threads could make two instances, and one of them would never be destroyed
        setting = _validation_asked()
        if setting not in shared_instances:
            shared_instances[setting] = Instance()
        return shared_instances[setting]


_making = threading.Lock()

shared_instances: dict[str, Instance] = {}
"""The instances of this process, by the value of VKSSIM_VALIDATION."""


@atexit.register  # registered at import: everything that is closed at exit is then closed before this runs
def _fail_if_reported() -> None:
    """End the process with a failure if the layer reported anything: at exit, nobody may be left to catch an error."""
    messages = [message for instance in shared_instances.values() for message in instance.validation_messages]
    if messages and not is_forked():
        sys.stdout.flush()
        print("the validation layer reported:", *messages, sep="\n", file=sys.stderr, flush=True)
        os._exit(3)


def _validation_asked() -> str:
    setting = os.environ.get(VALIDATION_VARIABLE, "")
    return "" if setting == "0" else setting
