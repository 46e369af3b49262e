"""Report the versions of vkssim and its dependencies, the kind of machine, and which extras of the package are installed."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from contextlib import suppress
from importlib import metadata

import av
import numpy as np
from packaging.requirements import Requirement

from ..utils.version import __version__
from .findings import DiagnosisSection, Finding, Level
from .machine import Machine


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
