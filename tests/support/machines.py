"""Made-up machines: folders with driver files and device nodes, an environment, and a registry of Windows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from vkssim.doctor.system import Machine

HOME = "/home/user"


def machine(root: Path, platform: str = "linux", **environment: str) -> Machine:
    """Return a machine below a folder, whose user has a home and nothing else in the environment."""
    return Machine(root, {"HOME": str(root) + HOME, **environment}, platform)


def write_file(path: Path, content: str = "") -> Path:
    """Write a file, with the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


def write_driver_file(path: Path, library: str) -> Path:
    """Write the file of a driver whose library has this path or name."""
    described = {"library_path": library, "api_version": "1.3.0"}
    return write_file(path, json.dumps({"file_format_version": "1.0.0", "ICD": described}))


def add_render_node(root: Path, driver: str, number: int = 128) -> Path:
    """Add a render node of a kernel driver to a machine, as /dev and /sys show it."""
    drivers = root / "sys/bus/pci/drivers" / driver
    drivers.mkdir(parents=True, exist_ok=True)
    device = root / f"sys/class/drm/renderD{number}/device"
    device.mkdir(parents=True)
    (device / "driver").symlink_to(drivers)
    return write_file(root / f"dev/dri/renderD{number}")


class Registry:
    """A stand-in for the module `winreg`: keys by their paths, each with its values; None for a key that may not be opened."""

    HKEY_LOCAL_MACHINE = ""
    REG_SZ, REG_MULTI_SZ, REG_DWORD = 1, 7, 4

    def __init__(self, keys: Mapping[str, Mapping[str, tuple[Any, int]] | None]) -> None:
        self._keys = keys

    @contextmanager
    def OpenKey(self, key: str, name: str) -> Iterator[str]:  # noqa: N802
        """Open a key below another."""
        path = f"{key}\\{name}".lstrip("\\")
        if not any(known == path or known.startswith(f"{path}\\") for known in self._keys):
            raise FileNotFoundError(2, "The system cannot find the file specified", path)
        if self._keys.get(path, {}) is None:
            raise PermissionError(13, "Access is denied", path)
        yield path

    def QueryInfoKey(self, key: str) -> tuple[int, int, int]:  # noqa: N802
        """Return the numbers of the keys below a key and of its values, and a time."""
        return len(self._below(key)), len(self._values(key)), 0

    def EnumKey(self, key: str, index: int) -> str:  # noqa: N802
        """Return the name of a key below a key."""
        return self._below(key)[index]

    def EnumValue(self, key: str, index: int) -> tuple[str, Any, int]:  # noqa: N802
        """Return a value of a key: its name, its data and their type."""
        name, (data, kind) = list(self._values(key).items())[index]
        return name, data, kind

    def QueryValueEx(self, key: str, name: str) -> tuple[Any, int]:  # noqa: N802
        """Return the data of a value and their type."""
        if name not in self._values(key):
            raise FileNotFoundError(2, "The system cannot find the file specified", name)
        return self._values(key)[name]

    def _values(self, key: str) -> Mapping[str, tuple[Any, int]]:
        return self._keys.get(key) or {}

    def _below(self, key: str) -> list[str]:
        below = [path.removeprefix(f"{key}\\") for path in self._keys if path.startswith(f"{key}\\")]
        return list(dict.fromkeys(path.partition("\\")[0] for path in below))
