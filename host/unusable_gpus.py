"""Find GPUs that are certainly present although Vulkan lists no device of them.

Only these signs count, which no machine without a GPU shows:

- A device node of NVIDIA's kernel driver, ``/dev/nvidia0``: the kernel driver makes it for a GPU. If the Vulkan loader reads
  a driver file of NVIDIA's whose library does not load, that is the reason. The file alone is no sign: images for containers
  have it, whether or not the machine has such a GPU. Mesa's files for AMD and Intel are installed everywhere.
- A render node, ``/dev/dri/renderD128``, whose kernel driver is one for GPUs with a Vulkan driver. Virtual machines and
  servers have nodes of other drivers for their consoles, so a node without a known kernel driver does not count.
- NVIDIA's CUDA library of WSL2, which Windows puts there with the driver of such a GPU.

The two kinds of nodes and the CUDA library do not count if an environment variable chooses the drivers: a GPU can be left
out on purpose.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from .driver_files import FILTERS, NAMED_FILES, driver_files, is_for_other_programs, load_problem
from .machine import Machine

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

WSL_DEVICE = "/dev/dxg"
"""The device node by which WSL2 reaches the GPUs of Windows."""

WSL_CUDA = "/usr/lib/wsl/lib/libcuda.so.1"
"""The library that WSL2 has if Windows has NVIDIA's driver."""


def unusable_gpus(machine: Machine, why_not_loaded: Callable[[str], str | None] = load_problem) -> list[str]:
    """Return a clause for each GPU that is certainly present, on a machine on which Vulkan lists no GPU at all.

    `why_not_loaded` is called with the library of each driver file of NVIDIA's; see `load_problem`.
    """
    nvidia = nvidia_nodes(machine)
    found = []
    for file in driver_files(machine) if nvidia else []:
        if file.is_nvidia and file.library is not None and file.left_out is None:
            problem = why_not_loaded(file.library)
            if problem is not None and not is_for_other_programs(problem):
                found.append(f"{file.path} names NVIDIA's driver {file.library}, which does not load ({problem})")
    if any(machine.variable(name) for name in (*NAMED_FILES, *FILTERS)):
        return found
    if nvidia and not found:
        found.append(_clause(nvidia[0], "NVIDIA"))
    for node in render_nodes(machine):
        maker = KERNEL_DRIVERS.get(kernel_driver(node, machine) or "")
        if maker is not None and not (maker == "NVIDIA" and found):
            found.append(_clause(node, maker))
    if not found and machine.path(WSL_DEVICE).exists() and machine.path(WSL_CUDA).exists():
        found.append("Windows has NVIDIA's driver, and WSL2 has no Vulkan driver for the GPU")
    return found


def _clause(node: Path, maker: str) -> str:
    if not os.access(node, os.R_OK | os.W_OK):
        return f"{node} is a GPU of {maker}, and this user may not open it"
    return f"{node} is a GPU of {maker}, and Vulkan lists no device of it"


def nvidia_nodes(machine: Machine) -> list[Path]:
    """Return the device nodes of NVIDIA GPUs, one a GPU."""
    return sorted(path for path in machine.path("/dev").glob("nvidia*") if path.name.removeprefix("nvidia").isdecimal())


def render_nodes(machine: Machine) -> list[Path]:
    """Return the render nodes of the kernel's graphics drivers."""
    return sorted(machine.path("/dev/dri").glob("renderD*"))


def kernel_driver(node: Path, machine: Machine) -> str | None:
    """Return the name of the kernel driver of a render node; None if the kernel does not report it."""
    try:
        return machine.path(f"/sys/class/drm/{node.name}/device/driver").resolve(strict=True).name
    except (OSError, RuntimeError):
        return None
