"""Test that advice names the packages of the machine's distribution."""

from __future__ import annotations

from pathlib import Path

import pytest

from vkssim.doctor.drivers import debian_package, distribution, install_driver, install_libraries
from vkssim.doctor.system import Machine

from ..support.machines import machine, write_file

SYSTEMS = {
    "debian": "PRETTY_NAME=Debian\nID=debian\n",
    "ubuntu": 'ID=ubuntu\nID_LIKE=debian\nUBUNTU_CODENAME="noble"\n',
    "mint": 'ID="linuxmint"\nID_LIKE="ubuntu debian"\n',
    "fedora": "ID=fedora\n",
    "rocky": 'ID="rocky"\nID_LIKE="rhel centos fedora"\n',
    "arch": "ID=arch\n",
    "other": "ID=plan9\n",
}


def _machine(root: Path, system: str) -> Machine:
    if system in SYSTEMS:
        write_file(root / "etc/os-release", SYSTEMS[system])
        return machine(root)
    return machine(root, platform=system)


@pytest.mark.parametrize(
    ("system", "family", "loader", "driver"),
    [
        ("debian", "debian", "apt install libvulkan1 mesa-vulkan-drivers", "apt install mesa-vulkan-drivers"),
        ("ubuntu", "debian", "apt install libvulkan1 mesa-vulkan-drivers", "apt install mesa-vulkan-drivers"),
        ("mint", "debian", "apt install libvulkan1 mesa-vulkan-drivers", "apt install mesa-vulkan-drivers"),
        ("fedora", "fedora", "dnf install vulkan-loader mesa-vulkan-drivers", "dnf install mesa-vulkan-drivers"),
        ("rocky", "fedora", "dnf install vulkan-loader mesa-vulkan-drivers", "dnf install mesa-vulkan-drivers"),
        ("arch", "arch", "pacman -S vulkan-icd-loader vulkan-swrast", "pacman -S vulkan-swrast"),
        ("darwin", "darwin", "brew install vulkan-loader molten-vk", "brew install molten-vk"),
        ("win32", "win32", "driver of the GPU's vendor", "driver of the GPU's vendor"),
        ("other", None, "install the Vulkan loader and a Vulkan driver", "lavapipe"),
        ("linux", None, "install the Vulkan loader and a Vulkan driver", "lavapipe"),
    ],
)
def test_the_loader_and_a_driver(tmp_path: Path, system: str, family: str | None, loader: str, driver: str) -> None:
    described = _machine(tmp_path, system)
    assert distribution(described) == family
    assert loader in install_driver(described, with_loader=True)
    assert driver in install_driver(described)


@pytest.mark.parametrize(
    ("system", "libraries", "advice"),
    [
        ("debian", ["libX11.so.6", "libXext.so.6", "libX11.so.6"], "apt install libx11-6 libxext6"),
        ("fedora", ["libX11.so.6", "libq.so.1"], "dnf install 'libX11.so.6()(64bit)' 'libq.so.1()(64bit)'"),
        ("other", ["libX11.so.6"], "install libX11.so.6 (in Debian: libx11-6)"),
        ("debian", [], ""),
        (
            "debian",
            ["libnvidia-glcore.so.550.54", "libXext.so.6"],  # parts of NVIDIA's driver come from its own packages
            "install NVIDIA's driver completely, in the version of the kernel's: it lacks libnvidia-glcore.so.550.54;"
            " apt install libxext6",
        ),
    ],
)
def test_missing_libraries(tmp_path: Path, system: str, libraries: list[str], advice: str) -> None:
    assert install_libraries(libraries, _machine(tmp_path, system)) == advice


@pytest.mark.parametrize(
    ("library", "package"),
    [
        ("libLLVM-15.so.1", "libllvm15"),
        ("libLLVM.so.19.1", "libllvm19"),
        ("libX11-xcb.so.1", "libx11-xcb1"),
        ("libX11.so.6", "libx11-6"),
        ("libdrm_amdgpu.so.1", "libdrm-amdgpu1"),
        ("libstdc++.so.6", "libstdc++6"),
        ("libxcb-dri3.so.0", "libxcb-dri3-0"),
        ("libz.so.1", "zlib1g"),
    ],
)
def test_names_of_debian(library: str, package: str) -> None:
    assert debian_package(library) == package
