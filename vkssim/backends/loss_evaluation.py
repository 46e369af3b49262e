"""Evaluate a loss of host arrays with the requested backend: values of planes and their gradients."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import numpy as np
import numpy.typing as npt

from ..loss.spec import Loss
from ..loss.wang import product
from ..utils.choices import BACKENDS
from .device_cache import DeviceCache
from .loss_engine import LossEngine
from .open import unknown_backend
from .selftest import check

Planes = npt.NDArray[Any]
Doubles = npt.NDArray[np.float64]

_kept: DeviceCache[LossEngine] = DeviceCache(most=4)


def evaluate(
    loss: Loss,
    reference: Planes,
    distorted: Planes,
    *,
    gradient: bool,
    weight: float = 1.0,
    backend: str = "vulkan",
    device: str | int | None = None,
) -> tuple[Doubles, Planes | None]:
    """Return values (P,) float64 of planes and, if requested, their gradients.

    The gradients (P, H, W) are by the distorted planes, times `weight`.

    Planes are (P, H, W) arrays of any strides. "vulkan" computes in float32 on a device, with gradients in float32. "cpu" is
    the NumPy twin, in float64.
    """
    if backend not in BACKENDS:
        raise unknown_backend(backend)
    if backend == "cpu":
        from ..loss.reference import value_and_gradient

        values, slopes = value_and_gradient(loss, reference.astype(np.float64), distorted.astype(np.float64))
        return values, weight * slopes if gradient else None
    result = np.empty(distorted.shape, np.float32) if gradient else None

    def make() -> LossEngine:
        with ExitStack() as guard:
            planes = len(distorted)
            engine = guard.enter_context(LossEngine(loss, gradient=gradient, weight=weight, planes=planes, device=device))
            check(engine.device.info, engine.plan, device)
            guard.pop_all()
        return engine

    means = _kept.run((loss, gradient, weight, device), make, lambda engine: engine.run(reference, distorted, result))
    values, slopes = product(loss, means)
    if result is not None and means.shape[1] == 1:  # it is the gradient of the mean so far, not yet of the value
        for plane in np.flatnonzero(slopes[:, 0] != 1.0):
            result[plane] *= np.float32(slopes[plane, 0])
    return values, result
