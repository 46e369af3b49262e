"""Check that a driver computes correctly, with pictures whose scores are known, before its numbers are used.

Each kernel is checked once per device, version of the driver, build of the kernel and set of its constants, among them
the type of its samples. The cache folder records the passed checks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import numpy as np
import platformdirs

from ..errors import WrongNumbersError
from ..host import private
from ..host.devices import DeviceInfo
from ..host.plan import Plan
from ..metrics.dispatches import KernelShape
from ..shaders import load_module
from ..shaders.interface import REACH_CONSTANT
from ..utils.version import __version__
from .known_answers import CASES, Case
from .sessions import Session, opened_session

TOLERANCE = 0.5e-4
"""Every score is guaranteed to four decimal places."""

_LARGEST_FILE = 1 << 16
_passed: set[str] = set()  # in this process, by digest


def check(device: DeviceInfo, plan: Plan, session: Session) -> None:
    """Check the kernels of a plan that were not checked yet on a device, which is the device of the session.

    Raises WrongNumbersError if its results differ from the known ones.
    """
    kernels = _digests(device, kernels_of(plan))
    if not kernels <= _passed:
        _passed.update(_remembered(device))
    if not kernels <= _passed:
        check_cases(device, session, kernels=kernels - _passed)
        _passed.update(kernels)


def check_cases(
    device: DeviceInfo,
    opened: str | Session,
    starting: Callable[[int, int, str], object] = lambda *_: None,
    kernels: set[str] | None = None,
) -> int:
    """Check a device, whose UUID or session is `opened`, by the cases that use some kernels, by default by all cases.

    `kernels` are digests; those that pass are recorded. `starting` is called before each case with its number from 1 on, the
    number of all cases, and its name. Return the number of all cases. Raises WrongNumbersError as `check` does.
    """
    shape = KernelShape.for_device(device)
    passed: set[str] = set()
    with ExitStack() as stack:
        session = opened_session(stack, opened)
        for number, case in enumerate(CASES, 1):
            covered = _digests(device, _kernels_of_case(case, shape))
            if kernels is None or covered & kernels - passed:
                starting(number, len(CASES), case.name)
                _try(case, device, session)
                passed |= covered
    _passed.update(passed)
    if passed:
        digests = passed if kernels is None else passed | _remembered(device)
        private.store(_file(device), "\n".join(sorted(digests)).encode())  # else it is checked again
    return len(CASES)


def _try(case: Case, device: DeviceInfo, session: Session) -> None:
    got = case.numbers(session)
    if not np.allclose(got, case.right, rtol=0, atol=TOLERANCE):  # NaN is never close
        raise WrongNumbersError(
            f"{device.description} computes wrong numbers: {case.name} of two known pictures is"
            f" {', '.join(f'{value:.6f}' for value in case.right)}, it gives {', '.join(f'{value:.6f}' for value in got)}."
            " Update its driver, choose another device, or `backend=cpu`"
        )


def kernels_of(plan: Plan) -> frozenset[tuple[str, str]]:
    """Return the modules and the constants of the kernels of a plan.

    Not the reach of a window, which depends on the size of the picture: kernels of any reach are one to the self-test.
    """
    return frozenset(
        (kernel.module, str(tuple(constant for constant in kernel.constants if constant[0] != REACH_CONSTANT)))
        for kernel in plan.kernels
    )


@cache  # the plans of all cases take longer to make than the kernels of a plan to check
def _kernels_of_case(case: Case, shape: KernelShape) -> frozenset[tuple[str, str]]:
    return kernels_of(case.plan(shape))


def _digests(device: DeviceInfo, kernels: Iterable[tuple[str, str]]) -> set[str]:
    """Return the digests that identify kernels, with their constants, on a device."""
    words = [__version__, device.cache_name, device.driver, str(device.api_version)]
    return {
        hashlib.sha256("\0".join([*words, module, constants]).encode() + load_module(module)).hexdigest()
        for module, constants in kernels
    }


def _file(device: DeviceInfo) -> Path:
    return platformdirs.user_cache_path("vkssim") / f"{device.cache_name}.tried"


def _remembered(device: DeviceInfo) -> set[str]:
    """Return the lines of a file, which are digests. Any other line is harmless, because no kernel has it as its digest."""
    return set(private.load(_file(device), _LARGEST_FILE).decode(errors="replace").split())
