"""Say whether the Vulkan loader is installed, which one, and how to install it."""

from __future__ import annotations

from ..host.machine import Machine
from .findings import Finding, Level, Section
from .packages import install_loader
from .survey import Survey


def loader_section(machine: Machine, survey: Survey) -> Section:
    """Return what is known of the loader."""
    facts = {"found": survey.has_loader, "path": survey.loader_path, "version": survey.loader_version}
    if survey.has_loader:
        where = "" if survey.loader_path is None else f": {survey.loader_path}"
        finding = Finding(Level.OK, f"the loader of Vulkan {survey.loader_version or '1.0'} is installed{where}")
    elif survey.loader_problem is None:
        finding = Finding(Level.NOTE, "the loader was not tried, because the survey of the drivers ended before")
    else:
        text = f"the Vulkan loader cannot be loaded: {survey.loader_problem}"
        finding = Finding(Level.ERROR, text, install_loader(machine))
    return Section("loader", "Vulkan loader", [finding], facts)
