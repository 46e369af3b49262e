"""Whether a driver computes right: pictures whose scores are known, before anything else that it says is believed.

A kernel is tried once for a device, a version of its driver and a build of the kernel; that it was found right is remembered in
the cache folder.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import platformdirs

from ..errors import WrongNumbersError
from ..features.planes import KernelShape
from ..host import private
from ..host.devices import DeviceInfo
from ..host.plan import Plan
from ..shaders import load_module
from ..utils.version import __version__

if TYPE_CHECKING:
    from .known_answers import Case

Where = str | int | None

TOLERANCE = 0.5e-4
"""The four places that every score is promised to."""

_LARGEST_FILE = 1 << 16
_passed: set[str] = set()  # in this process, by digest


def check(device: DeviceInfo, plan: Plan, selector: Where) -> None:
    """Try those kernels of a plan that were not tried yet on that device, which is the one that `selector` means.

    Raises WrongNumbersError where it computes something else than is known.
    """
    kernels = {_digest(device, dispatch.kernel.module) for dispatch in plan.dispatches}
    file = _file(device)
    if not kernels <= _passed:
        _passed.update(_remembered(file))
    if kernels <= _passed:
        return
    from .known_answers import CASES  # with everything that there is to try: not for who need not

    shape = KernelShape.for_device(device)
    tried: set[str] = set()
    for case in CASES:
        covered = {_digest(device, dispatch.kernel.module) for dispatch in case.plan(shape).dispatches}
        if covered & kernels - _passed - tried:
            _try(case, device, selector)
            tried |= covered
    if tried:
        private.store(file, "\n".join(sorted(tried | _remembered(file))).encode())  # where it cannot be, it is tried again
    _passed.update(tried | kernels)


def _try(case: Case, device: DeviceInfo, selector: Where) -> None:
    got = case.numbers(selector)
    if not np.allclose(got, case.right, rtol=0, atol=TOLERANCE):  # NaN is never close
        raise WrongNumbersError(
            f"{device.description} computes wrong numbers: {case.name} of two known pictures is"
            f" {', '.join(f'{value:.6f}' for value in case.right)}, it gives {', '.join(f'{value:.6f}' for value in got)}."
            " Update its driver, choose another device, or `backend=cpu`"
        )


def _digest(device: DeviceInfo, module: str) -> str:
    """Return what a kernel on a device is known by."""
    words = [__version__, device.uuid.hex, str(device.driver_version), device.driver, str(device.api_version), module]
    return hashlib.sha256("\0".join(words).encode() + load_module(module)).hexdigest()


def _file(device: DeviceInfo) -> Path:
    return platformdirs.user_cache_path("vkssim") / f"{device.uuid.hex}-{device.driver_version:08x}.tried"


def _remembered(file: Path) -> set[str]:
    """Return the digests in a file; whatever else is in there means nothing, for nothing has it as its digest."""
    return set(private.load(file, _LARGEST_FILE).decode(errors="replace").split())
