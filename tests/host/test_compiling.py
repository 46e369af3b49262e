"""A driver that compiles for long: the user hears of it, and the wait has an end."""

from __future__ import annotations

import logging
import signal
import threading
from functools import partial
from typing import cast

import pytest

from vkssim.host import waiting
from vkssim.host.device import Device
from vkssim.host.errors import DeviceMemoryError, DeviceTimeoutError
from vkssim.host.waiting import TIMEOUT_VARIABLE, compilation_seconds, compile_kernels

from .made_up import device_info


class _Device:
    """What compiling needs of a device."""

    info = device_info()
    abandoned = False


@pytest.fixture
def device() -> Device:
    return cast(Device, _Device())


def test_an_error_of_the_call_is_raised(device: Device) -> None:
    def fail() -> None:
        raise DeviceMemoryError("no memory in this test")

    with pytest.raises(DeviceMemoryError, match="in this test"):
        compile_kernels(device, [("kernel", fail)])
    assert not device.abandoned


def test_kernels_are_compiled_side_by_side(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error is raised after the calls that have begun, and no further one begins."""
    monkeypatch.setattr(waiting, "usable_cores", lambda: 2)
    meet, calls = threading.Barrier(2, timeout=60), list[str]()

    def compile_kernel(name: str) -> str:
        calls.append(name)
        if name != "third":
            meet.wait()
        if name == "second":
            raise DeviceMemoryError("no memory in this test")
        return name

    assert compile_kernels(device, [(name, partial(compile_kernel, name)) for name in ("a", "b", "c", "d")]) == list("abcd")
    calls.clear()
    with pytest.raises(DeviceMemoryError, match="in this test"):
        compile_kernels(device, [(name, partial(compile_kernel, name)) for name in ("first", "second", "third")])
    assert sorted(calls) in (["first", "second"], ["first", "second", "third"])
    assert not device.abandoned


def test_kernels_that_take_long_are_reported_once(
    device: Device, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "vkssim")
    monkeypatch.setattr(waiting, "FIRST_NOTICE_S", 0.0)
    monkeypatch.setattr(waiting, "usable_cores", lambda: 1)
    waits = [(kernel, lambda: not threading.Event().wait(0.25)) for kernel in ("ssim.strip", "second")]
    assert compile_kernels(device, waits) == [True, True]
    (sentence,) = caplog.messages
    assert sentence.startswith("Made Up, driver 3 has been compiling kernels for 0 s, now ssim.strip, number 1 of 2; each may")


def test_a_call_that_does_not_end_is_an_error(
    device: Device, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What the driver may still use is left alone."""
    monkeypatch.setattr(waiting, "compilation_seconds", lambda: 0.2)
    released = threading.Event()
    with pytest.raises(DeviceTimeoutError, match=r"did not compile the kernel ssim\.strip in 0\.2 s.*VKSSIM_TIMEOUT=SECONDS"):
        compile_kernels(device, [("ssim.strip", released.wait)])
    assert device.abandoned
    assert caplog.messages == ["Made Up did not compile the kernel ssim.strip and is given up"]
    released.set()


def test_a_signal_in_the_wait_leaves_the_device_alone(device: Device) -> None:
    """A signal handler that raises makes Python 3.11 take a joined thread for ended."""
    compiling_now, released = threading.Event(), threading.Event()

    def compile_kernel() -> None:
        compiling_now.set()
        released.wait()

    def interrupt() -> None:
        compiling_now.wait()
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        compile_kernels(device, [("kernel", compile_kernel)])
    assert device.abandoned
    released.set()


@pytest.mark.parametrize(("text", "seconds"), [("", 120.0), ("1", 120.0), ("600", 600.0)])
def test_the_variable_gives_more_time_and_never_less(text: str, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TIMEOUT_VARIABLE, text)
    assert compilation_seconds() == seconds
