"""Access to the `vulkan` binding: it is loaded at the first call, and its failures become errors of this package.

A fork of a process that uses Vulkan has no access: the driver's state and threads are the parent's, and the child lacks them.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from .errors import (
    DOCTOR,
    INSTALL_DRIVER,
    LOG,
    DeviceError,
    DeviceLostError,
    DeviceMemoryError,
    ForkError,
    NoDeviceError,
    NoLoaderError,
)
from .gpus import FILTERS, NAMED_FILES, unlisted_gpus

ALONE = ("vkCreateInstance", "vkDestroyInstance", "vkCreateDevice", "vkDestroyDevice")
"""The functions that change the layer's table of devices."""


class CallOrder:
    """An order: calls of all threads run side by side, but a function of `ALONE` only while no other thread is in a call.

    Vulkan allows one thread to open a device while other threads use theirs. The validation layer changes its table of devices
    without a lock (issue 4391 of KhronosGroup/Vulkan-ValidationLayers), so that a look-up at that moment crashes or never ends.
    All other calls stay side by side, because the layer also reports objects that two threads use at once.
    """

    def __init__(self) -> None:
        self._entrance = threading.RLock()  # of the thread that is alone or waits to be; new calls let it go first
        self._changed = threading.Condition()
        self._threads: set[int] = set()  # in a call

    @contextmanager
    def call(self, name: str) -> Iterator[None]:
        """Wait until a function may be called. Its thread counts as in a call until the context ends.

        A call within a call, as a destructor makes it, waits for nothing, because it would wait for its own thread.
        """
        thread = threading.get_ident()
        if thread in self._threads:
            yield
            return
        with ExitStack() as entrance:
            entrance.enter_context(self._entrance)
            with self._changed:
                if name in ALONE:
                    self._changed.wait_for(lambda: not self._threads)
                self._threads.add(thread)
            try:
                if name not in ALONE:
                    entrance.close()
                yield
            finally:
                with self._changed:
                    self._threads.remove(thread)
                    self._changed.notify_all()


def loader_messages(module: Any) -> str:
    """Return the loader's messages about drivers, at most three sentences; empty if there are none.

    The loader only returns a code, and the code can be misleading: for a file that is not JSON, it means out of memory. The
    reason is only in the debug messages that it sends while an instance is made. So the function makes one once more, with a
    callback for messages. `module` is the binding.
    """
    messages: list[str] = []
    severity, kind = module.VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT, module.VK_DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT
    messenger, _callback = debug_messenger(module, severity, kind, lambda text: messages.append(text.strip()))
    info = module.VkInstanceCreateInfo(pNext=messenger, ppEnabledExtensionNames=["VK_EXT_debug_utils"])
    with suppress(module.VkError, module.VkException, KeyError):  # the call is expected to fail
        module.vkDestroyInstance(module.vkCreateInstance(info, None), None)
    return "; ".join([text for text in dict.fromkeys(messages) if "Found no drivers" not in text][:3]).rstrip(".")


_LOOKING_FOR_DRIVERS = ("vkEnumerateInstanceExtensionProperties", "vkCreateInstance")

_LETTING_GO = ("vkDestroy", "vkFree", "vkUnmap", "vkDeviceWaitIdle")


def _device_error(module: Any, name: str, error: Exception) -> DeviceError:
    """Return the error of this package for an error of the binding in a function."""
    if isinstance(error, module.VkErrorDeviceLost):
        LOG.warning("%s: the device was lost", name)
        return DeviceLostError(f"{name}: the driver reports that the device was lost; run again")

    if isinstance(error, module.VkErrorOutOfDeviceMemory | module.VkErrorMemoryMapFailed):
        return DeviceMemoryError(f"{name}: the device is out of memory; free some of it or choose fewer frames in flight")

    if isinstance(error, module.VkErrorOutOfHostMemory):
        # The loader uses the same code if it cannot read a driver's file.
        messages = loader_messages(module) if name in _LOOKING_FOR_DRIVERS else ""
        if messages:
            return _unusable("read its drivers' files", messages)
        return DeviceMemoryError(f"{name}: the driver is out of the host's memory; free some of it")

    if isinstance(error, module.VkErrorIncompatibleDriver):
        messages = loader_messages(module)
        return _unusable("use the drivers that it found", messages) if messages else _no_driver()

    if isinstance(error, module.VkErrorInitializationFailed) and name == "vkEnumeratePhysicalDevices":
        return DeviceError(
            "a Vulkan driver cannot start (vkEnumeratePhysicalDevices: VkErrorInitializationFailed): memory may be"
            " limited (`ulimit -v`), the user may not open the device's files in /dev/dri, or the driver is not of the"
            f" version of its kernel module. {DOCTOR}"
        )
    if isinstance(error, KeyError):  # the binding does not know the code
        return DeviceError(f"{name} failed: VkResult {error}")
    return DeviceError(f"{name} failed: {type(error).__name__} {error}".rstrip())


def _no_driver() -> NoDeviceError:
    signs = "; ".join(unlisted_gpus())
    variables = " and ".join(name for name in FILTERS if os.environ.get(name))
    unset = f"Unset {variables}, by which the loader leaves drivers out. " if variables else ""
    return NoDeviceError(f"the Vulkan loader found no driver{': ' * bool(signs)}{signs}. {unset}{INSTALL_DRIVER}")


def _unusable(action: str, messages: str) -> NoDeviceError:
    """Return the error for a driver's file with which the loader cannot do something, with the loader's messages."""
    variable = next((name for name in NAMED_FILES if os.environ.get(name)), None)
    correct = "" if variable is None else f"Correct or unset {variable}, which names the files of drivers. "
    return NoDeviceError(f"the Vulkan loader cannot {action}: {messages}. {correct}{DOCTOR}")


def debug_messenger(module: Any, severity: int, kind: int, on_message: Callable[[str], object]) -> tuple[Any, Any]:
    """Return the description of a messenger that calls `on_message` with each message, and the callback to keep alive."""
    ffi = module.ffi

    def report(_severity: int, _types: int, data: Any, _user: Any) -> int:
        on_message(ffi.string(data.pMessage).decode(errors="replace"))
        return 0

    callback = ffi.callback("PFN_vkDebugUtilsMessengerCallbackEXT", report)
    info = module.VkDebugUtilsMessengerCreateInfoEXT(messageSeverity=severity, messageType=kind)
    info.pfnUserCallback = callback  # the binding's own callback is shared by all instances
    return info, callback


class Api:
    """The binding's functions and names as attributes, e.g. `vk.vkCreateBuffer(...)`, `vk.VK_QUEUE_COMPUTE_BIT`.

    Importing the binding opens the loader's library, and fails if there is none. So it is imported at the first use. A call
    that returns an error code raises the matching `DeviceError`. `VkTimeout` and `VkNotReady` are passed on, because they are
    answers and not failures. In a fork of a process that had opened Vulkan every call raises ForkError, except those that
    destroy or free: they do nothing, because the objects belong to the parent.
    """

    order: CallOrder | None = None
    """The order that every call waits for once an instance with the validation layer is opened."""

    @functools.cached_property
    def module(self) -> Any:
        """Return the imported `vulkan` package. Raises NoLoaderError if it or the loader's library is missing."""
        try:
            import vulkan
        except OSError as error:
            raise NoLoaderError(
                "the Vulkan loader library is not installed; on Debian and Ubuntu `apt install libvulkan1 mesa-vulkan-drivers`"
                f" installs it with a driver for any CPU. {DOCTOR}; `--backend cpu` scores without Vulkan"
            ) from error
        except ImportError as error:
            raise NoLoaderError(f"the Python package `vulkan` is not installed: `pip install vulkan`. {DOCTOR}") from error
        return vulkan

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.module, name)
        if name.startswith("vk"):
            value = self._translated(name, value)
        setattr(self, name, value)  # later look-ups then skip __getattr__
        return value

    def load(self, owner: Any, name: str, look_up: str = "vkGetDeviceProcAddr") -> Callable[..., Any]:
        """Return a function of an extension, which the loader's library does not export, of a device or an instance."""
        return self._translated(name, getattr(self, look_up)(owner, name))

    def _translated(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        module = self.module
        lets_go = name.startswith(_LETTING_GO)

        @functools.wraps(function)
        def call(*args: Any) -> Any:
            if _forked:
                return None if lets_go else check_fork()
            try:
                if self.order is None:
                    return function(*args)
                with self.order.call(name):
                    return function(*args)
            except (module.VkTimeout, module.VkNotReady):
                raise
            except (module.VkError, module.VkException, KeyError) as error:
                raise _device_error(module, name, error) from error

        return call


vk = Api()


# -- forks ------------------------------------------------------------------------------------------------------------

_opener: int | None = None
_forked = False


def vulkan_is_opened() -> None:
    """Record that this process loads a driver. Its later forks cannot use Vulkan, even if everything was closed before."""
    global _opener
    _opener = os.getpid()


def is_forked() -> bool:
    """Return True in a fork of a process that had opened Vulkan, and in forks of such a fork."""
    return _forked


def check_fork() -> None:
    """Raise ForkError in such a fork. Call this before you write to mapped memory, which belongs to the parent."""
    if _forked:
        raise ForkError(
            f"process {os.getpid()} was forked from process {_opener}, which had opened Vulkan before: drivers do not survive"
            ' that. Start it by spawn (`multiprocessing.get_context("spawn")`; a PyTorch DataLoader takes'
            ' `multiprocessing_context="spawn"`), or fork before anything opens a device'
        )


def _in_child() -> None:
    global _forked
    if _opener is not None and not _forked:
        _forked = True
        # The exit handlers that drivers registered with the C library are skipped: Mesa's would wait for threads that do not
        # exist. The handler that was registered last is called first, with the exit code. Only glibc has `on_exit`.
        library = ctypes.CDLL(None)
        if hasattr(library, "on_exit"):
            atexit.register(library.fflush, None)
            library.on_exit(library._exit, None)


if hasattr(os, "register_at_fork"):  # Windows has no forks
    os.register_at_fork(after_in_child=_in_child)
