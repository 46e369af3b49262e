"""Test what is said of driver files and of the loader."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from vkssim.doctor.driver_files import driver_files
from vkssim.doctor.drivers import drivers_section, loader_section
from vkssim.doctor.findings import DiagnosisSection, Finding, Level
from vkssim.doctor.survey import Survey
from vkssim.doctor.system import Machine

from ..host.made_up import device_info
from ..support.machines import machine, write_driver_file, write_file
from .registry import Registry

NVIDIA = "libGLX_nvidia.so.0"
NO_X11 = "libX11.so.6: cannot open shared object file: No such file or directory"


def _section(described: Machine, survey: Survey) -> DiagnosisSection:
    return drivers_section(described, driver_files(described), survey)


@pytest.fixture
def debian(tmp_path: Path) -> Machine:
    write_file(tmp_path / "etc/os-release", "ID=debian\n")
    return machine(tmp_path)


def test_a_driver_that_loads(debian: Machine) -> None:
    path = write_driver_file(debian.root / "usr/share/vulkan/icd.d/a.json", "liba.so")
    section = _section(debian, Survey(problems={"liba.so": None}))
    assert section.findings == [Finding(Level.OK, f"{path}: liba.so loads")]
    assert section.facts["files"] == [
        {"path": str(path), "library": "liba.so", "api_version": "1.3.0", "left_out": None, "problem": None, "missing": []}
    ]


@pytest.mark.parametrize(
    ("problem", "missing", "lacks", "advice"),
    [
        # as on a machine with an NVIDIA GPU and without a desktop: the driver is there, and its library does not load
        (NO_X11, ("libX11.so.6", "libXext.so.6"), "; missing: libX11.so.6, libXext.so.6", "apt install libx11-6 libxext6"),
        (f"{NVIDIA}: cannot open", (NVIDIA,), f"; missing: {NVIDIA}", f"install the driver that has {NVIDIA}, or remove {{}}"),
        ("damaged", (), "", "install the driver again"),
    ],
)
def test_a_driver_that_does_not_load(debian: Machine, problem: str, missing: tuple[str], lacks: str, advice: str) -> None:
    path = write_driver_file(debian.root / "usr/share/vulkan/icd.d/nvidia_icd.json", NVIDIA)
    (finding,) = _section(debian, Survey(problems={NVIDIA: problem}, missing={NVIDIA: missing})).findings
    text = f"{path}: {NVIDIA} does not load ({problem}){lacks}"
    assert finding == Finding(Level.WARNING, text, advice.format(path))


def test_files_that_are_not_used(debian: Machine) -> None:
    folder = debian.root / "usr/share/vulkan/icd.d"
    write_driver_file(folder / "a.json", "/usr/lib32/liba.so")
    write_driver_file(folder / "b.json", "libb.so")
    write_file(folder / "c.json", "no JSON")
    described = machine(debian.root, VK_LOADER_DRIVERS_DISABLE="b.*")
    wrong = "/usr/lib32/liba.so: wrong ELF class: ELFCLASS32"
    chosen, *found = _section(described, Survey(problems={"/usr/lib32/liba.so": wrong})).findings
    assert chosen.text == "the environment chooses the drivers: VK_LOADER_DRIVERS_DISABLE=b.*"
    assert [finding.level for finding in found] == [Level.NOTE, Level.NOTE, Level.WARNING]
    assert "is for other programs" in found[0].text
    assert "VK_LOADER_DRIVERS_DISABLE leaves it out" in found[1].text
    assert (found[2].text, found[2].advice) == (f"{folder / 'c.json'}: it is not a JSON file", "correct or remove the file")


def test_no_driver_file(debian: Machine) -> None:
    (finding,) = _section(debian, Survey()).findings
    assert finding.level is Level.ERROR
    assert str(debian.root / "usr/share/vulkan/icd.d") in finding.text
    assert finding.advice == "apt install mesa-vulkan-drivers"


def test_no_driver_file_in_windows_registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "winreg", Registry({}))
    windows = machine(tmp_path, "win32")
    (finding,) = _section(windows, Survey()).findings
    assert finding.level is Level.ERROR
    assert r"HKEY_LOCAL_MACHINE\SOFTWARE\Khronos\Vulkan\Drivers" in finding.text
    (finding,) = _section(windows, Survey(devices=[device_info()])).findings
    assert (finding.level, finding.advice) == (Level.NOTE, None)


def test_the_loader(debian: Machine) -> None:
    survey = Survey(has_loader=True, loader_path="/usr/lib/libvulkan.so.1.3.239", loader_version="1.3.239")
    (finding,) = loader_section(debian, survey).findings
    assert (finding.level, finding.advice) == (Level.OK, None)
    assert finding.text == "the loader of Vulkan 1.3.239 is installed: /usr/lib/libvulkan.so.1.3.239"
    problem = "libvulkan.so.1: cannot open shared object file: No such file or directory"
    (finding,) = loader_section(debian, Survey(loader_problem=problem)).findings
    assert finding.level is Level.ERROR
    assert problem in finding.text
    assert finding.advice == "apt install libvulkan1 mesa-vulkan-drivers"
    (finding,) = loader_section(debian, Survey(failure="loading a.so: it ended its process by SIGSEGV")).findings
    assert "was not tried" in finding.text
