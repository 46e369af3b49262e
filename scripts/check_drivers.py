#!/usr/bin/env python3
"""Run the checks of numbers on every Vulkan driver of this machine, one at a time, and print a table; see `ci/drivers`."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import driver_checks
from exit_codes import AGREE, COULD_NOT_RUN, MISMATCH

from vkssim.doctor.driver_files import ADDED_FILES, driver_files
from vkssim.doctor.in_subprocess import run_in_process
from vkssim.doctor.system import Machine
from vkssim.host.devices import DEVICE_VARIABLE
from vkssim.host.gpus import FILTERS, NAMED_FILES
from vkssim.host.vectors import CACHE_VARIABLES, WIDTH_VARIABLE

NAMES = tuple(driver_checks.CHECKS)
DESCRIBE_SECONDS = 60.0

_ELSEWHERE = (
    "/usr/lib/chromium/vk_swiftshader_icd.json",
    "/opt/google/chrome/vk_swiftshader_icd.json",
)
"""Files of drivers that the loader does not look for: SwiftShader comes with browsers."""

KNOWN = {
    "lavapipe": "lvp_icd",
    "SwiftShader": "vk_swiftshader_icd",
    "RADV (AMD)": "radeon_icd",
    "AMDVLK (AMD)": "amd_icd",
    "ANV (Intel)": "intel_icd",
    "NVIDIA": "nvidia_icd",
    "NVK (NVIDIA)": "nouveau_icd",
    "MoltenVK (Apple)": "MoltenVK_icd",
    "Dozen (WSL2)": "dzn_icd",
}
"""Drivers by name, with the beginning of their files' names."""


@dataclass
class DriverRow:
    """The result of one driver with one size of subgroups: the seconds of each check, and the problems."""

    device: str
    subgroup: int
    seconds: dict[str, float] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def cells(self) -> list[str]:
        """Return the row of the table."""
        wrong = {problem.partition(":")[0] for problem in self.problems}
        times = [f"{self.seconds[name]:.0f} s{' FAILS' if name in wrong else ''}" for name in NAMES]
        return [self.device, str(self.subgroup), *times, "agree" if not self.problems else "DISAGREE"]


def find_driver_files(environment: Mapping[str, str], root: Path = Path("/")) -> list[Path]:
    """Return the files that the loader uses; if no variable names them, also those of browsers."""
    machine = Machine(root, environment)
    files = [file.path for file in driver_files(machine) if file.left_out is None]
    if any(machine.variable(name) for name in NAMED_FILES):
        return files
    return files + [file for name in _ELSEWHERE if (file := machine.path(name)).is_file()]


def name_missing(files: Iterable[Path]) -> list[str]:
    """Return the names of the known drivers that have none of the files."""
    names = [file.name for file in files]
    return [driver for driver, beginning in KNOWN.items() if not any(name.startswith(beginning) for name in names)]


def describe(file: Path) -> dict[str, Any] | None:
    """Return the description of a driver's first usable device; None if it has none here."""
    found: dict[str, Any] = {}
    run_in_process(driver_checks.describe, (), DESCRIBE_SECONDS, found.__setitem__, _environment(file))
    return found or None


def check(file: Path, device: str, subgroup: int, variables: dict[str, str], limit: float) -> DriverRow:
    """Run all checks of a driver with a size of subgroups, each in a process of its own and within `limit` seconds."""
    row = DriverRow(device, subgroup)
    for name in NAMES:
        found: dict[str, Any] = {}
        with tempfile.TemporaryDirectory(prefix="vkssim-drivers-", ignore_cleanup_errors=True) as cache:
            environment = {**_environment(file), **variables, "XDG_CACHE_HOME": cache}
            failure = run_in_process(driver_checks.run, (name, subgroup), limit, found.__setitem__, environment)
        problem, row.seconds[name] = (found["problem"], found["seconds"]) if failure is None else (failure, 0.0)
        if problem:
            row.problems.append(f"{name}: {problem}")
        click.echo(f"  {name}: {problem or 'agrees'}, {row.seconds[name]} s", err=True)
    return row


def _environment(file: Path) -> dict[str, str | None]:
    """Return the changes of the environment after which a process has one driver, and nothing else chooses about drivers."""
    dropped = (DEVICE_VARIABLE, ADDED_FILES, *FILTERS, WIDTH_VARIABLE, *CACHE_VARIABLES)
    return {**dict.fromkeys(dropped), **dict.fromkeys(NAMED_FILES, str(file))}


def as_text(rows: Sequence[DriverRow]) -> str:
    """Return the table: a line for each driver and size of subgroups, with the seconds of each check."""
    table = [["device", "subgroup", *NAMES, "verdict"], *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in table) for column in range(len(table[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in table)


@click.command(context_settings={"help_option_names": ["--help"], "max_content_width": 100})
@click.option("--icd", "files", multiple=True, type=click.Path(path_type=Path, exists=True), help="A driver's file.")
@click.option("--limit", default=900.0, show_default=True, help="Seconds for one check.")
def main(files: tuple[Path, ...], limit: float) -> None:
    """Check the numbers of every Vulkan driver of this machine, one at a time.

    Exit codes: 0 all agree; 1 one disagrees or does not end; 2 no driver could be checked.
    """
    found = list(files) or find_driver_files(os.environ)
    rows: list[DriverRow] = []
    for file in found:
        described = describe(file)
        if described is None:
            click.echo(f"{file}: it has no device here", err=True)
            continue
        device = f"{described['name']}, {described['driver']}"
        for size, variables in described["sizes"].items():
            click.echo(f"{file}: {device}, subgroups of {size}", err=True)
            rows.append(check(file, device, int(size), variables, limit))
    click.echo(as_text(rows))
    for row in rows:
        for problem in row.problems:
            click.echo(f"{row.device}, subgroups of {row.subgroup}: {problem}")
    if not files:
        click.echo(f"not on this machine: {', '.join(name_missing(found)) or 'none of those that are known'}")
    sys.exit(COULD_NOT_RUN if not rows else MISMATCH if any(row.problems for row in rows) else AGREE)


if __name__ == "__main__":
    main()
