"""List the files of Vulkan drivers that the loader reads, in its order of search, without loading a driver.

Such a file is called a driver manifest or an ICD file: a JSON file that names the library of a driver. The order is that of the
Vulkan loader's document "Driver interface to the Vulkan Loader". On Windows the registry names the files.
"""

from __future__ import annotations

import fnmatch
import importlib
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..host.gpus import FILTERS, NAMED_FILES
from .system import Machine

ADDED_FILES = "VK_ADD_DRIVER_FILES"
"""The variable that names further files."""

_FOLDER = "vulkan/icd.d"
_MAX_BYTES = 1 << 20


@dataclass(frozen=True)
class DriverFile:
    """A driver's file. `library` is the library as the loader loads it: an absolute path, or a name that is searched for.

    `problem` says why the file names no library; `left_out` says why the loader does not use the file. Both are None for a file
    that the loader uses.
    """

    path: Path
    library: str | None = None
    api_version: str | None = None
    problem: str | None = None
    left_out: str | None = None

    @property
    def is_nvidia(self) -> bool:
        """Return whether the file belongs to NVIDIA's own driver."""
        return "nvidia" in (self.library or self.path.name).lower()


def driver_files(machine: Machine) -> list[DriverFile]:
    """Return the driver files that the loader reads on a machine, each once: folders in the order of search, files by name."""
    return [_read(path, machine) for path in dict.fromkeys(_paths(machine))]


def search_folders(machine: Machine) -> list[Path]:
    """Return the folders in which the loader looks for driver files, whether or not they exist; none on Windows."""
    if machine.platform == "win32":
        return []
    home = machine.variable("HOME")

    def own(variable: str, default: str) -> list[Path]:
        return [Path(machine.variable(variable) or f"{home}/{default}")] if machine.variable(variable) or home else []

    def shared(variable: str, *defaults: str) -> list[Path]:
        named = [Path(text) for text in machine.variable(variable).split(os.pathsep) if text]
        return named or [machine.path(name) for name in defaults]

    is_mac = machine.platform == "darwin"
    bases = [
        *own("XDG_CONFIG_HOME", ".config"),
        *shared("XDG_CONFIG_DIRS", "/etc/xdg"),
        *(machine.path(name) for name in (("/usr/local/etc", "/etc") if is_mac else ("/etc",))),
        *own("XDG_DATA_HOME", ".local/share"),
        *shared("XDG_DATA_DIRS", "/usr/local/share", "/usr/share"),
        *(machine.path(name) for name in (("/opt/homebrew/etc", "/opt/homebrew/share") if is_mac else ())),
    ]
    return [base / _FOLDER for base in dict.fromkeys(bases)]


def _paths(machine: Machine) -> Iterator[Path]:
    named = next((machine.variable(name) for name in NAMED_FILES if machine.variable(name)), "")
    if named:
        yield from _listed(named)
        return
    yield from _listed(machine.variable(ADDED_FILES))
    if machine.platform == "win32":
        yield from registered_files()
    for folder in search_folders(machine):
        yield from files_in(folder)


def _listed(text: str) -> Iterator[Path]:
    """Yield the files of a variable: each of its entries is a file, or a folder of files."""
    for path in map(Path, filter(None, text.split(os.pathsep))):
        yield from files_in(path) if path.is_dir() else [path]


def files_in(folder: Path) -> list[Path]:
    """Return the driver files of a folder, sorted by name; none if the folder is missing or cannot be read."""
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == ".json")
    except OSError:
        return []


def _read(path: Path, machine: Machine) -> DriverFile:
    left_out = _left_out(path, machine)
    problem = "it names no library (`library_path` of `ICD`)"
    try:
        with path.open("rb") as file:
            described = json.loads(file.read(_MAX_BYTES))["ICD"]
        library, version = described["library_path"], described.get("api_version")
    except OSError as error:
        library, problem = None, f"it cannot be read ({error.strerror})"
    except (ValueError, RecursionError):  # no UTF-8, or no JSON
        library, problem = None, "it is not a JSON file"
    except (AttributeError, KeyError, TypeError):
        library = None
    if not isinstance(library, str):
        return DriverFile(path, problem=problem, left_out=left_out)
    if os.path.dirname(library) and not os.path.isabs(library):
        library = os.path.normpath(path.parent / library)
    return DriverFile(path, library, None if version is None else str(version), left_out=left_out)


def _left_out(path: Path, machine: Machine) -> str | None:
    """Return the variable by which the user leaves a file out, None for a file that is used."""
    for variable, is_used in zip(FILTERS, (True, False), strict=True):
        patterns = [pattern for pattern in machine.variable(variable).lower().split(",") if pattern]
        if patterns and any(fnmatch.fnmatchcase(path.name.lower(), pattern) for pattern in patterns) is not is_used:
            return f"{variable} leaves it out"
    return None


# -- the registry of Windows ------------------------------------------------------------------------------------------

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
    """Yield the driver files that the registry of this machine names: those of adapters first, as the loader reads them.

    The keys of an adapter stay when it is removed. The loader asks Windows which adapters are present; here, files that do not
    exist are left out.
    """
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
