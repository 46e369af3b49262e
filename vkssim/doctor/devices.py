"""Report the devices that Vulkan lists, and the one that vkssim chooses and why; try each of them.

A trial computes a first score on a device, then checks all of its kernels, in a process of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ..backends.known_answers import SIDE, pictures
from ..backends.open import open_backend
from ..backends.selftest import check_cases
from ..errors import WrongNumbersError
from ..host.devices import DEVICE_VARIABLE, DeviceInfo, DeviceKind, choose_device, list_devices
from ..host.instance import shared_instance
from ..metrics.plane_metrics import FrameMetrics
from ..types import FrameFormat
from .findings import DiagnosisSection, Finding, Level
from .in_subprocess import OUT_OF_TIME, Send, run_in_process
from .survey import Survey
from .system import Machine

_FEATURES = ("float_ms_ssim", "float_ssim")
_OPENING = "opening the device and compiling its kernels"


@dataclass
class DeviceTrial:
    """The result of a trial."""

    seconds_to_first_score: float | None = None
    """The time from loading the driver to the first score of both metrics, compilation included; None without a score."""
    checked: int = 0
    """The number of known results that the device gave."""
    wrong: str | None = None
    """The message about a result that differs."""
    failure: str | None = None
    """The reason why the trial did not end."""
    doing: str = _OPENING
    """The last step."""

    @property
    def scores(self) -> bool:
        """Return whether the device gives scores, and none that is wrong."""
        return self.seconds_to_first_score is not None and self.wrong is None


def make_trial(device: DeviceInfo, seconds: float, on_step: Callable[[str], None]) -> DeviceTrial:
    """Return the result of a trial of a device, which may take so many seconds. `on_step` is called with each step."""
    trial = DeviceTrial()

    def take(name: str, value: Any) -> None:
        setattr(trial, name, value)
        if name == "doing":
            on_step(f"{device.name}: {value}")

    take("doing", trial.doing)
    trial.failure = run_in_process(try_device, (str(device.uuid),), seconds, take)
    return trial


def try_device(send: Send, uuid: str) -> None:
    """Send the fields of a `DeviceTrial`, step by step."""
    luma = FrameFormat.of_bits(SIDE, SIDE, 8)
    planes = FrameMetrics(_FEATURES, [luma]).planes
    began = time.perf_counter()
    try:
        with open_backend("vulkan", planes, device=uuid, batch=1, slots=1) as backend:
            batch = backend.batches[0]
            batch.reference[0][0], batch.distorted[0][0] = pictures()
            backend.submit(batch, 1)
            backend.collect(batch)
        send("seconds_to_first_score", time.perf_counter() - began)

        def starting(number: int, total: int, name: str) -> None:
            send("checked", number - 1)
            send("doing", f"self-test {number} of {total}: {name}")

        device = choose_device(list_devices(shared_instance()), uuid)
        send("checked", check_cases(device, uuid, starting))
        send("doing", "closing the device")
    except WrongNumbersError as error:
        send("wrong", str(error))


def try_devices(survey: Survey, seconds: float, on_step: Callable[[str], None]) -> dict[int, DeviceTrial]:
    """Return a trial of each device that lacks nothing, by the index of the device; the chosen device is tried first."""
    usable = [device for device in survey.devices if not device.lacks]
    usable.sort(key=lambda device: device.index != survey.chosen)
    return {device.index: make_trial(device, seconds, on_step) for device in usable}


def devices_section(machine: Machine, survey: Survey, trials: Mapping[int, DeviceTrial]) -> DiagnosisSection:
    """Return the findings about each device."""
    findings = [_device(device, survey, trials.get(device.index)) for device in survey.devices]
    why = None if survey.chosen is None else reason(machine, survey)
    if survey.failure is not None:
        findings.append(Finding(Level.ERROR, survey.failure))  # the section of the drivers says what to install
    elif not survey.has_loader:
        findings.append(Finding(Level.ERROR, "without the Vulkan loader there is no device"))
    if survey.chosen is not None:
        chosen = survey.devices[survey.chosen]
        findings.append(Finding(Level.NOTE, f"vkssim chooses device {chosen.index}, {chosen.name}: {why}"))
    facts = {
        "devices": [_plain(device, trials.get(device.index)) for device in survey.devices],
        "chosen": survey.chosen,
        "reason": why,
        "failure": survey.failure,
    }
    return DiagnosisSection("devices", "Devices", findings, facts)


def reason(machine: Machine, survey: Survey) -> str:
    """Return why vkssim chooses the device that it chooses."""
    named = machine.variable(DEVICE_VARIABLE)
    if named:
        return f"{DEVICE_VARIABLE} is {named}"
    assert survey.chosen is not None
    if survey.devices[survey.chosen].kind is not DeviceKind.CPU:
        gpus = sum(device.kind is not DeviceKind.CPU for device in survey.devices)
        return "it is the first GPU that can be used" if gpus > 1 else "it is the GPU"
    if survey.has_gpu:
        return "no GPU has what vkssim needs, so that a software device computes"
    return "Vulkan lists no GPU, so that a software device computes"


def _plain(device: DeviceInfo, trial: DeviceTrial | None) -> dict[str, Any]:
    """Return the properties of a device that a diagnosis shows, and its trial, as values of JSON."""
    shown = ("index", "name", "kind", "driver", "uuid", "pci", "vendor_id", "device_id", "api_version", "subgroup_size")
    return {
        **{name: getattr(device, name) for name in (*shown, "max_storage_bytes", "lacks")},
        "kind": device.kind.name.lower(),
        "uuid": str(device.uuid),
        "api_version": ".".join(map(str, device.api_version)),
        "lacks": list(device.lacks),
        "trial": None if trial is None else {"scores": trial.scores, **asdict(trial)},
    }


def _device(device: DeviceInfo, survey: Survey, trial: DeviceTrial | None) -> Finding:
    place = "" if device.pci is None else f", PCI {device.pci}"
    described = _plain(device, trial)
    name = f"{device.index}: {device.name} [{described['kind']}], Vulkan {described['api_version']}, {device.driver}{place}"
    if device.lacks:
        level = Level.NOTE if device.kind is DeviceKind.CPU else Level.WARNING
        text = f"{name} cannot be used: it lacks {', '.join(device.lacks)}"
        return Finding(level, text, "install a newer driver, if there is one for this device")
    if trial is None:
        return Finding(Level.NOTE, name)
    serious = Level.ERROR if device.index == survey.chosen else Level.WARNING
    advice = "`--seconds` allows more time" if OUT_OF_TIME in str(trial.failure) else "update the driver"
    if trial.wrong is not None:
        return Finding(serious, f"{name}: {trial.wrong}", "update the driver")
    if trial.seconds_to_first_score is None:
        text = f"{name} gives no score: {trial.failure} ({trial.doing})"
        return Finding(serious, text, f"{advice}, or choose another device with VKSSIM_DEVICE or --device")
    text = f"{name}: first score after {trial.seconds_to_first_score:.1f} s"
    if trial.failure is not None:
        return Finding(Level.WARNING, f"{text}; the self-test did not end: {trial.failure} ({trial.doing})", advice)
    return Finding(Level.OK, f"{text}, all {trial.checked} known results right")
