"""Access to the `vulkan` binding: it is loaded at the first call, and its failures become errors of this package."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

from . import fork
from .call_order import CallOrder
from .driver_files import FILTERS, NAMED_FILES
from .errors import DOCTOR, DeviceError, DeviceLostError, DeviceMemoryError, NoDeviceError, NoLoaderError
from .loader import complaints
from .machine import Machine
from .unusable_gpus import unusable_gpus

_INSTALL = (
    "Install the Vulkan loader and a driver: on Debian and Ubuntu `apt install libvulkan1 mesa-vulkan-drivers` (Mesa's drivers,"
    " the software driver lavapipe among them), on Fedora `dnf install vulkan-loader mesa-vulkan-drivers`, on Windows the GPU"
    " vendor's driver, on macOS the Vulkan SDK with MoltenVK. `--backend cpu` scores without Vulkan. " + DOCTOR
)

_LOOKING_FOR_DRIVERS = ("vkEnumerateInstanceExtensionProperties", "vkCreateInstance")

_LETTING_GO = ("vkDestroy", "vkFree", "vkUnmap", "vkDeviceWaitIdle")

_INSTALL_DRIVER = "Install the GPU's driver, or Mesa's software driver: `apt install mesa-vulkan-drivers`"


def _present_gpus() -> str:
    """Return the GPUs that are present without a driver, after a colon; empty if there is no sign of one."""
    found = unusable_gpus(Machine())
    return f": {'; '.join(found)}" if found else ""


def _add_driver() -> str:
    """Return advice for a loader that found no driver."""
    variables = [name for name in FILTERS if os.environ.get(name)]
    unset = f"Unset {' and '.join(variables)}, by which the loader leaves drivers out. Or: " if variables else ""
    return unset + _INSTALL_DRIVER


def _mend() -> str:
    """Return advice about a driver's file that the loader cannot use."""
    variable = next((name for name in NAMED_FILES if os.environ.get(name)), None)
    if variable is None:
        return "Mend or remove that file"
    return f"Correct or unset {variable}, which names the files that are read in place of the system's"


class Api:
    """The binding's functions and names as attributes, e.g. `vk.vkCreateBuffer(...)`, `vk.VK_QUEUE_COMPUTE_BIT`.

    Importing the binding opens the loader's library, and fails if there is none. So it is imported at the first use. A call
    that returns an error code raises the matching `DeviceError`. `VkTimeout` and `VkNotReady` are passed on, because they are
    answers and not failures. In a fork without Vulkan (host/fork.py) every call raises ForkError, except those that destroy or
    free: they do nothing, because the objects belong to the parent.
    """

    order: CallOrder | None = None
    """The order that every call waits for once an instance with the validation layer is opened."""

    @functools.cached_property
    def module(self) -> Any:
        """Return the imported `vulkan` package. Raises NoLoaderError if it or the loader's library is missing."""
        try:
            import vulkan
        except OSError as error:
            raise NoLoaderError(f"the Vulkan loader library is not installed. {_INSTALL}") from error
        except ImportError as error:
            raise NoLoaderError(f"the Python package `vulkan` is not installed: `pip install vulkan`. {DOCTOR}") from error
        return vulkan

    @property
    def ffi(self) -> Any:
        """Return the cffi object that owns the binding's types."""
        return self.module.ffi

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.module, name)
        if name.startswith("vk"):
            value = self._translated(name, value)
        setattr(self, name, value)  # later look-ups then skip __getattr__
        return value

    def load(self, device: Any, name: str) -> Callable[..., Any]:
        """Return a function of an extension. The loader's library does not export such functions."""
        return self._translated(name, self.vkGetDeviceProcAddr(device, name))

    def load_of_instance(self, instance: Any, name: str) -> Callable[..., Any]:
        """Return a function of an instance's extension."""
        return self._translated(name, self.vkGetInstanceProcAddr(instance, name))

    def _translated(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        module = self.module
        lets_go = name.startswith(_LETTING_GO)

        @functools.wraps(function)
        def call(*args: Any) -> Any:
            if fork.is_forked():
                return None if lets_go else fork.check()
            try:
                if self.order is None:
                    return function(*args)
                with self.order.call(name):
                    return function(*args)
            except module.VkErrorDeviceLost as error:
                raise DeviceLostError(f"{name}: the driver reports that the device was lost; run again") from error
            except (module.VkErrorOutOfDeviceMemory, module.VkErrorMemoryMapFailed) as error:
                raise DeviceMemoryError(
                    f"{name}: the device is out of memory; free some of it or choose fewer frames in flight"
                ) from error
            except module.VkErrorOutOfHostMemory as error:
                # The loader uses the same code if it cannot read a driver's file.
                said = complaints(module) if name in _LOOKING_FOR_DRIVERS else ""
                if said:
                    raise NoDeviceError(
                        f"the Vulkan loader cannot read its drivers' files: {said}. {_mend()}. {DOCTOR}"
                    ) from error
                raise DeviceMemoryError(f"{name}: the driver is out of the host's memory; free some of it") from error
            except module.VkErrorIncompatibleDriver as error:
                said = complaints(module)
                if said:
                    raise NoDeviceError(
                        f"the Vulkan loader cannot use the drivers that it found: {said}. {_mend()}. {DOCTOR}"
                    ) from error
                raise NoDeviceError(f"the Vulkan loader found no driver{_present_gpus()}. {_add_driver()}. {DOCTOR}") from error
            except module.VkErrorInitializationFailed as error:
                if name != "vkEnumeratePhysicalDevices":
                    raise DeviceError(f"{name} failed: VkErrorInitializationFailed") from error
                raise DeviceError(
                    "a Vulkan driver cannot start (vkEnumeratePhysicalDevices: VkErrorInitializationFailed): memory may be"
                    " limited (`ulimit -v`), the user may not open the device's files in /dev/dri, or the driver is not of the"
                    f" version of its kernel module. {DOCTOR}"
                ) from error
            except (module.VkTimeout, module.VkNotReady):
                raise
            except (module.VkError, module.VkException) as error:
                raise DeviceError(f"{name} failed: {type(error).__name__} {error}".rstrip()) from error
            except KeyError as error:  # the binding does not know the code
                raise DeviceError(f"{name} failed: VkResult {error}") from error

        return call


vk = Api()
