"""Report whether the Vulkan loader is installed, which driver files it reads, and why a driver's library does not load."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..host.driver_files import FILTERS, NAMED_FILES, DriverFile, search_folders
from ..host.libraries import is_for_other_programs
from ..host.machine import Machine
from ..host.registry import DRIVERS
from .findings import DiagnosisSection, Finding, Level
from .packages import install_driver, install_libraries, install_loader
from .survey import Survey


def loader_section(machine: Machine, survey: Survey) -> DiagnosisSection:
    """Return the findings about the loader."""
    facts = {"found": survey.has_loader, "path": survey.loader_path, "version": survey.loader_version}
    if survey.has_loader:
        where = "" if survey.loader_path is None else f": {survey.loader_path}"
        finding = Finding(Level.OK, f"the loader of Vulkan {survey.loader_version or '1.0'} is installed{where}")
    elif survey.loader_problem is None:
        finding = Finding(Level.NOTE, "the loader was not tried, because the survey of the drivers ended before")
    else:
        text = f"the Vulkan loader cannot be loaded: {survey.loader_problem}"
        finding = Finding(Level.ERROR, text, install_loader(machine))
    return DiagnosisSection("loader", "Vulkan loader", [finding], facts)


def drivers_section(machine: Machine, files: Sequence[DriverFile], survey: Survey) -> DiagnosisSection:
    """Return the findings about each driver file."""
    findings = [_variables(machine)] if _chosen_by(machine) else []
    findings += [_finding(file, machine, survey) for file in files]
    if not files:
        where = f"the files that {_chosen_by(machine)[0]} names" if _chosen_by(machine) else _searched(machine)
        text = f"there is no driver file in {where}"
        if survey.devices:  # the loader of Windows also reads files of applications
            findings.append(Finding(Level.NOTE, f"{text}, and Vulkan lists devices all the same"))
        else:
            findings.append(Finding(Level.ERROR, text, install_driver(machine)))
    return DiagnosisSection("drivers", "Vulkan drivers", findings, {"files": [_plain(file, survey) for file in files]})


def _searched(machine: Machine) -> str:
    """Return the places in which the loader looks for driver files."""
    if machine.platform == "win32":
        return rf"the registry (HKEY_LOCAL_MACHINE\{DRIVERS}, and the keys of display adapters)"
    return ", ".join(str(folder) for folder in search_folders(machine))


def _chosen_by(machine: Machine) -> list[str]:
    return [name for name in (*NAMED_FILES, *FILTERS) if machine.variable(name)]


def _variables(machine: Machine) -> Finding:
    named = ", ".join(f"{name}={machine.variable(name)}" for name in _chosen_by(machine))
    return Finding(Level.NOTE, f"the environment chooses the drivers: {named}")


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
    if is_for_other_programs(problem):
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
