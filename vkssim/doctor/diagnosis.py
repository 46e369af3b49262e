"""Make the whole diagnosis of a machine."""

from __future__ import annotations

from collections.abc import Callable

from ..host.devices import DeviceKind
from .decoders import ask_engines, decoders_section
from .devices import DeviceTrial, devices_section, try_devices
from .driver_files import driver_files
from .drivers import drivers_section, loader_section
from .findings import Diagnosis, Finding, Level
from .gpus import gpus_section
from .survey import Survey, make_survey
from .system import Machine, extras_section, missing_packages, system_section


def diagnose(seconds: float, on_step: Callable[[str], None] = lambda _: None) -> Diagnosis:
    """Return the diagnosis of this machine.

    The trial of each device may take so many seconds. `on_step` is called with a clause before each step that takes time.
    """
    machine = Machine()
    files = driver_files(machine)
    on_step("loading the Vulkan drivers")
    survey = make_survey(files)
    trials = try_devices(survey, seconds, on_step)
    on_step("asking for decoders")
    engines = ask_engines(survey)
    sections = (
        system_section(machine),
        loader_section(machine, survey),
        drivers_section(machine, files, survey),
        gpus_section(machine, files, survey),
        devices_section(machine, survey, trials),
        decoders_section(survey, engines),
        extras_section(missing_packages(machine.platform)),
    )
    scores, summary = _summary(survey, trials)
    return Diagnosis(scores, summary, sections)


def _summary(survey: Survey, trials: dict[int, DeviceTrial]) -> tuple[bool, Finding]:
    """Return whether the chosen device scores, and the sentence that says so."""
    if survey.chosen is None:
        text = "vkssim has no Vulkan device that it can use."
    else:
        device = survey.devices[survey.chosen]
        if device.index in trials and trials[device.index].scores:
            kind = ", a software device" if device.kind is DeviceKind.CPU else ""
            return True, Finding(Level.OK, f"vkssim scores on {device.name}{kind}.")
        text = f"vkssim chooses {device.name}, which does not score."
    return False, Finding(Level.ERROR, text, "`--backend cpu` scores without Vulkan, more slowly")
