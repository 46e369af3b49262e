"""The machine that a diagnosis looks at, the versions of vkssim and its dependencies, and which extras are installed."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

import av
import numpy as np
from packaging.requirements import Requirement

from ..utils.version import __version__
from .findings import DiagnosisSection, Finding, Level


@dataclass(frozen=True)
class Machine:
    """A file system below `root`, with the environment of a process and the name of the platform as `sys.platform` has it.

    The default is the machine on which this process runs. Tests describe others.
    """

    root: Path = Path("/")
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    platform: str = sys.platform

    def path(self, name: str) -> Path:
        """Return the path of a file that has the absolute path `name` on the machine."""
        return self.root / name.lstrip("/")

    def variable(self, name: str) -> str:
        """Return the value of an environment variable; empty if it is not set."""
        return self.environment.get(name, "")

    @property
    def is_container(self) -> bool:
        """Return whether the machine is a container of Docker, Podman, systemd-nspawn or Kubernetes."""
        variables = any(self.variable(name) for name in ("container", "KUBERNETES_SERVICE_HOST"))
        return variables or any(self.path(name).exists() for name in ("/.dockerenv", "/run/.containerenv"))

    @property
    def is_wsl(self) -> bool:
        """Return whether the machine is Windows' subsystem for Linux."""
        return "microsoft" in (self.kernel or "").lower()

    @property
    def kernel(self) -> str | None:
        """Return the release of the Linux kernel; None if there is none."""
        with suppress(OSError):
            return self.path("/proc/sys/kernel/osrelease").read_text(encoding="utf-8", errors="replace").strip()
        return None

    @property
    def os_release(self) -> dict[str, str]:
        """Return the fields by which a distribution of Linux names itself; none if it does not."""
        with suppress(OSError):
            text = self.path("/etc/os-release").read_text(encoding="utf-8", errors="replace")
            return {name: value.strip(" \"'") for name, value in re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE)}
        return {}


def _system(machine: Machine) -> str:
    """Return the name of the operating system with its version."""
    if machine.platform == "linux" and (name := machine.os_release.get("PRETTY_NAME")):
        return name
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
        "vulkan": _installed_version("vulkan"),
    }
    facts = {
        "versions": versions,
        "system": _system(machine),
        "kernel": machine.kernel or platform.release(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "container": machine.is_container,
        "wsl": machine.is_wsl,
    }
    kinds = ", in a container" * machine.is_container + ", in WSL" * machine.is_wsl
    lines = [
        f"vkssim {versions['vkssim']}, Python {versions['python']}, NumPy {versions['numpy']}, PyAV {versions['av']} with"
        f" FFmpeg {versions['ffmpeg']}, vulkan {versions['vulkan'] or 'missing'}",
        f"{facts['system']}, kernel {facts['kernel']}, {facts['processor']} with {facts['cores']} cores{kinds}",
    ]
    findings = [Finding(Level.NOTE, line) for line in lines]
    if versions["vulkan"] is None:
        findings.append(Finding(Level.ERROR, "the Python package vulkan is not installed", "pip install vulkan"))
    return DiagnosisSection("system", "System", findings, facts)


# -- extras -----------------------------------------------------------------------------------------------------------

PURPOSES = {
    "report": "HTML pages, maps, Parquet, bd-rate and correlate",
    "remote": "clips and results at s3://, gs:// and https://",
    "ray": "a cluster",
    "cuda": "frames that an NVIDIA GPU decodes stay there",
    "torch": "losses of PyTorch's tensors",
}
"""The extras for users, and what each is for. All other extras are for developers."""


def _installed_version(package: str) -> str | None:
    """Return the version of an installed package, None if it is not installed."""
    with suppress(metadata.PackageNotFoundError):
        return metadata.version(package)
    return None


def missing_packages(platform: str) -> dict[str, list[str]]:
    """Return the missing packages of each extra for users, such as ``"jinja2>=3.1"``; packages too old count as missing.

    The package's metadata lists them. `platform` is as in `sys.platform`.
    """
    missing: dict[str, list[str]] = {extra: [] for extra in PURPOSES}
    for text in metadata.requires("vkssim") or []:
        requirement = Requirement(text)
        version = _installed_version(requirement.name)
        if version is None or not requirement.specifier.contains(version, prereleases=True):
            for extra, packages in missing.items():
                if requirement.marker and requirement.marker.evaluate({"extra": extra, "sys_platform": platform}):
                    packages.append(text.partition(";")[0].strip())
    return missing


def extras_section(missing: Mapping[str, list[str]]) -> DiagnosisSection:
    """Return which extras are installed."""
    findings = []
    for extra, packages in missing.items():
        text = f"{extra} ({PURPOSES[extra]})"
        if packages:
            findings.append(Finding(Level.NOTE, f"{text} lacks {', '.join(packages)}", f"pip install 'vkssim[{extra}]'"))
        else:
            findings.append(Finding(Level.OK, f"{text} is installed"))
    return DiagnosisSection("extras", "Extras", findings, {"missing": missing})
