"""ci/drivers: it finds drivers and names those that are absent, it notices wrong numbers, and it ends what does not end."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from vkssim.backends import open_device as open_device_module
from vkssim.backends.known_answers import CASES
from vkssim.backends.open_device import open_device
from vkssim.host import executor
from vkssim.host.api import vk
from vkssim.host.device import Device
from vkssim.shaders import load_module

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "scripts"))

import check_drivers  # noqa: E402 - scripts/ is no package
import driver_checks  # noqa: E402
import subgroups  # noqa: E402
from check_drivers import NAMES, DriverRow, find_driver_files  # noqa: E402

AGREEING = dict.fromkeys(NAMES, 1.0)


def _touch(*files: Path) -> None:
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("{}")


def test_files_are_found_where_the_loader_and_browsers_have_them(tmp_path: Path) -> None:
    files = [
        tmp_path / "etc/vulkan/icd.d/amd_icd64.json",
        tmp_path / "usr/share/vulkan/icd.d/lvp_icd.x86_64.json",
        tmp_path / "usr/lib/chromium/vk_swiftshader_icd.json",
    ]
    _touch(*files)
    assert find_driver_files({}, tmp_path) == files


def test_lavapipe_offers_the_sizes_of_its_vectors(device: Device) -> None:
    assert subgroups.sizes_of(device.info) == (4, 8, 16)
    assert subgroups.environment_of(device.info, 16) == {"LP_NATIVE_VECTOR_WIDTH": "512"}


def test_a_required_size_reaches_every_kernel(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """The size of this device is required, as another device's would be: the numbers stay, and the driver accepts it."""
    case = next(case for case in CASES if case.name == "float_psnr")
    expected = case.numbers(None)
    sizes: list[int] = []
    create = vk.vkCreateComputePipelines

    def seen(*arguments: Any) -> Any:
        for info in arguments[3]:
            kind = "VkPipelineShaderStageRequiredSubgroupSizeCreateInfo *"
            sizes.append(vk.ffi.cast(kind, info.stage.pNext).requiredSubgroupSize)
        return create(*arguments)

    monkeypatch.setattr(vk, "vkCreateComputePipelines", seen)
    other = replace(device.info, name="another driver's device", subgroup_size=99)
    with subgroups.required(other, device.info.subgroup_size):
        assert case.numbers(None) == expected
    assert sizes
    assert set(sizes) == {device.info.subgroup_size}


def test_all_cases_run_on_the_device_that_has_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """On another device these kernels are undefined: NVIDIA's driver never finishes them."""
    opened: list[Device] = []
    monkeypatch.setattr(driver_checks, "CASES", [case for case in CASES if not case.name.startswith("float_")])
    monkeypatch.setattr(executor.Executor, "__init__", _noting(opened, executor.Executor.__init__))
    with driver_checks._compiled_once():
        assert driver_checks.self_test() == ""
    assert len(opened) > 2
    assert len(set(map(id, opened))) == 1


def test_a_device_for_sharing_has_kernels_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where hardware decodes, frames are written by another API, which needs such a device. lavapipe stands in for one here."""
    monkeypatch.setattr(driver_checks, "open_device", lambda stack, selector, *, sharing: open_device(stack, selector))
    with driver_checks._compiled_once(), ExitStack() as stack:
        opened: Any = open_device_module
        ordinary, again = (opened.open_device(stack, None) for _ in range(2))
        asked = opened.open_device(stack, None, sharing=True)
        assert ordinary is again
        assert asked is not ordinary
        built: Any = executor
        kept, own = (built.PipelineBuilder(device, stack, load_module) for device in (ordinary, asked))
        assert kept is built.PipelineBuilder(ordinary, stack, load_module)
        assert own is not kept


def _noting(opened: list[Device], begin: Callable[..., None]) -> Callable[..., None]:
    def noting(made: executor.Executor, device: Device, *arguments: Any, **options: Any) -> None:
        opened.append(device)
        begin(made, device, *arguments, **options)

    return noting


def test_wrong_numbers_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = next(case for case in CASES if case.name.startswith("float_psnr"))
    wrong = replace(right, name="a wrong case", right=(right.right[0] + 0.001,))
    monkeypatch.setattr(driver_checks, "CASES", (right, wrong))
    assert driver_checks.self_test() == "a wrong case"
    assert driver_checks.loss_step() == ""
    monkeypatch.setattr(driver_checks, "GRADIENT_TOLERANCE", 0.0)
    assert "the gradient is off by" in driver_checks.loss_step()


def _run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, row: DriverRow | None) -> Result:
    """Run the command with one driver, of which `row` is found; None is a driver without a device."""
    _touch(tmp_path / "driver.json")
    described = {"name": "Made Up", "driver": "driver 3", "sizes": {"8": {}}}
    monkeypatch.setattr(check_drivers, "describe", lambda _: described if row else None)
    monkeypatch.setattr(check_drivers, "check", lambda *_: row)
    return CliRunner().invoke(check_drivers.main, ["--icd", str(tmp_path / "driver.json")])


def test_the_exit_code_says_whether_drivers_agree(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """0 if they do, 1 if one does not, 2 without a driver."""
    result = _run(monkeypatch, tmp_path, DriverRow("Made Up, driver 3", 8, AGREEING))
    assert (result.exit_code, "agree" in result.stdout) == (0, True)
    result = _run(monkeypatch, tmp_path, DriverRow("Made Up, driver 3", 8, AGREEING, ["loss: the value is off by 1.0e-02"]))
    assert (result.exit_code, "DISAGREE" in result.stdout) == (1, True)
    assert "Made Up, driver 3, subgroups of 8: loss: the value is off by 1.0e-02" in result.stdout
    assert _run(monkeypatch, tmp_path, None).exit_code == 2


def test_each_check_has_a_process_with_the_driver_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What it sends becomes the row; so does the reason for which its process ended. tests/doctor/test_apart.py has those."""

    def run(work: object, arguments: tuple[str, int], seconds: float, heard: Any, environment: dict[str, str | None]) -> Any:
        assert (work, seconds, environment["VK_DRIVER_FILES"]) == (driver_checks.run, 60.0, str(tmp_path))
        assert (environment["VKSSIM_DEVICE"], environment["LP_NATIVE_VECTOR_WIDTH"]) == (None, "256")
        if arguments[0] == "gate":
            return "it did not finish within 60 s"
        heard("problem", "wrong" if arguments[0] == "loss" else "")
        heard("seconds", float(arguments[1]))
        return None

    monkeypatch.setattr(check_drivers, "run_in_process", run)
    row = check_drivers.check(tmp_path, "Made Up", 8, {"LP_NATIVE_VECTOR_WIDTH": "256"}, 60.0)
    assert row.seconds == {**dict.fromkeys(NAMES, 8.0), "gate": 0.0}
    assert row.problems == ["loss: wrong", "gate: it did not finish within 60 s"]
    assert row.cells()[-3:] == ["8 s FAILS", "0 s FAILS", "DISAGREE"]
