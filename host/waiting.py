"""Wait for a device or its driver for a limited time, and give up one that does not answer."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from .api import vk
from .device import Device
from .errors import COMPILE_LOG, LOG, DeviceTimeoutError, VkssimError

TIMEOUT_VARIABLE = "VKSSIM_TIMEOUT"
"""The environment variable with the seconds that a submission may take."""

SLICE_S = 0.1
"""The longest single wait for a device or a driver. Waits are divided, because Python handles signals only between them."""

_SUBMISSION_S = 300.0
_COMPILATION_S = 120.0  # the slowest known: SwiftShader takes 5 s for a window, longer on a busy machine
_MAX_S = 7 * 24 * 3600.0


def timeout_seconds() -> float:
    """Return the seconds that a batch may take on a device. Raises VkssimError if VKSSIM_TIMEOUT is not a valid time."""
    text = os.environ.get(TIMEOUT_VARIABLE) or str(_SUBMISSION_S)
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= _MAX_S:
        raise VkssimError(
            f"{TIMEOUT_VARIABLE} is {text!r}; it is the seconds that a batch of frames may take on the device, above 0 and at"
            f" most {_MAX_S:g}"
        )
    return seconds


def compilation_seconds() -> float:
    """Return the seconds that a driver may take to compile one kernel: 120, or VKSSIM_TIMEOUT if it is set to more.

    A smaller VKSSIM_TIMEOUT is meant for submissions, and does not shorten this time.
    """
    return max(_COMPILATION_S, timeout_seconds()) if os.environ.get(TIMEOUT_VARIABLE) else _COMPILATION_S


def check_answering(device: Device) -> None:
    """Raise DeviceTimeoutError for a device that did not answer before."""
    if device.abandoned:
        raise DeviceTimeoutError(f"{device.info.name} has stopped answering; choose another device")


def wait_for_fences(device: Device, fences: Sequence[Any], timeout: float, work: str) -> None:
    """Wait until all fences are signalled.

    Raises DeviceTimeoutError, which names the `work`, if they are not within `timeout` seconds. The device is abandoned then.
    """
    # Slices are counted, not seconds: the time during which a process was stopped does not count as waiting.
    for _ in range(math.ceil(timeout / SLICE_S)):
        check_answering(device)
        try:
            vk.vkWaitForFences(device.handle, len(fences), fences, vk.VK_TRUE, int(SLICE_S * 1e9))
        except vk.module.VkTimeout:
            continue
        return
    device.abandoned = True
    LOG.warning("%s did not finish %s in %g s and is given up", device.info.name, work, timeout)
    raise DeviceTimeoutError(
        f"{device.info.name} did not finish {work} in {timeout:g} s. If it is only slow, {TIMEOUT_VARIABLE}=SECONDS gives it"
        " longer; if it hangs, choose another device or restart its driver"
    )


# -- compilations -----------------------------------------------------------------------------------------------------

FIRST_NOTICE_S = 5.0
"""The time after which the first notice is given."""

_NEXT_NOTICE_S = 30.0

Compiled = TypeVar("Compiled")


class Compilations:
    """The compilations of a number of kernels, one after the other, on a device, with notices if they take long.

    A driver compiles within one call, and nothing can interrupt that call. So it has a thread of its own, for which the caller
    waits.
    """

    def __init__(self, device: Device, kernels: int) -> None:
        self._device = device
        self._kernels = kernels
        self._begun = 0
        self._started = time.monotonic()
        self._next_notice = FIRST_NOTICE_S

    def run(self, kernel: str, compile_kernel: Callable[[], Compiled]) -> Compiled:
        """Return the result of `compile_kernel`, a call of the device's driver that compiles the kernel of that name.

        Raises DeviceTimeoutError if it takes longer than `compilation_seconds`. The device is abandoned then, and also if the
        wait is interrupted, because the driver is still at work.
        """
        future: Future[Compiled] = Future()
        # Not `Thread.join`: if a signal handler raises within it, Python 3.11 and 3.12 take the thread for ended while the
        # driver is still at work (https://github.com/python/cpython/issues/90882).
        ended: SimpleQueue[None] = SimpleQueue()

        def work() -> None:
            try:
                future.set_result(compile_kernel())
            except BaseException as error:
                future.set_exception(error)
            ended.put(None)

        self._begun += 1
        try:
            threading.Thread(target=work, name=f"vkssim-compile-{kernel}", daemon=True).start()
            self._wait(kernel, ended)
        except BaseException:
            if not future.done():
                self._device.abandoned = True
                LOG.warning("%s did not compile the kernel %s and is given up", self._device.info.name, kernel)
            raise
        return future.result()

    def _wait(self, kernel: str, ended: SimpleQueue[None]) -> None:
        began, limit = time.monotonic(), compilation_seconds()
        while True:
            with suppress(Empty):
                return ended.get(timeout=SLICE_S)
            now = time.monotonic()
            if now - began >= limit:
                raise DeviceTimeoutError(
                    f"{self._device.info.description} did not compile the kernel {kernel} in {limit:g} s. Choose another"
                    " device, or precision=fast, which has smaller kernels. If it is only slow,"
                    f" {TIMEOUT_VARIABLE}=SECONDS gives it longer"
                )
            seconds = now - self._started
            if seconds >= self._next_notice:
                COMPILE_LOG.info(
                    f"{self._device.info.description} has been compiling kernels for {seconds:.0f} s, now {kernel}, number"
                    f" {self._begun} of {self._kernels}; each may take up to {limit:g} s"
                )
                self._next_notice = seconds + _NEXT_NOTICE_S
