"""Report the versions of vkssim and its dependencies, and the kind of machine."""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from importlib import metadata

import av
import numpy as np

from ..host.machine import Machine
from ..utils.version import __version__
from .findings import DiagnosisSection, Finding, Level

_KERNEL = "/proc/sys/kernel/osrelease"
_CONTAINER_FILES = ("/.dockerenv", "/run/.containerenv")


def is_container(machine: Machine) -> bool:
    """Return whether the machine is a container of Docker, Podman, systemd-nspawn or Kubernetes."""
    variables = any(machine.variable(name) for name in ("container", "KUBERNETES_SERVICE_HOST"))
    return variables or any(machine.path(name).exists() for name in _CONTAINER_FILES)


def is_wsl(machine: Machine) -> bool:
    """Return whether the machine is Windows' subsystem for Linux."""
    return "microsoft" in (_kernel(machine) or "").lower()


def _kernel(machine: Machine) -> str | None:
    with suppress(OSError):
        return machine.path(_KERNEL).read_text(encoding="utf-8", errors="replace").strip()
    return None


def _system(machine: Machine) -> str:
    """Return the name of the operating system with its version."""
    if machine.platform == "linux":
        with suppress(OSError):
            for line in machine.path("/etc/os-release").read_text(encoding="utf-8", errors="replace").splitlines():
                if line.startswith("PRETTY_NAME="):
                    return line.removeprefix("PRETTY_NAME=").strip("\"'")
    if machine.platform == "darwin":
        return f"macOS {platform.mac_ver()[0]}"
    return f"{platform.system()} {platform.release()}"


def system_section(machine: Machine) -> DiagnosisSection:
    """Return the versions and the kind of machine."""
    versions = {
        "vkssim": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "av": av.__version__,
        "ffmpeg": av.ffmpeg_version_info,
        "vulkan": _version("vulkan"),
    }
    facts = {
        "versions": versions,
        "system": _system(machine),
        "kernel": _kernel(machine) or platform.release(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "container": is_container(machine),
        "wsl": is_wsl(machine),
    }
    kinds = [word for word, holds in (("a container", facts["container"]), ("WSL", facts["wsl"])) if holds]
    lines = [
        f"vkssim {versions['vkssim']}, Python {versions['python']}, NumPy {versions['numpy']}, PyAV {versions['av']} with"
        f" FFmpeg {versions['ffmpeg']}, vulkan {versions['vulkan'] or 'missing'}",
        f"{facts['system']}, kernel {facts['kernel']}, {facts['processor']} with {facts['cores']} cores"
        + "".join(f", in {kind}" for kind in kinds),
    ]
    findings = [Finding(Level.NOTE, line) for line in lines]
    if versions["vulkan"] is None:
        findings.append(Finding(Level.ERROR, "the Python package vulkan is not installed", "pip install vulkan"))
    return DiagnosisSection("system", "System", findings, facts)


def _version(package: str) -> str | None:
    with suppress(metadata.PackageNotFoundError):
        return metadata.version(package)
    return None
