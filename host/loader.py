"""What the Vulkan loader has to say of the drivers' files that it cannot use.

Its answer is a code alone, and a wrong one at that: for a file that is no JSON it says that it is out of memory. Why it gave
that answer it tells only whoever listens while an instance is made.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

_SAID_ANYWAY = "Found no drivers"
_MOST = 3
_EXTENSION = "VK_EXT_debug_utils"


def complaints(module: Any) -> str:
    """Return what the loader complains of as it looks for drivers, at most three sentences; empty where it says nothing.

    `module` is the binding. An instance is made once more, with somebody who listens.
    """
    said: list[str] = []
    ffi = module.ffi

    def listen(_severity: int, _types: int, data: Any, _user: Any) -> int:
        said.append(ffi.string(data.pMessage).decode(errors="replace").strip())
        return 0

    callback = ffi.callback("PFN_vkDebugUtilsMessengerCallbackEXT", listen)
    messenger = module.VkDebugUtilsMessengerCreateInfoEXT(
        messageSeverity=module.VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
        messageType=module.VK_DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT,
    )
    messenger.pfnUserCallback = callback  # the binding's own is one for all instances
    info = module.VkInstanceCreateInfo(pNext=messenger, ppEnabledExtensionNames=[_EXTENSION])
    with suppress(module.VkError, module.VkException, KeyError):  # a failure is what is asked about
        module.vkDestroyInstance(module.vkCreateInstance(info, None), None)
    return "; ".join([text for text in dict.fromkeys(said) if _SAID_ANYWAY not in text][:_MOST]).rstrip(".")
