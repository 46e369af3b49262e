"""Test `vkssim doctor` in processes of its own: on lavapipe, beside a broken driver, and without a driver or a loader."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vkssim.doctor.driver_files import driver_files
from vkssim.doctor.system import Machine

from .doctor.libraries import broken_library
from .support.commands import vkssim_process
from .support.machines import write_driver_file

NAMED = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")
CASES = ("float_psnr", "float_psnr of 10 bits")
"""The known results that the trial computes: their kernels compile soonest. Each call's self-test computes those of its own."""
FEWER_CASES = f"""
from vkssim.backends import known_answers
known_answers.CASES = [case for case in known_answers.CASES if case.name in {CASES}]
from vkssim.doctor import devices
devices._FEATURES = ("float_psnr",)
"""


def _lavapipe_file() -> Path:
    return next(file.path for file in driver_files(Machine()) if "lvp" in file.path.name)


@pytest.fixture(scope="module")
def beside_a_broken_driver(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The diagnosis of lavapipe beside a driver file of NVIDIA's whose library lacks others, and the names of those."""
    folder = tmp_path_factory.mktemp("doctor")
    missing = broken_library(folder / "libGLX_nvidia.so.0")
    broken = write_driver_file(folder / "nvidia_icd.json", str(folder / "libGLX_nvidia.so.0"))
    files = f"{broken}:{_lavapipe_file()}"
    (folder / "sitecustomize.py").write_text(FEWER_CASES)  # the process of the trial imports it too
    environment = {**dict.fromkeys(NAMED, files), "VKSSIM_DEVICE": "", "PYTHONPATH": str(folder)}
    process = vkssim_process("doctor", "--json", "--seconds", "250", environment=environment)
    assert process.returncode == 0, process.stderr.decode()
    return json.loads(process.stdout), missing


def test_the_device_scores(beside_a_broken_driver: tuple[dict[str, Any], tuple[str, ...]]) -> None:
    found, _ = beside_a_broken_driver
    assert found["scores"] is True
    (device,) = found["devices"]["devices"]
    assert device["name"].startswith("llvmpipe")
    assert device["trial"]["scores"] is True
    assert device["trial"]["checked"] == len(CASES)
    assert device["trial"]["seconds_to_first_score"] > 0
    assert found["devices"]["chosen"] == 0
    assert found["loader"]["found"] is True
    assert {"system", "drivers", "gpus", "decoders", "extras"} <= set(found)


def test_the_broken_driver_is_named_with_all_that_it_lacks(
    beside_a_broken_driver: tuple[dict[str, Any], tuple[str, ...]],
) -> None:
    found, missing = beside_a_broken_driver
    nvidia, lavapipe = found["drivers"]["files"]
    assert set(nvidia["missing"]) == set(missing)
    assert lavapipe["problem"] is None
    assert any(finding["level"] == "warning" and missing[1] in finding["text"] for finding in found["drivers"]["findings"])


def test_a_machine_without_a_driver(tmp_path: Path) -> None:
    process = vkssim_process("doctor", environment=dict.fromkeys(NAMED, str(tmp_path / "none.json")))
    said = process.stdout.decode()
    assert process.returncode == 1
    assert f"{tmp_path / 'none.json'}: it cannot be read" in said
    assert "correct or unset VK_DRIVER_FILES" in said
    assert said.splitlines()[-2:] == [
        "   X vkssim has no Vulkan device that it can use.",
        "  -> `--backend cpu` scores without Vulkan, more slowly",
    ]
    assert b"Traceback" not in process.stderr


def test_a_machine_without_the_loader(tmp_path: Path) -> None:
    (tmp_path / "vulkan.py").write_text("raise OSError('cannot load library libvulkan.so')")
    process = vkssim_process("doctor", "--json", environment={"PYTHONPATH": str(tmp_path)})
    found = json.loads(process.stdout)
    assert process.returncode == 1
    assert (found["scores"], found["loader"]["found"]) == (False, False)
    (finding,) = found["loader"]["findings"]
    assert finding["level"] == "error"
    assert finding["advice"]


def test_a_variable_that_names_no_device() -> None:
    environment = {"VKSSIM_DEVICE": "voodoo", **dict.fromkeys(NAMED, str(_lavapipe_file()))}
    process = vkssim_process("doctor", "--seconds", "1", environment=environment)
    assert process.returncode == 1
    assert "VKSSIM_DEVICE 'voodoo' matches no device" in process.stdout.decode()
