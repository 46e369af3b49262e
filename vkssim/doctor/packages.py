"""Name the packages that install the Vulkan loader, drivers and missing libraries, for the distribution of a machine."""

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

_DEBIAN = {
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libGLX.so.0": "libglx0",
    "libGLdispatch.so.0": "libglvnd0",
    "libOpenGL.so.0": "libopengl0",
    "libX11-xcb.so.1": "libx11-xcb1",
    "libX11.so.6": "libx11-6",
    "libXau.so.6": "libxau6",
    "libXdmcp.so.6": "libxdmcp6",
    "libXext.so.6": "libxext6",
    "libdrm.so.2": "libdrm2",
    "libdrm_amdgpu.so.1": "libdrm-amdgpu1",
    "libdrm_intel.so.1": "libdrm-intel1",
    "libelf.so.1": "libelf1",
    "libexpat.so.1": "libexpat1",
    "libgbm.so.1": "libgbm1",
    "libstdc++.so.6": "libstdc++6",
    "libvulkan.so.1": "libvulkan1",
    "libwayland-client.so.0": "libwayland-client0",
    "libxcb-dri3.so.0": "libxcb-dri3-0",
    "libxcb-present.so.0": "libxcb-present0",
    "libxcb-randr.so.0": "libxcb-randr0",
    "libxcb-shm.so.0": "libxcb-shm0",
    "libxcb-sync.so.1": "libxcb-sync1",
    "libxcb-xfixes.so.0": "libxcb-xfixes0",
    "libxcb.so.1": "libxcb1",
    "libxml2.so.2": "libxml2",
    "libxshmfence.so.1": "libxshmfence1",
    "libz.so.1": "zlib1g",
    "libzstd.so.1": "libzstd1",
}
"""The packages of Debian and Ubuntu, by the libraries that drivers need."""
_LLVM = re.compile(r"libLLVM(?:-|\.so\.)(\d+)(?:[.\w]*)$")


def distribution(machine: Machine) -> str | None:
    """Return the family of a machine's distribution: a key of the tables above, "win32", or None for another one."""
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
        known = [package for name in system if (package := debian_package(name)) is not None]
        unknown = [name for name in system if debian_package(name) is None]
        if known and family == "debian":
            advice.append(f"apt install {' '.join(known)}")
        elif known:
            advice.append(f"install {', '.join(system)} (in Debian: {' '.join(known)})")
        if unknown and (family == "debian" or not known):
            advice.append(
                f"install the package that has {', '.join(unknown)}; `apt-file search {unknown[0]}` finds it on Debian"
            )
    return "; ".join(advice)


def debian_package(library: str) -> str | None:
    """Return the package of Debian that has a library, None where this module does not know it."""
    llvm = _LLVM.match(library)
    return f"libllvm{llvm[1]}" if llvm else _DEBIAN.get(library)
