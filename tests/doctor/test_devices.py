"""Test what is said of devices and of their trials."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from vkssim.doctor import devices
from vkssim.doctor.devices import DeviceTrial, devices_section, try_devices
from vkssim.doctor.diagnosis import _summary
from vkssim.doctor.findings import Finding, Level
from vkssim.doctor.in_subprocess import Send
from vkssim.doctor.survey import Survey
from vkssim.host.devices import DEVICE_VARIABLE, DeviceKind

from ..host.made_up import device_info as listed
from ..support.machines import machine

GPU = listed(0, "GeForce RTX 4090")
OLD = listed(1, "Old GPU", lacks=("a compute queue",))
SOFTWARE = listed(2, "llvmpipe", kind=DeviceKind.CPU)
GOOD = DeviceTrial(1.25, 21)
WRONG = DeviceTrial(1.25, 3, wrong="computes wrong numbers")
SLOW = DeviceTrial(failure="it did not finish within 9 s")
CRASHED = DeviceTrial(1.25, 4, failure="it ended its process by SIGSEGV", doing="self-test 5 of 21: float_psnr")


def _findings(root: Path, survey: Survey, trials: dict[int, DeviceTrial], **environment: str) -> list[Finding]:
    return list(devices_section(machine(root, **environment), survey, trials).findings)


def test_each_device_is_tried_and_the_chosen_one_first(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[tuple[str, float]] = []
    steps: list[str] = []

    def run(work: object, arguments: tuple[str], seconds: float, heard: Send) -> None:
        tried.append((*arguments, seconds))
        for field in fields(GOOD):
            heard(field.name, getattr(GOOD, field.name))

    monkeypatch.setattr(devices, "run_in_process", run)
    survey = Survey(has_loader=True, devices=[GPU, OLD, SOFTWARE], chosen=2)
    assert try_devices(survey, 9.0, steps.append) == {0: GOOD, 2: GOOD}
    assert tried == [(str(SOFTWARE.uuid), 9.0), (str(GPU.uuid), 9.0)], "a device that lacks something is not tried"
    opening = "opening the device and compiling its kernels"
    assert steps == [f"{name}: {opening}" for name in ("llvmpipe", "llvmpipe", "GeForce RTX 4090", "GeForce RTX 4090")]


def test_devices_and_why_one_is_chosen(tmp_path: Path) -> None:
    survey = Survey(has_loader=True, devices=[GPU, OLD, SOFTWARE], chosen=0)
    gpu, old, software, chosen = _findings(tmp_path, survey, {0: GOOD, 2: SLOW})
    assert gpu.level is Level.OK
    assert gpu.text.endswith("first score after 1.2 s, all 21 known results right")
    assert (old.level, "it lacks a compute queue" in old.text) == (Level.WARNING, True)
    assert software.level is Level.WARNING
    assert "gives no score: it did not finish within 9 s (opening the device and compiling" in software.text
    assert "`--seconds`" in str(software.advice)
    assert chosen.text == "vkssim chooses device 0, GeForce RTX 4090: it is the first GPU that can be used"


@pytest.mark.parametrize(
    ("listed", "chosen", "environment", "because"),
    [
        ([GPU], 0, {}, "it is the GPU"),
        ([listed(0, "llvmpipe", kind=DeviceKind.CPU)], 0, {}, "Vulkan lists no GPU"),
        (
            [listed(0, "Old", lacks=("x",)), listed(1, "llvmpipe", kind=DeviceKind.CPU)],
            1,
            {},
            "no GPU has what vkssim needs",
        ),
        ([GPU, OLD, SOFTWARE], 2, {DEVICE_VARIABLE: "llvmpipe"}, "VKSSIM_DEVICE is llvmpipe"),
    ],
)
def test_the_reason_of_the_choice(
    tmp_path: Path, listed: list[object], chosen: int, environment: dict[str, str], because: str
) -> None:
    survey = Survey(has_loader=True, devices=listed, chosen=chosen)  # type: ignore[arg-type]
    assert because in _findings(tmp_path, survey, {}, **environment)[-1].text


@pytest.mark.parametrize(("trial", "scores"), [(GOOD, True), (CRASHED, True), (WRONG, False), (SLOW, False)])
def test_the_chosen_device_decides(tmp_path: Path, trial: DeviceTrial, scores: bool) -> None:
    survey = Survey(has_loader=True, devices=[GPU, SOFTWARE], chosen=0)
    device = _findings(tmp_path, survey, {0: trial, 2: GOOD})[0]
    assert _summary(survey, {0: trial, 2: GOOD})[0] is scores
    assert device.level is (Level.OK if trial is GOOD else Level.WARNING if scores else Level.ERROR)
    assert (device.advice is None) is (trial is GOOD)


def test_no_device(tmp_path: Path) -> None:
    failure = "listing the devices: it ended its process by SIGSEGV; with a.json alone: it ended its process by SIGSEGV"
    (finding,) = _findings(tmp_path, Survey(has_loader=True, failure=failure), {})
    assert finding == Finding(Level.ERROR, failure)
    (finding,) = _findings(tmp_path, Survey(loader_problem="libvulkan.so.1: cannot open"), {})
    assert finding.text == "without the Vulkan loader there is no device"
    scores, summary = _summary(Survey(), {})
    assert not scores
    assert "--backend cpu" in str(summary.advice)
