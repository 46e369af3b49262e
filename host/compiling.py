"""Compile kernels within a time limit, and report if it takes long.

A driver compiles within one call, and nothing can interrupt that call. So it has a thread of its own, for which the caller
waits.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TypeVar

from .device import Device
from .errors import DeviceTimeoutError
from .notices import notify
from .timeouts import SLICE_SECONDS, TIMEOUT_VARIABLE, compilation_seconds

NOTICE_SECONDS = 5.0
"""The time after which the first notice is given."""

_NEXT_NOTICE_SECONDS = 30.0

Compiled = TypeVar("Compiled")


class Compilations:
    """The compilations of a number of kernels, one after the other, on a device."""

    def __init__(self, device: Device, kernels: int) -> None:
        self._device = device
        self._kernels = kernels
        self._begun = 0
        self._started = time.monotonic()
        self._next_notice = NOTICE_SECONDS

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
                self._device.abandon()
            raise
        return future.result()

    def _wait(self, kernel: str, ended: SimpleQueue[None]) -> None:
        began, limit = time.monotonic(), compilation_seconds()
        while True:
            with suppress(Empty):
                return ended.get(timeout=SLICE_SECONDS)
            now = time.monotonic()
            if now - began >= limit:
                raise DeviceTimeoutError(
                    f"{self._device.info.description} did not compile the kernel {kernel} in {limit:g} s. Choose another"
                    " device, or precision=fast, which has smaller kernels. If it is only slow,"
                    f" {TIMEOUT_VARIABLE}=SECONDS gives it longer"
                )
            seconds = now - self._started
            if seconds >= self._next_notice:
                notify(
                    f"{self._device.info.description} has been compiling kernels for {seconds:.0f} s, now {kernel}, number"
                    f" {self._begun} of {self._kernels}; each may take up to {limit:g} s"
                )
                self._next_notice = seconds + _NEXT_NOTICE_SECONDS
