"""ci/drivers: it notices wrong numbers, and it ends what does not end."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import check_drivers
import driver_checks
import pytest
import subgroups
from check_drivers import NAMES, DriverRow
from click.testing import CliRunner

from vkssim.backends import sessions as open_device_module
from vkssim.backends.known_answers import CASES
from vkssim.backends.sessions import open_device
from vkssim.host import executor
from vkssim.host.api import vk
from vkssim.host.device import Device
from vkssim.shaders import load_module

UNIFORM = "float_ssim=scale=1:window=uniform8"
KINDS = (
    UNIFORM,
    f"{UNIFORM} from its map",
    "the largest sample of 10 bits",
    "misplaced samples of Cb and Cr of 8 bits",
    "SSIM and its gradient",
)
"""A case of each kind, which has its own way to open a device."""


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


def test_wrong_numbers_are_noticed_on_the_one_device_that_has_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """On another device these kernels are undefined: NVIDIA's driver never finishes them."""
    cases = [case for case in CASES if case.name in KINDS]
    assert len(cases) == len(KINDS)
    wrong = replace(cases[0], name="a wrong case", right=(cases[0].right[0] + 0.001,))
    opened: list[Device] = []
    begin: Any = executor.Executor.__init__
    monkeypatch.setattr(
        executor.Executor,
        "__init__",
        lambda made, device, *how, **options: opened.append(device) or begin(made, device, *how, **options),
    )
    monkeypatch.setattr(driver_checks, "CASES", (*cases, wrong))
    with driver_checks._compiled_once():
        assert driver_checks.self_test() == "a wrong case"
        assert driver_checks.loss_step() == ""
        monkeypatch.setattr(driver_checks, "GRADIENT_TOLERANCE", 0.0)
        assert "the gradient is off by" in driver_checks.loss_step()
    assert len(opened) > len(KINDS)
    assert len(set(map(id, opened))) == 1


def test_a_device_for_sharing_has_kernels_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """If hardware decodes, frames are written by another API, which needs such a device. lavapipe stands in for one here."""
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


@pytest.mark.parametrize(
    ("problems", "code", "said"),
    [([], 0, "agree"), (["loss: off by 1.0e-02"], 1, "Made Up, driver 3, subgroups of 8: loss: off by 1.0e-02"), (None, 2, "")],
)
def test_the_exit_code_says_whether_drivers_agree(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, problems: list[str] | None, code: int, said: str
) -> None:
    """None is a driver without a device."""
    described = {"name": "Made Up", "driver": "driver 3", "sizes": {"8": {}}}
    row = DriverRow("Made Up, driver 3", 8, dict.fromkeys(NAMES, 1.0), problems or [])
    monkeypatch.setattr(check_drivers, "describe", lambda _: None if problems is None else described)
    monkeypatch.setattr(check_drivers, "check", lambda *_: row)
    result = CliRunner().invoke(check_drivers.main, ["--icd", str(tmp_path)])
    assert (result.exit_code, said in result.stdout, "DISAGREE" in result.stdout) == (code, True, bool(problems))


def test_each_check_has_a_process_with_the_driver_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What it sends becomes the row; so does the reason for which its process ended (tests/doctor/test_in_subprocess.py)."""

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
