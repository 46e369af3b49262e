"""The driver files of this machine, also those that the loader does not look for, and the known drivers that it lacks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from vkssim.host.driver_files import NAMED_FILES, driver_files
from vkssim.host.machine import Machine

_ELSEWHERE = (
    "/usr/lib/chromium/vk_swiftshader_icd.json",
    "/opt/google/chrome/vk_swiftshader_icd.json",
)
"""Files of drivers that the loader does not look for: SwiftShader comes with browsers."""

KNOWN = {
    "lavapipe": ("lvp_icd",),
    "SwiftShader": ("vk_swiftshader_icd",),
    "RADV (AMD)": ("radeon_icd",),
    "AMDVLK (AMD)": ("amd_icd",),
    "ANV (Intel)": ("intel_icd",),
    "NVIDIA": ("nvidia_icd",),
    "NVK (NVIDIA)": ("nouveau_icd",),
    "MoltenVK (Apple)": ("MoltenVK_icd",),
    "Dozen (WSL2)": ("dzn_icd",),
}
"""Drivers by name, with the beginnings of their files' names."""


def find_driver_files(environment: Mapping[str, str], root: Path = Path("/")) -> list[Path]:
    """Return the files that the loader uses; if no variable names them, also those of browsers."""
    machine = Machine(root, environment)
    files = [file.path for file in driver_files(machine) if file.left_out is None]
    if any(machine.variable(name) for name in NAMED_FILES):
        return files
    return files + [file for name in _ELSEWHERE if (file := machine.path(name)).is_file()]


def name_missing(files: Iterable[Path]) -> list[str]:
    """Return the names of the known drivers that have none of the files."""
    names = [file.name for file in files]
    return [driver for driver, beginnings in KNOWN.items() if not _any_begins(names, beginnings)]


def _any_begins(names: Sequence[str], beginnings: tuple[str, ...]) -> bool:
    return any(name.startswith(beginnings) for name in names)
