"""Find all libraries that are missing for a driver; the dynamic loader names only the first one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from ..host.libraries import load_problem
from ..host.machine import Machine
from .elf import needed_libraries

_CONFIGURATION = "/etc/ld.so.conf"
_FOLDERS = ("/lib", "/usr/lib", "/lib64", "/usr/lib64", "/usr/local/lib", "/usr/local/nvidia/lib64", "/usr/lib/wsl/lib")
_NOT_FOUND = "cannot open shared object file: No such file"


def missing_libraries(
    library: str, machine: Machine, why_not_loaded: Callable[[str], str | None] = load_problem
) -> tuple[str, ...]:
    """Return the names of the libraries that are not found when a library is loaded, of those that these need too.

    The function loads every library that the driver needs, so it belongs into a process of its own. A library that itself is
    not found is the only one.
    """
    missing: dict[str, None] = {}
    seen: set[str] = set()

    def look(name: str) -> None:
        if name in seen:
            return
        seen.add(name)
        problem = why_not_loaded(name)
        if problem is None:
            return
        path = find_library(name, machine)
        if path is None:
            if _NOT_FOUND in problem:
                missing[name] = None
            return
        for needed in needed_libraries(path):
            look(needed)

    look(library)
    return tuple(missing)


def find_library(name: str, machine: Machine) -> Path | None:
    """Return the file of a library as the dynamic loader of Linux finds it, None where there is none."""
    if "/" in name:
        return Path(name) if Path(name).is_file() else None
    return next((folder / name for folder in _folders(machine) if (folder / name).is_file()), None)


def _folders(machine: Machine) -> Iterator[Path]:
    yield from (Path(text) for text in machine.variable("LD_LIBRARY_PATH").split(os.pathsep) if text)
    yield from _configured(machine.path(_CONFIGURATION), machine, depth=2)
    for name in _FOLDERS:
        yield machine.path(name)
        yield from sorted(machine.path(name).glob("*-linux-gnu*"))


def _configured(path: Path, machine: Machine, depth: int) -> Iterator[Path]:
    """Yield the folders of a configuration of the dynamic loader, and of the files that it includes."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        text = line.partition("#")[0].strip()
        if text.startswith("include ") and depth:
            pattern = text.removeprefix("include ").strip()
            base, name = os.path.split(pattern if pattern.startswith("/") else f"/etc/{pattern}")
            for included in sorted(machine.path(base).glob(name)):
                yield from _configured(included, machine, depth - 1)
        elif text.startswith("/"):
            yield machine.path(text)
