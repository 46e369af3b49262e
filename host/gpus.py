"""Find GPUs that are certainly present, whether or not Vulkan lists a device of them.

Only these signs count, which no machine without a GPU shows:

- A device node of NVIDIA's kernel driver, ``/dev/nvidia0``: the kernel driver makes it for a GPU. NVIDIA's driver files for
  Vulkan are no sign: images for containers have them, whether or not the machine has such a GPU.
- A render node, ``/dev/dri/renderD128``, whose kernel driver is one for GPUs with a Vulkan driver. Virtual machines and
  servers have nodes of other drivers for their consoles, so a node without a known kernel driver does not count.
- NVIDIA's CUDA library of WSL2, which Windows puts there with the driver of such a GPU.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

NAMED_FILES = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")
"""The variables that name files of Vulkan drivers in place of the system's. The loader reads only the first one that is set."""

FILTERS = ("VK_LOADER_DRIVERS_SELECT", "VK_LOADER_DRIVERS_DISABLE")
"""The variables by which the loader selects files of drivers by their names, or leaves some out."""

KERNEL_DRIVERS = {
    "amdgpu": "AMD",
    "asahi": "Apple",
    "i915": "Intel",
    "msm": "Qualcomm",
    "nouveau": "NVIDIA",
    "nvidia": "NVIDIA",
    "panfrost": "Arm",
    "panthor": "Arm",
    "powervr": "Imagination",
    "v3d": "Broadcom",
    "xe": "Intel",
}
"""The kernel drivers of GPUs for which there are Vulkan drivers, each with the maker of these GPUs."""

WSL_DEVICE = "dev/dxg"
"""The device node by which WSL2 reaches the GPUs of Windows."""

_WSL_CUDA = "usr/lib/wsl/lib/libcuda.so.1"  # there if Windows has NVIDIA's driver

ROOT = Path("/")


def unlisted_gpus(environment: Mapping[str, str] = os.environ, root: Path = ROOT) -> list[str]:
    """Return a clause for each GPU that is certainly present, on a machine on which Vulkan lists no GPU at all.

    There are none if a variable chooses the drivers: a GPU can be left out on purpose.
    """
    if any(environment.get(name) for name in (*NAMED_FILES, *FILTERS)):
        return []

    gpus = dict.fromkeys(nvidia_nodes(root)[:1], "NVIDIA")
    for node in render_nodes(root):
        maker = KERNEL_DRIVERS.get(kernel_driver(node, root) or "")
        if maker is not None and not (maker == "NVIDIA" and gpus):
            gpus[node] = maker
    if not gpus and (root / WSL_DEVICE).exists() and (root / _WSL_CUDA).exists():
        return ["Windows has NVIDIA's driver, and WSL2 has no Vulkan driver for the GPU"]

    clauses = []
    for node, maker in gpus.items():
        is_open = os.access(node, os.R_OK | os.W_OK)
        reason = "Vulkan lists no device of it" if is_open else "this user may not open it"
        clauses.append(f"{node} is a GPU of {maker}, and {reason}")
    return clauses


def nvidia_nodes(root: Path = ROOT) -> list[Path]:
    """Return the device nodes of NVIDIA GPUs, one a GPU."""
    return sorted(path for path in root.glob("dev/nvidia*") if path.name.removeprefix("nvidia").isdecimal())


def render_nodes(root: Path = ROOT) -> list[Path]:
    """Return the render nodes of the kernel's graphics drivers."""
    return sorted(root.glob("dev/dri/renderD*"))


def kernel_driver(node: Path, root: Path = ROOT) -> str | None:
    """Return the name of the kernel driver of a render node; None if the kernel does not report it."""
    try:
        return (root / f"sys/class/drm/{node.name}/device/driver").resolve(strict=True).name
    except (OSError, RuntimeError):
        return None
