"""Test surveys and trials with real processes: lavapipe, broken libraries, a driver that crashes."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest

from vkssim.backends import known_answers
from vkssim.doctor import devices as trial_module
from vkssim.doctor import survey as survey_module
from vkssim.doctor.apart import Send
from vkssim.doctor.devices import DeviceTrial, make_trial, try_device
from vkssim.doctor.survey import Survey, list_libraries, make_survey, missing_libraries, survey
from vkssim.errors import WrongNumbersError
from vkssim.host.device import Device
from vkssim.host.driver_files import NAMED_FILES, DriverFile, driver_files
from vkssim.host.machine import Machine

from ..host.made_up import device_info
from .libraries import broken_library, lavapipe_library, lavapipe_name


def test_the_drivers_of_this_machine() -> None:
    found = make_survey(driver_files(Machine()))
    assert (found.has_loader, found.loader_problem, found.failure) == (True, None, None)
    assert found.loader_version is not None
    assert found.loader_version.startswith("1.")
    assert "libvulkan.so" in str(found.loader_path)
    assert found.problems[lavapipe_name()] is None
    assert found.chosen is not None
    assert found.devices[found.chosen].name.startswith("llvmpipe")


def test_a_driver_with_missing_libraries(tmp_path: Path) -> None:
    missing = broken_library(tmp_path / "broken.so")
    library = str(tmp_path / "broken.so")
    found = make_survey([DriverFile(tmp_path / "a.json", library), DriverFile(tmp_path / "b.json", str(lavapipe_library()))])
    assert "cannot open shared object file" in str(found.problems[library])
    assert set(found.missing[library]) == set(missing)
    assert found.problems[str(lavapipe_library())] is None
    assert found.failure is None


def test_a_library_that_is_nowhere_and_one_that_lacks_none() -> None:
    assert missing_libraries("libGLX_none.so.0") == ("libGLX_none.so.0",)
    assert missing_libraries("/nowhere/libGLX_none.so.0") == ("/nowhere/libGLX_none.so.0",)
    assert missing_libraries(str(lavapipe_library())) == ()
    listed = list_libraries(str(lavapipe_library()))
    assert listed is not None
    assert Path(str(listed["libc.so.6"])).is_file()


def test_what_the_dynamic_loader_cannot_list(tmp_path: Path) -> None:
    """No library is said to be missing for a file that is none, and for a path in which the loader sees several."""
    (tmp_path / "text.so").write_text("text")
    assert missing_libraries(str(tmp_path / "text.so")) == ()
    shutil.copy(lavapipe_library(), tmp_path / "two words.so")
    assert missing_libraries(str(tmp_path / "two words.so")) == ()


def test_a_driver_that_crashes_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The survey of all drivers ends with it; those that are tried alone show which one it is."""
    tried: list[str] = []

    def run(
        _work: object,
        arguments: tuple[object],
        _seconds: float,
        heard: Send,
        environment: Mapping[str, str | None] | None = None,
    ) -> str | None:
        tried.append(str(environment[NAMED_FILES[0]]) if environment else "all")
        if arguments == (("a.so", "b.so"),):
            heard("doing", "listing the devices")
        return None if tried[-1] == str(tmp_path / "b.json") else "it ended its process by SIGSEGV"

    monkeypatch.setattr(survey_module, "run_in_process", run)
    found = make_survey([DriverFile(tmp_path / f"{name}.json", f"{name}.so") for name in "ab"])
    assert tried == ["all", str(tmp_path / "a.json"), str(tmp_path / "b.json")]
    ended = "it ended its process by SIGSEGV"
    assert found.failure == f"listing the devices: {ended}; with {tmp_path / 'a.json'} alone: {ended}"


def test_a_machine_without_the_loader(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "vulkan.py").write_text("raise OSError('Cannot find Vulkan SDK version')")
    monkeypatch.syspath_prepend(tmp_path)  # the process of the survey inherits it
    found = make_survey([])
    assert (found.has_loader, found.devices, found.failure) == (False, [], None)
    assert found.loader_problem is not None


def test_a_library_is_loaded_from_where_the_file_says(tmp_path: Path) -> None:
    """A survey is also what a process of its own runs: here it is called within the test's process."""
    copy = shutil.copy(lavapipe_library(), tmp_path / "copy.so")
    found = Survey()
    survey(partial(setattr, found), [str(copy)])
    assert found.problems == {str(copy): None}
    assert found.doing == "listing the devices"


# -- trials -----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("shared_device")
def test_a_trial_computes_a_score_and_the_known_results(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within the test's process, and with two known results; the command's own test starts a process and computes all."""
    monkeypatch.setattr(known_answers, "CASES", known_answers.CASES[:2])
    trial, steps = DeviceTrial(), []

    def send(name: str, value: object) -> None:
        setattr(trial, name, value)
        steps.append((name, value))

    try_device(send, str(device.info.uuid))
    assert trial.scores
    assert trial.checked == 2
    assert ("doing", "self-test 2 of 2: float_ssim=scale=2:precision=fast") in steps
    assert steps[0][0] == "seconds_to_first_score"


def test_a_trial_with_wrong_numbers(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **_options: object) -> None:
        raise WrongNumbersError("llvmpipe computes wrong numbers")

    monkeypatch.setattr(trial_module, "open_backend", refuse)
    trial = DeviceTrial()
    try_device(partial(setattr, trial), str(device.info.uuid))
    assert (trial.scores, trial.wrong) == (False, "llvmpipe computes wrong numbers")


def _hangs(send: Send, uuid: str) -> None:
    send("doing", f"compiling for {uuid}")
    import threading

    threading.Event().wait()


def test_a_trial_that_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_module, "try_device", _hangs)
    steps: list[str] = []
    trial = make_trial(device_info(name="GPU"), 3.0, steps.append)
    assert not trial.scores
    assert trial.failure == "it did not finish within 3 s"
    assert steps[0] == "GPU: opening the device and compiling its kernels"
