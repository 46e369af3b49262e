"""Report the devices that Vulkan lists, and the one that vkssim chooses and why; try each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from ..host.devices import DEVICE_VARIABLE
from ..host.machine import Machine
from .apart import OUT_OF_TIME
from .findings import DiagnosisSection, Finding, Level
from .survey import ListedDevice, Survey
from .trial import DeviceTrial, make_trial

Try = Callable[[str, float, Callable[[str], None]], DeviceTrial]


def try_devices(survey: Survey, seconds: float, say: Callable[[str], None], make: Try = make_trial) -> dict[int, DeviceTrial]:
    """Return a trial of each device that lacks nothing, by the index of the device; the chosen device is tried first."""
    usable = [device for device in survey.devices if not device.lacks]
    usable.sort(key=lambda device: device.index != survey.chosen)
    trials = {}
    for device in usable:
        trials[device.index] = make(device.uuid, seconds, partial(_say, say, device.name))
    return trials


def _say(say: Callable[[str], None], name: str, step: str) -> None:
    say(f"{name}: {step}")


def devices_section(machine: Machine, survey: Survey, trials: Mapping[int, DeviceTrial]) -> DiagnosisSection:
    """Return the findings about each device."""
    findings: list[Finding] = []
    for device in survey.devices:
        findings += _device(device, survey, trials.get(device.index))
    if survey.failure is not None:
        findings.append(Finding(Level.ERROR, survey.failure))  # the section of the drivers says what to install
    elif not survey.has_loader:
        findings.append(Finding(Level.ERROR, "without the Vulkan loader there is no device"))
    if survey.chosen is not None:
        chosen = survey.devices[survey.chosen]
        findings.append(Finding(Level.NOTE, f"vkssim chooses device {chosen.index}, {chosen.name}: {reason(machine, survey)}"))
    facts = {
        "devices": [
            {**device.plain(), "trial": None if (trial := trials.get(device.index)) is None else trial.plain()}
            for device in survey.devices
        ],
        "chosen": survey.chosen,
        "reason": None if survey.chosen is None else reason(machine, survey),
        "failure": survey.failure,
    }
    return DiagnosisSection("devices", "Devices", findings, facts)


def reason(machine: Machine, survey: Survey) -> str:
    """Return why vkssim chooses the device that it chooses."""
    named = machine.variable(DEVICE_VARIABLE)
    if named:
        return f"{DEVICE_VARIABLE} is {named}"
    assert survey.chosen is not None
    if not survey.devices[survey.chosen].is_software:
        others = sum(not device.is_software for device in survey.devices) - 1
        return "it is the first GPU that can be used" if others else "it is the GPU"
    if survey.has_gpu:
        return "no GPU has what vkssim needs, so that a software device computes"
    return "Vulkan lists no GPU, so that a software device computes"


def _device(device: ListedDevice, survey: Survey, trial: DeviceTrial | None) -> list[Finding]:
    place = "" if device.pci is None else f", PCI {device.pci}"
    name = f"{device.index}: {device.name} [{device.kind}], Vulkan {device.api_version}, {device.driver}{place}"
    if device.lacks:
        level = Level.NOTE if device.is_software else Level.WARNING
        text = f"{name} cannot be used: it lacks {', '.join(device.lacks)}"
        return [Finding(level, text, "install a newer driver, if there is one for this device")]
    if trial is None:
        return [Finding(Level.NOTE, name)]
    is_chosen = device.index == survey.chosen
    if trial.wrong is not None:
        return [Finding(Level.ERROR if is_chosen else Level.WARNING, f"{name}: {trial.wrong}", "update the driver")]
    if trial.seconds_to_first_score is None:
        text = f"{name} gives no score: {trial.failure} ({trial.doing})"
        slow = OUT_OF_TIME in str(trial.failure)
        better = "`--seconds` allows more time" if slow else "update the driver"
        advice = f"{better}, or choose another device with VKSSIM_DEVICE or --device"
        return [Finding(Level.ERROR if is_chosen else Level.WARNING, text, advice)]
    text = f"{name}: first score after {trial.seconds_to_first_score:.1f} s"
    if trial.failure is not None:
        slow = OUT_OF_TIME in trial.failure
        advice = "`--seconds` allows more time" if slow else "update the driver"
        return [Finding(Level.WARNING, f"{text}; the self-test did not end: {trial.failure} ({trial.doing})", advice)]
    return [Finding(Level.OK, f"{text}, all {trial.checked} known results right")]
