"""Compile one kernel within a time limit, and report where it takes long.

A driver compiles within one call, and nothing can interrupt that call. So it has a thread of its own, for which the caller
waits.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from .device import Device
from .errors import DeviceTimeoutError
from .notices import give
from .timeouts import TIMEOUT_VARIABLE, compilation_seconds

NOTICE_SECONDS = 5.0
"""The time after which the first notice is given."""

_NEXT_NOTICE_SECONDS = 30.0
_SLICE_SECONDS = 0.1  # the wait is divided into slices, because Python handles signals only between them


def compile_in_time(device: Device, kernel: str, compile_kernel: Callable[[], Any]) -> Any:
    """Return the result of `compile_kernel`, a call of the device's driver.

    Raises DeviceTimeoutError if it takes longer than `compilation_seconds`. The device is abandoned then, and also if the wait
    is interrupted, because the driver is still at work.
    """
    results: list[Any] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(compile_kernel())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name=f"vkssim-compile-{kernel}", daemon=True)
    thread.start()
    try:
        _wait(device, kernel, thread)
    except BaseException:
        if thread.is_alive():
            device.abandon()
        raise
    if errors:
        raise errors[0]
    return results[0]


def _wait(device: Device, kernel: str, thread: threading.Thread) -> None:
    began, limit, next_notice = time.monotonic(), compilation_seconds(), NOTICE_SECONDS
    while True:
        thread.join(_SLICE_SECONDS)
        if not thread.is_alive():
            return
        seconds = time.monotonic() - began
        if seconds >= limit:
            raise DeviceTimeoutError(
                f"{device.info.description} did not compile the kernel {kernel} in {limit:g} s. Choose another device, or"
                f" exact=false, which has smaller kernels; if it is only slow, {TIMEOUT_VARIABLE}=SECONDS gives it longer"
            )
        if seconds >= next_notice:
            give(
                f"{device.info.description} has been compiling the kernel {kernel} for {seconds:.0f} s; it may take up to"
                f" {limit:g} s"
            )
            next_notice += _NEXT_NOTICE_SECONDS
