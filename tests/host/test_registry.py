"""Test which driver files are found in made-up registries of Windows."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from vkssim.host.driver_files import ADAPTERS, CLASSES, COMPONENTS, DRIVERS, VALUE, driver_files

from ..support.machines import Registry, machine, write_driver_file

PATH, PATHS, NUMBER = Registry.REG_SZ, Registry.REG_MULTI_SZ, Registry.REG_DWORD


def _names(folder: Path, monkeypatch: pytest.MonkeyPatch, keys: dict[str, Any], **environment: str) -> list[str]:
    """Return the names of the driver files that are found with a registry."""
    monkeypatch.setitem(sys.modules, "winreg", Registry(keys))
    return [file.path.name for file in driver_files(machine(folder, "win32", **environment))]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """The paths of four drivers' files."""
    return {name: str(write_driver_file(tmp_path / f"{name}.json", "a.dll")) for name in ("amd", "intel", "nvidia", "lavapipe")}


def test_files_of_adapters_come_before_those_of_other_drivers(
    tmp_path: Path, files: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = {
        DRIVERS: {files["lavapipe"]: (0, NUMBER)},
        rf"{CLASSES}\{COMPONENTS}\0001": {VALUE: (files["intel"], PATH)},
        rf"{CLASSES}\{ADAPTERS}\0000": {VALUE: ([files["nvidia"], files["amd"]], PATHS)},
    }
    assert _names(tmp_path, monkeypatch, keys) == ["nvidia.json", "amd.json", "intel.json", "lavapipe.json"]


def test_a_driver_that_is_disabled_is_not_read(tmp_path: Path, files: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    values = {files["amd"]: (1, NUMBER), files["intel"]: (0, NUMBER), files["nvidia"]: ("0", PATH)}
    assert _names(tmp_path, monkeypatch, {DRIVERS: values}) == ["intel.json"]


def test_what_a_removed_adapter_left_is_not_read(
    tmp_path: Path, files: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that a user registered, and that is missing, is a mistake, which is shown."""
    gone = str(tmp_path / "gone.json")
    assert _names(tmp_path, monkeypatch, {}) == []
    keys = {rf"{CLASSES}\{ADAPTERS}\0000": {VALUE: (gone, PATH)}}
    assert _names(tmp_path, monkeypatch, keys) == []
    assert _names(tmp_path, monkeypatch, {DRIVERS: {gone: (0, NUMBER)}}) == ["gone.json"]


def test_keys_without_a_driver_or_closed_to_the_user_are_passed_over(
    tmp_path: Path, files: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = {
        rf"{CLASSES}\{ADAPTERS}\Configuration": None,
        rf"{CLASSES}\{ADAPTERS}\0000": {"DriverDesc": ("Basic Display", PATH)},
        rf"{CLASSES}\{ADAPTERS}\0001": {VALUE: (7, NUMBER)},
        rf"{CLASSES}\{ADAPTERS}\0002": {VALUE: (files["amd"], PATH)},
    }
    assert _names(tmp_path, monkeypatch, keys) == ["amd.json"]


def test_a_variable_takes_the_place_of_the_registry(
    tmp_path: Path, files: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = {DRIVERS: {files["lavapipe"]: (0, NUMBER)}}
    assert _names(tmp_path, monkeypatch, keys, VK_DRIVER_FILES=files["amd"]) == ["amd.json"]
    assert _names(tmp_path, monkeypatch, keys, VK_ADD_DRIVER_FILES=files["amd"]) == ["amd.json", "lavapipe.json"]
