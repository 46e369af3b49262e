"""Look for GPUs beside Vulkan: device nodes with their rights, containers without graphics, and WSL2.

Problems are only reported if Vulkan lists no GPU: a container whose GPU works needs no other settings.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..host.devices import NVIDIA
from ..host.gpus import WSL_DEVICE, kernel_driver, nvidia_nodes, render_nodes, unlisted_gpus
from .driver_files import DriverFile, files_in
from .drivers import distribution
from .findings import DiagnosisSection, Finding, Level
from .survey import Survey
from .system import Machine

_CAPABILITIES = "NVIDIA_DRIVER_CAPABILITIES"
_ELSEWHERE = ("/usr/local/nvidia/share/vulkan/icd.d", "/usr/local/nvidia/vulkan/icd.d")
"""Folders into which some platforms put NVIDIA's driver file, and which the loader does not read."""
_MOUNTED = "/usr/share/vulkan/icd.d/nvidia_icd.json"


def gpus_section(machine: Machine, files: Sequence[DriverFile], survey: Survey) -> DiagnosisSection:
    """Return the GPUs that are found without Vulkan, and the reasons why Vulkan does not list them."""
    nodes = [
        *render_nodes(machine.root),
        *sorted(machine.path("/dev").glob("nvidia*")),
        *filter(Path.exists, [machine.path(WSL_DEVICE)]),
    ]
    facts = [_plain(node, machine) for node in nodes if not node.is_dir()]
    findings = [_closed(node, machine) for node in facts if not node["can_be_opened"]]
    if not survey.has_gpu:
        findings += [Finding(Level.WARNING, clause) for clause in unlisted_gpus(machine.environment, machine.root)]
    if nvidia_nodes(machine.root) and not any(device.vendor_id == NVIDIA for device in survey.devices):
        findings += _nvidia(machine, files)
    if machine.is_wsl and not survey.has_gpu:
        findings.append(_wsl(machine))
    elif machine.is_container and not facts:
        findings.append(
            Finding(
                Level.NOTE,
                "this is a container without the device nodes of a GPU",
                "for a GPU of NVIDIA: docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=all; for others: docker run --device"
                " /dev/dri",
            )
        )
    if not findings:
        seen = ", ".join(node["path"] for node in facts) or "there are none"
        findings.append(Finding(Level.OK if facts else Level.NOTE, f"device nodes of GPUs: {seen}"))
    return DiagnosisSection("gpus", "GPUs", findings, {"nodes": facts})


def _closed(node: Mapping[str, Any], machine: Machine) -> Finding:
    """Return the finding for a node that this user may not open."""
    mode, group = node["mode"], node["group"]
    if group is None:
        advice = "run as a user who may open it"
    elif machine.is_container:
        advice = f"docker run --group-add {group}"
    else:
        advice = f"sudo usermod -aG {group} $USER, then log in again"
    rights = "" if mode is None else f" (mode {mode}, group {group})"
    return Finding(Level.WARNING, f"this user may not open {node['path']}{rights}", advice)


def _nvidia(machine: Machine, files: Sequence[DriverFile]) -> list[Finding]:
    """Return the reason why Vulkan does not list a GPU whose kernel driver works."""
    findings = []
    given = machine.variable(_CAPABILITIES)
    capabilities = {word.strip() for word in given.split(",")}
    lacks_graphics = machine.is_container and not capabilities & {"all", "graphics"}
    if lacks_graphics:
        setting = f"is {given}" if given else "is not set, which means compute,utility"
        findings.append(
            Finding(
                Level.WARNING,
                f"this is a container, and its {_CAPABILITIES} {setting}; Vulkan needs graphics",
                f"docker run --gpus all -e {_CAPABILITIES}=all",
            )
        )
    if any(file.is_nvidia and file.left_out is None and file.problem is None for file in files):
        return findings
    elsewhere = [path for name in _ELSEWHERE for path in files_in(machine.path(name)) if "nvidia" in path.name]
    text = "the Vulkan loader reads no driver file of NVIDIA's"
    if elsewhere:
        text += f", but there is {elsewhere[0]}"
        findings.append(Finding(Level.WARNING, text, f"export VK_DRIVER_FILES={elsewhere[0]}"))
    elif machine.is_container:
        advice = f"docker run --gpus all -v {_MOUNTED}:{_MOUNTED}:ro, where the host has the file there or in /etc/vulkan/icd.d"
        findings.append(Finding(Level.WARNING, f"{text} (nvidia_icd.json)", advice))
    else:
        advice = "install NVIDIA's driver with its Vulkan part"
        if distribution(machine) == "debian":
            advice = "apt install nvidia-vulkan-icd on Debian, libnvidia-gl-NNN of the driver's version on Ubuntu"
        findings.append(Finding(Level.WARNING, text, advice))
    return findings


def _wsl(machine: Machine) -> Finding:
    if not machine.path(WSL_DEVICE).exists():
        return Finding(
            Level.WARNING,
            f"this is WSL without /{WSL_DEVICE}, so Linux does not reach the GPU of Windows",
            "install the GPU's driver in Windows, run `wsl --update` there, and use WSL2",
        )
    return Finding(
        Level.WARNING,
        "WSL2 offers the GPU of Windows to Vulkan only through Mesa's driver dzn, which the packages of Debian and Ubuntu lack",
        "run vkssim in Windows, or install a Mesa that was built with dzn (vulkan-drivers=microsoft-experimental)",
    )


def _plain(node: Path, machine: Machine) -> dict[str, Any]:
    """Return the facts about a node as values of JSON: its rights in octal digits, and its group, None for that of root."""
    mode = group = None
    with suppress(OSError):  # it is gone
        status = node.stat()
        mode = f"{stat.S_IMODE(status.st_mode):o}"
        try:
            group = node.group()
        except KeyError:
            group = str(status.st_gid)
    return {
        "path": str(node),
        "mode": mode,
        "group": None if group == "root" else group,
        "can_be_opened": os.access(node, os.R_OK | os.W_OK),
        "kernel_driver": kernel_driver(node, machine.root) if node.name.startswith("renderD") else None,
    }
