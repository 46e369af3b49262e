"""Test which driver files the Vulkan loader reads on made-up machines, and what is read of them."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from vkssim.doctor.driver_files import (
    ADAPTERS,
    CLASSES,
    COMPONENTS,
    DRIVERS,
    VALUE,
    driver_files,
    search_folders,
)
from vkssim.doctor.system import Machine
from vkssim.host.gpus import FILTERS, NAMED_FILES

from ..support.commands import vkssim_process
from ..support.machines import machine, write_driver_file, write_file
from .registry import Registry


def _names(described: Machine) -> list[str]:
    return [file.path.name for file in driver_files(described)]


def _fill(root: Path) -> dict[str, Path]:
    """Write a driver's file into each folder that the loader searches on Linux."""
    folders = {
        "config_home": root / "home/user/.config",
        "config": root / "etc/xdg",
        "etc": root / "etc",
        "data_home": root / "home/user/.local/share",
        "local": root / "usr/local/share",
        "share": root / "usr/share",
    }
    return {name: write_driver_file(base / f"vulkan/icd.d/{name}.json", "lib.so") for name, base in folders.items()}


def test_folders_are_searched_in_the_order_of_the_loader(tmp_path: Path) -> None:
    _fill(tmp_path)
    expected = ["config_home.json", "config.json", "etc.json", "data_home.json", "local.json", "share.json"]
    assert _names(machine(tmp_path)) == expected


def test_the_order_is_that_of_the_loader_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loader itself says which folders it searches; on Debian they are those of most distributions."""
    own = {"XDG_CONFIG_HOME": str(tmp_path / "config"), "XDG_DATA_HOME": str(tmp_path / "data")}
    for name in (*NAMED_FILES, *FILTERS):  # checks of lavapipe alone name its file
        monkeypatch.delenv(name, raising=False)
    process = vkssim_process("devices", environment={**own, "VK_LOADER_DEBUG": "all"})
    searched = dict.fromkeys(re.findall(r"(/\S+/vulkan/icd\.d)(?=\s)", process.stderr.decode()))
    environment = {name: text for name, text in {**os.environ, **own}.items() if not name.startswith("VK_")}
    assert [str(folder) for folder in search_folders(Machine(environment=environment))] == list(searched)


def test_variables_of_xdg_replace_the_folders(tmp_path: Path) -> None:
    for name in ("own", "first", "second"):
        write_driver_file(tmp_path / name / f"vulkan/icd.d/{name}.json", "lib.so")
    _fill(tmp_path)
    described = machine(
        tmp_path, XDG_DATA_HOME=str(tmp_path / "own"), XDG_DATA_DIRS=f"{tmp_path / 'second'}{os.pathsep}{tmp_path / 'first'}"
    )
    assert _names(described) == ["config_home.json", "config.json", "etc.json", "own.json", "second.json", "first.json"]


def test_variables_name_files_and_folders(tmp_path: Path) -> None:
    """The newer variable counts. Files that are added come first."""
    paths = {name: str(path) for name, path in _fill(tmp_path).items()}
    for variable in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES"):
        described = machine(
            tmp_path, **{variable: os.pathsep.join((paths["share"], os.path.dirname(paths["etc"]), "/none.json"))}
        )
        assert _names(described) == ["share.json", "etc.json", "none.json"]
        assert driver_files(described)[2].problem == "it cannot be read (No such file or directory)"
    assert _names(machine(tmp_path, VK_DRIVER_FILES=paths["etc"], VK_ICD_FILENAMES=paths["share"])) == ["etc.json"]
    assert _names(machine(tmp_path, VK_ADD_DRIVER_FILES=paths["share"]))[:2] == ["share.json", "config_home.json"]
    assert _names(machine(tmp_path, VK_ADD_DRIVER_FILES=paths["share"], VK_DRIVER_FILES=paths["etc"])) == ["etc.json"]


@pytest.mark.parametrize(
    ("variable", "value", "used"),
    [
        ("VK_LOADER_DRIVERS_SELECT", "*share*,ETC.json", ["etc.json", "share.json"]),
        ("VK_LOADER_DRIVERS_DISABLE", "*", []),
        ("VK_LOADER_DRIVERS_DISABLE", "*config*,*home*", ["etc.json", "local.json", "share.json"]),
    ],
)
def test_filters_leave_files_out(tmp_path: Path, variable: str, value: str, used: list[str]) -> None:
    _fill(tmp_path)
    files = driver_files(machine(tmp_path, **{variable: value}))
    assert [file.path.name for file in files if file.left_out is None] == used
    assert {file.left_out for file in files if file.path.name not in used} == {f"{variable} leaves it out"}


@pytest.mark.parametrize(
    ("library", "expected"),
    [
        ("libGLX_nvidia.so.0", "libGLX_nvidia.so.0"),
        ("/usr/lib/a.so", "/usr/lib/a.so"),
        ("../lib/b.so", "{}/vulkan/lib/b.so"),
    ],
)
def test_libraries_by_name_by_path_and_beside_the_file(tmp_path: Path, library: str, expected: str) -> None:
    base = tmp_path / "usr/share"
    write_driver_file(base / "vulkan/icd.d/a.json", library)
    (file,) = driver_files(machine(tmp_path))
    assert (file.library, file.api_version, file.problem) == (expected.format(base), "1.3.0", None)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "it is not a JSON file"),
        ("[" * 100_000, "it is not a JSON file"),
        ("\udcff", "it is not a JSON file"),
        ("[]", "it names no library"),
        ('{"ICD": 3}', "it names no library"),
        ('{"ICD": {"library_path": 3}}', "it names no library"),
        ('{"ICD": {}}', "it names no library"),
    ],
)
def test_files_that_name_no_library(tmp_path: Path, content: str, problem: str) -> None:
    path = write_file(tmp_path / "usr/share/vulkan/icd.d/a.json")
    path.write_bytes(content.encode(errors="surrogateescape"))
    (file,) = driver_files(machine(tmp_path))
    assert file.library is None
    assert problem in str(file.problem)


# -- the registry of Windows ------------------------------------------------------------------------------------------

ADAPTER, COMPONENT = rf"{CLASSES}\{ADAPTERS}", rf"{CLASSES}\{COMPONENTS}"
PATH, PATHS, NUMBER = Registry.REG_SZ, Registry.REG_MULTI_SZ, Registry.REG_DWORD


@pytest.mark.parametrize(
    ("keys", "variables", "names"),
    [
        (
            {
                DRIVERS: {"lavapipe": (0, NUMBER)},
                rf"{COMPONENT}\0001": {VALUE: ("intel", PATH)},
                rf"{ADAPTER}\0000": {VALUE: (["nvidia", "amd"], PATHS)},
            },
            {},
            ["nvidia", "amd", "intel", "lavapipe"],
        ),
        ({DRIVERS: {"amd": (1, NUMBER), "intel": (0, NUMBER), "nvidia": ("0", PATH)}}, {}, ["intel"]),  # one is disabled
        ({}, {}, []),
        ({rf"{ADAPTER}\0000": {VALUE: ("gone", PATH)}}, {}, []),  # of an adapter that was removed
        ({DRIVERS: {"gone": (0, NUMBER)}}, {}, ["gone"]),  # a mistake of the user's, which is shown
        (
            {
                rf"{ADAPTER}\Configuration": None,  # closed to the user
                rf"{ADAPTER}\0000": {"DriverDesc": ("Basic Display", PATH)},
                rf"{ADAPTER}\0001": {VALUE: (7, NUMBER)},
                rf"{ADAPTER}\0002": {VALUE: ("amd", PATH)},
            },
            {},
            ["amd"],
        ),
        ({DRIVERS: {"lavapipe": (0, NUMBER)}}, {"VK_DRIVER_FILES": "amd"}, ["amd"]),
        ({DRIVERS: {"lavapipe": (0, NUMBER)}}, {"VK_ADD_DRIVER_FILES": "amd"}, ["amd", "lavapipe"]),
    ],
)
def test_files_that_the_registry_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: dict[str, Any], variables: dict[str, str], names: list[str]
) -> None:
    """Those of adapters come before those of other drivers."""
    for name in ("amd", "intel", "nvidia", "lavapipe"):
        write_driver_file(tmp_path / name, "a.dll")
    monkeypatch.chdir(tmp_path)  # so that a name is a path
    monkeypatch.setitem(sys.modules, "winreg", Registry(keys))
    assert _names(machine(tmp_path, "win32", **variables)) == names
