"""Find the packages that install the Vulkan loader, drivers and missing libraries, for the distribution of a machine."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..host.machine import Machine

_INSTALL = {"debian": "apt install", "fedora": "dnf install", "arch": "pacman -S", "darwin": "brew install"}
_LOADER = {
    "debian": "libvulkan1 mesa-vulkan-drivers",
    "fedora": "vulkan-loader mesa-vulkan-drivers",
    "arch": "vulkan-icd-loader vulkan-swrast",
    "darwin": "vulkan-loader molten-vk",
}
_DRIVERS = {
    "debian": "mesa-vulkan-drivers",
    "fedora": "mesa-vulkan-drivers",
    "arch": "vulkan-swrast",
    "darwin": "molten-vk",
}
_WINDOWS = "install the driver of the GPU's vendor, which brings the Vulkan loader (vulkan-1.dll)"
_FAMILIES = {"ubuntu": "debian", "rhel": "fedora", "centos": "fedora"}

_DEBIAN = {"libGLdispatch.so.0": "libglvnd0", "libxml2.so.2": "libxml2", "libz.so.1": "zlib1g"}
"""Packages of Debian and Ubuntu that are not named by the rule of their policy."""
_LLVM = re.compile(r"libLLVM(?:-|\.so\.)(\d+)(?:[.\w]*)$")


def distribution(machine: Machine) -> str | None:
    """Return the family of a machine's distribution: a key of the tables above, "win32", or None if it is unknown."""
    if machine.platform in ("darwin", "win32"):
        return machine.platform
    try:
        text = machine.path("/etc/os-release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    found = dict(re.findall(r"^(ID|ID_LIKE)=(.*)$", text, re.MULTILINE))
    names = [name for key in ("ID", "ID_LIKE") for name in found.get(key, "").strip("\"'").split()]
    return next((_FAMILIES.get(name, name) for name in names if _FAMILIES.get(name, name) in _INSTALL), None)


def install_loader(machine: Machine) -> str:
    """Return the advice that installs the Vulkan loader and a driver."""
    return _install(_LOADER, machine, "install the Vulkan loader and a Vulkan driver")


def install_driver(machine: Machine) -> str:
    """Return the advice that installs a driver: Mesa's, which has lavapipe for any CPU, or on macOS MoltenVK."""
    return _install(_DRIVERS, machine, "install the driver of the GPU, or Mesa's drivers, lavapipe among them")


def _install(packages: dict[str, str], machine: Machine, otherwise: str) -> str:
    family = distribution(machine)
    if family == "win32":
        return _WINDOWS
    return otherwise if family is None else f"{_INSTALL[family]} {packages[family]}"


def install_libraries(libraries: Iterable[str], machine: Machine) -> str:
    """Return the advice that installs missing libraries, which are given by their names, such as ``libX11.so.6``."""
    names = list(dict.fromkeys(libraries))
    family = distribution(machine)
    driver = [name for name in names if "nvidia" in name]
    system = [name for name in names if "nvidia" not in name]
    advice = []
    if driver:
        advice.append(f"install NVIDIA's driver completely, in the version of the kernel's: it lacks {', '.join(driver)}")
    if system and family == "fedora":  # its packages say which libraries they provide
        advice.append("dnf install " + " ".join(f"'{name}()(64bit)'" for name in system))
    elif system:
        packages = " ".join(map(debian_package, system))
        advice.append(
            f"apt install {packages}" if family == "debian" else f"install {', '.join(system)} (in Debian: {packages})"
        )
    return "; ".join(advice)


def debian_package(library: str) -> str:
    """Return the package of Debian that has a library, such as ``libx11-6``; most names follow Debian's policy."""
    llvm = _LLVM.match(library)
    if llvm:
        return f"libllvm{llvm[1]}"
    name, _, version = library.partition(".so")
    hyphen = "-" * name[-1:].isdigit()
    return _DEBIAN.get(library, f"{name}{hyphen}{version.lstrip('.')}".replace("_", "-").lower())
