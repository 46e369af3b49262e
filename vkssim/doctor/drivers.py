"""Report whether the Vulkan loader is installed, which driver files it reads, and why a driver's library does not load.

The advice names packages of the machine's distribution.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from ..host.gpus import FILTERS, NAMED_FILES
from .driver_files import DRIVERS, DriverFile, search_folders
from .findings import DiagnosisSection, Finding, Level
from .survey import Survey
from .system import Machine

_FOR_OTHER_PROGRAMS = ("wrong ELF class", "incompatible architecture", "not a valid Win32 application")
"""Parts of messages about a library for programs of another word size or CPU."""


def loader_section(machine: Machine, survey: Survey) -> DiagnosisSection:
    """Return the findings about the loader."""
    facts = {"found": survey.has_loader, "path": survey.loader_path, "version": survey.loader_version}
    if survey.has_loader:
        path = "" if survey.loader_path is None else f": {survey.loader_path}"
        finding = Finding(Level.OK, f"the loader of Vulkan {survey.loader_version or '1.0'} is installed{path}")
    elif survey.loader_problem is None:
        finding = Finding(Level.NOTE, "the loader was not tried, because the survey of the drivers ended before")
    else:
        text = f"the Vulkan loader cannot be loaded: {survey.loader_problem}"
        finding = Finding(Level.ERROR, text, install_driver(machine, with_loader=True))
    return DiagnosisSection("loader", "Vulkan loader", [finding], facts)


def drivers_section(machine: Machine, files: Sequence[DriverFile], survey: Survey) -> DiagnosisSection:
    """Return the findings about each driver file."""
    choosing = [name for name in (*NAMED_FILES, *FILTERS) if machine.variable(name)]
    findings = []
    if choosing:
        named = ", ".join(f"{name}={machine.variable(name)}" for name in choosing)
        findings.append(Finding(Level.NOTE, f"the environment chooses the drivers: {named}"))
    findings += [_finding(file, machine, survey) for file in files]
    if not files:
        place = ", ".join(str(folder) for folder in search_folders(machine))
        if choosing:
            place = f"the files that {choosing[0]} names"
        elif machine.platform == "win32":
            place = rf"the registry (HKEY_LOCAL_MACHINE\{DRIVERS}, and the keys of display adapters)"
        text = f"there is no driver file in {place}"
        if survey.devices:  # the loader of Windows also reads files of applications
            findings.append(Finding(Level.NOTE, f"{text}, and Vulkan lists devices all the same"))
        else:
            findings.append(Finding(Level.ERROR, text, install_driver(machine)))
    return DiagnosisSection("drivers", "Vulkan drivers", findings, {"files": [_plain(file, survey) for file in files]})


def _finding(file: DriverFile, machine: Machine, survey: Survey) -> Finding:
    if file.left_out is not None:
        return Finding(Level.NOTE, f"{file.path} is not used: {file.left_out}")
    if file.problem is not None:
        named = next((name for name in NAMED_FILES if machine.variable(name)), None)
        advice = "correct or remove the file" if named is None else f"correct or unset {named}, which names the file"
        return Finding(Level.WARNING, f"{file.path}: {file.problem}", advice)
    library = str(file.library)
    problem = survey.problems.get(library)
    if problem is None:
        checked = "loads" if library in survey.problems else "was not tried"
        return Finding(Level.OK if library in survey.problems else Level.NOTE, f"{file.path}: {library} {checked}")
    if any(words in problem for words in _FOR_OTHER_PROGRAMS):
        return Finding(Level.NOTE, f"{file.path} is for other programs: {problem}")
    missing = survey.missing.get(library, ())
    advice = install_libraries(missing, machine) or "install the driver again"
    if missing == (library,):
        advice = f"install the driver that has {library}, or remove {file.path}"
    lacks = f"; missing: {', '.join(missing)}" if missing else ""
    return Finding(Level.WARNING, f"{file.path}: {library} does not load ({problem}){lacks}", advice)


def _plain(file: DriverFile, survey: Survey) -> dict[str, Any]:
    library = file.library or ""
    return {
        "path": str(file.path),
        "library": file.library,
        "api_version": file.api_version,
        "left_out": file.left_out,
        "problem": file.problem or survey.problems.get(library),
        "missing": list(survey.missing.get(library, ())),
    }


# -- packages ---------------------------------------------------------------------------------------------------------

_INSTALL = {
    "debian": ("apt install", "libvulkan1", "mesa-vulkan-drivers"),
    "fedora": ("dnf install", "vulkan-loader", "mesa-vulkan-drivers"),
    "arch": ("pacman -S", "vulkan-icd-loader", "vulkan-swrast"),
    "darwin": ("brew install", "vulkan-loader", "molten-vk"),
}
"""The command that installs packages, the Vulkan loader, and a driver: Mesa's, which has lavapipe for any CPU, or MoltenVK."""

_FAMILIES = {"ubuntu": "debian", "rhel": "fedora", "centos": "fedora"}

_DEBIAN = {"libGLdispatch.so.0": "libglvnd0", "libxml2.so.2": "libxml2", "libz.so.1": "zlib1g"}
"""Packages of Debian and Ubuntu that are not named by the rule of their policy."""
_LLVM = re.compile(r"libLLVM(?:-|\.so\.)(\d+)(?:[.\w]*)$")


def distribution(machine: Machine) -> str | None:
    """Return the family of a machine's distribution: a key of the tables above, "win32", or None if it is unknown."""
    if machine.platform in ("darwin", "win32"):
        return machine.platform
    release = machine.os_release
    names = (_FAMILIES.get(name, name) for key in ("ID", "ID_LIKE") for name in release.get(key, "").split())
    return next((name for name in names if name in _INSTALL), None)


def install_driver(machine: Machine, *, with_loader: bool = False) -> str:
    """Return the advice that installs a driver for any machine, and the Vulkan loader if requested."""
    family = distribution(machine)
    if family == "win32":
        return "install the driver of the GPU's vendor, which brings the Vulkan loader (vulkan-1.dll)"
    if family is not None:
        command, loader, driver = _INSTALL[family]
        return f"{command} {loader} {driver}" if with_loader else f"{command} {driver}"
    if with_loader:
        return "install the Vulkan loader and a Vulkan driver"
    return "install the driver of the GPU, or Mesa's drivers, lavapipe among them"


def install_libraries(libraries: Iterable[str], machine: Machine) -> str:
    """Return the advice that installs missing libraries, which are given by their names, such as ``libX11.so.6``."""
    names = list(dict.fromkeys(libraries))
    driver = [name for name in names if "nvidia" in name]
    system = [name for name in names if "nvidia" not in name]
    advice = []
    if driver:
        advice.append(f"install NVIDIA's driver completely, in the version of the kernel's: it lacks {', '.join(driver)}")
    packages = " ".join(map(debian_package, system))
    family = distribution(machine)
    if system and family == "debian":
        advice.append(f"apt install {packages}")
    elif system and family == "fedora":  # its packages say which libraries they provide
        advice.append("dnf install " + " ".join(f"'{name}()(64bit)'" for name in system))
    elif system:
        advice.append(f"install {', '.join(system)} (in Debian: {packages})")
    return "; ".join(advice)


def debian_package(library: str) -> str:
    """Return the package of Debian that has a library, such as ``libx11-6``; most names follow Debian's policy."""
    llvm = _LLVM.match(library)
    if llvm:
        return f"libllvm{llvm[1]}"
    name, _, version = library.partition(".so")
    hyphen = "-" * name[-1:].isdigit()
    return _DEBIAN.get(library, f"{name}{hyphen}{version.lstrip('.')}".replace("_", "-").lower())
