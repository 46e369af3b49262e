"""Test surveys and trials with real processes: lavapipe, broken libraries, a driver that crashes."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest

from vkssim.backends import selftest
from vkssim.backends.known_answers import CASES
from vkssim.doctor import devices as trial_module
from vkssim.doctor import survey as survey_module
from vkssim.doctor.devices import DeviceTrial, try_device
from vkssim.doctor.driver_files import DriverFile, driver_files
from vkssim.doctor.in_subprocess import Send
from vkssim.doctor.survey import Survey, list_libraries, make_survey, survey
from vkssim.doctor.system import Machine
from vkssim.errors import WrongNumbersError
from vkssim.host.device import Device
from vkssim.host.gpus import NAMED_FILES

from .libraries import lavapipe_library, lavapipe_name


def test_the_drivers_of_this_machine() -> None:
    found = make_survey(driver_files(Machine()))
    assert (found.has_loader, found.loader_problem, found.failure) == (True, None, None)
    assert found.loader_version is not None
    assert found.loader_version.startswith("1.")
    assert "libvulkan.so" in str(found.loader_path)
    assert found.problems[lavapipe_name()] is None
    assert found.chosen is not None
    assert found.devices[found.chosen].name.startswith("llvmpipe")


def test_missing_libraries(tmp_path: Path) -> None:
    """None is said to be missing for a file that is no library, and for a path in which the loader sees several."""
    for nowhere in ("libGLX_none.so.0", "/nowhere/libGLX_none.so.0"):
        assert list_libraries(nowhere) == {nowhere: None}
    assert Path(str(list_libraries(str(lavapipe_library()))["libc.so.6"])).is_file()
    (tmp_path / "text.so").write_text("text")
    shutil.copy(lavapipe_library(), tmp_path / "two words.so")
    for library in (lavapipe_library(), tmp_path / "text.so", tmp_path / "two words.so"):
        assert None not in list_libraries(str(library)).values()


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
    """Within the test's process, and with two known results; the command's own test starts a process."""
    cases = [case for case in CASES if case.name in ("float_psnr", "float_psnr of 10 bits")]  # whose kernels compile soonest
    monkeypatch.setattr(selftest, "CASES", cases)
    trial, steps = DeviceTrial(), []

    def send(name: str, value: object) -> None:
        setattr(trial, name, value)
        steps.append((name, value))

    try_device(send, str(device.info.uuid))
    assert trial.scores
    assert trial.checked == 2
    assert ("doing", "self-test 2 of 2: float_psnr of 10 bits") in steps
    assert steps[0][0] == "seconds_to_first_score"


def test_a_trial_with_wrong_numbers(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **_options: object) -> None:
        raise WrongNumbersError("llvmpipe computes wrong numbers")

    monkeypatch.setattr(trial_module, "open_backend", refuse)
    trial = DeviceTrial()
    try_device(partial(setattr, trial), str(device.info.uuid))
    assert (trial.scores, trial.wrong) == (False, "llvmpipe computes wrong numbers")
