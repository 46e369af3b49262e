"""List the driver files that the registry of Windows names for the Vulkan loader.

The keys are those of the Vulkan loader's document "Driver interface to the Vulkan Loader": the keys of display adapters and of
their software components, to which the drivers of GPUs belong, and a key for all other drivers. The keys of an adapter stay
when it is removed. The loader asks Windows which adapters are present; this module leaves out files that do not exist.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

DRIVERS = r"SOFTWARE\Khronos\Vulkan\Drivers"
"""The key of drivers that belong to no adapter: its values have the paths as names, and 0 as data if the driver is enabled."""

CLASSES = r"SYSTEM\CurrentControlSet\Control\Class"
"""The key with a key for each class of devices, which have a numbered key for each device."""

ADAPTERS = "{4d36e968-e325-11ce-bfc1-08002be10318}"
COMPONENTS = "{5c4c3332-344d-483c-8739-259e934c9cc8}"
"""The classes of display adapters and of software components."""

VALUE = "VulkanDriverName"
"""The value of a device's key that has the path of its driver file, or several paths."""


def registered_files() -> Iterator[Path]:
    """Yield the driver files that the registry of this machine names: those of adapters first, as the loader reads them."""
    winreg = importlib.import_module("winreg")  # which Windows alone has
    for name in (ADAPTERS, COMPONENTS):
        yield from (path for path in map(Path, _of_class(winreg, rf"{CLASSES}\{name}")) if path.exists())
    with suppress(OSError), winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, DRIVERS) as key:
        for index in range(winreg.QueryInfoKey(key)[1]):
            path, disabled, kind = winreg.EnumValue(key, index)
            if kind == winreg.REG_DWORD and disabled == 0:
                yield Path(path)


def _of_class(winreg: Any, name: str) -> Iterator[str]:
    """Yield the paths that the devices of a class name. Keys that this user may not open are left out."""
    with suppress(OSError), winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, name) as devices:
        for index in range(winreg.QueryInfoKey(devices)[0]):
            with suppress(OSError), winreg.OpenKey(devices, winreg.EnumKey(devices, index)) as device:
                named, kind = winreg.QueryValueEx(device, VALUE)
                if kind == winreg.REG_SZ:
                    yield named
                elif kind == winreg.REG_MULTI_SZ:
                    yield from named
