"""Find out why the Vulkan loader cannot use the files of drivers.

The loader only returns a code, and the code can be misleading: for a file that is not JSON, it means out of memory. The reason
is only in the debug messages that the loader sends while an instance is made.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

_SAID_ANYWAY = "Found no drivers"
_MOST = 3
_EXTENSION = "VK_EXT_debug_utils"


def complaints(module: Any) -> str:
    """Return the loader's messages about drivers, at most three sentences; empty if there are none.

    `module` is the binding. The function makes an instance once more, with a callback for messages.
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
    messenger.pfnUserCallback = callback  # the binding's own callback is shared by all instances
    info = module.VkInstanceCreateInfo(pNext=messenger, ppEnabledExtensionNames=[_EXTENSION])
    with suppress(module.VkError, module.VkException, KeyError):  # the call is expected to fail
        module.vkDestroyInstance(module.vkCreateInstance(info, None), None)
    return "; ".join([text for text in dict.fromkeys(said) if _SAID_ANYWAY not in text][:_MOST]).rstrip(".")
