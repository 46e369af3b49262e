"""Find the files by which the Vulkan loader knows its drivers, and the drivers that this machine does not have."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

_FOLDERS = ("/usr/local/etc", "/usr/local/share", "/etc", "/usr/share", "/opt/homebrew/etc", "/opt/homebrew/share")

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
    """Return the files that VK_DRIVER_FILES or VK_ICD_FILENAMES name, otherwise those in the folders that the loader reads."""
    for variable in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES"):
        if environment.get(variable):
            return [Path(name) for name in environment[variable].split(os.pathsep) if name]
    folders = [root / folder.lstrip("/") / "vulkan/icd.d" for folder in _FOLDERS]
    files = [file for folder in folders for file in sorted(folder.glob("*.json"))]
    return files + [file for name in _ELSEWHERE if (file := root / name.lstrip("/")).is_file()]


def name_missing(files: Iterable[Path]) -> list[str]:
    """Return the names of the known drivers that have none of the files."""
    names = [file.name for file in files]
    return [driver for driver, beginnings in KNOWN.items() if not _any_begins(names, beginnings)]


def _any_begins(names: Sequence[str], beginnings: tuple[str, ...]) -> bool:
    return any(name.startswith(beginnings) for name in names)
