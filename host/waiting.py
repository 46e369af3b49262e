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


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def compile_kernels(device: Device, jobs: Sequence[tuple[str, Callable[[], Compiled]]]) -> list[Compiled]:
    """Return the results of calls of a driver, each of which compiles a kernel, as many at a time as there are cores.

    `jobs` are the names of the kernels with the calls. Notices are given if they take long. A driver compiles within one call,
    and nothing can interrupt that call. So each has a thread, for which the caller waits. The first error is raised after the
    calls that have begun. Raises DeviceTimeoutError if a call takes longer than `compilation_seconds`. The device is abandoned
    then, and also if the wait is interrupted, because the driver is still at work.
    """
    results: list[Future[Compiled]] = [Future() for _ in jobs]
    # Not `Thread.join`: if a signal handler raises within it, Python 3.11 and 3.12 take the thread for ended while the
    # driver is still at work (https://github.com/python/cpython/issues/90882).
    ended: SimpleQueue[int] = SimpleQueue()
    running: dict[int, float] = {}
    limit, started, next_notice = compilation_seconds(), time.monotonic(), FIRST_NOTICE_S

    def work(number: int) -> None:
        try:
            results[number].set_result(jobs[number][1]())
        except BaseException as error:
            results[number].set_exception(error)
        ended.put(number)

    begun, failed = 0, False
    try:
        while running or (begun < len(jobs) and not failed):
            while begun < len(jobs) and len(running) < usable_cores() and not failed:
                running[begun] = time.monotonic()
                threading.Thread(target=work, args=[begun], name=f"vkssim-compile-{jobs[begun][0]}", daemon=True).start()
                begun += 1
            with suppress(Empty):
                number = ended.get(timeout=SLICE_S)
                # The time of the others begins anew: a driver may compile one at a time.
                running = dict.fromkeys(sorted(running.keys() - {number}), time.monotonic())
                failed |= results[number].exception() is not None
                continue
            now = time.monotonic()
            number, began = next(iter(running.items()))
            kernel = jobs[number][0]
            if now - began >= limit:
                raise DeviceTimeoutError(
                    f"{device.info.description} did not compile the kernel {kernel} in {limit:g} s. Choose another"
                    " device, or precision=fast, which has smaller kernels. If it is only slow,"
                    f" {TIMEOUT_VARIABLE}=SECONDS gives it longer"
                )
            if now - started >= next_notice:
                COMPILE_LOG.info(
                    f"{device.info.description} has been compiling kernels for {now - started:.0f} s, now {kernel}, number"
                    f" {number + 1} of {len(jobs)}; each may take up to {limit:g} s"
                )
                next_notice = now - started + _NEXT_NOTICE_S
    except BaseException:
        for number in [number for number in running if not results[number].done()][:1]:
            device.abandoned = True
            LOG.warning("%s did not compile the kernel %s and is given up", device.info.name, jobs[number][0])
        raise
    return [result.result() for result in results[:begun]]
