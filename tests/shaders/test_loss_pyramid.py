"""The pyramid of the losses and its adjoint, `loss_collect.comp`, against the matrices of the float64 twin."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from vkssim.host.device import Device
from vkssim.host.plan import Dispatch
from vkssim.loss.plan import DISTORTED, MEANS, loss_plan
from vkssim.loss.reference import shrink, shrink_adjoint
from vkssim.loss.spec import Loss, Negative, Padding, Pyramid, constants
from vkssim.metrics.dispatches import KernelShape, PlaneLayout

from ..support.differences import check_array
from ..support.tolerances import LOSS_COLLECT, LOSS_PYRAMID
from .harness import alone, pack_rows, run_buffers, unpack_rows

SIZES = [*product((21, 22, 23, 24, 31, 32), (21, 22)), (40, 141), (57, 64), (83, 263), (150, 27)]
"""Every remainder by what a workgroup's rows are, both parities across; then sizes that take several workgroups."""

FRAMES = 2

pyramids = pytest.mark.parametrize("pyramid", Pyramid, ids=lambda pyramid: pyramid.value)


def _loss(size: tuple[int, int], pyramid: Pyramid, scales: int = 2) -> Loss:
    return Loss(
        *size, **constants(1.0), padding=Padding.SAME, weights=(0.5,) * scales, pyramid=pyramid, negative=Negative.CLAMP
    )


def _noise(size: tuple[int, int], seed: int) -> npt.NDArray[np.float32]:
    return np.random.default_rng(seed).random((FRAMES, *size), np.float32)


@pyramids
@pytest.mark.parametrize("packed", [False, True], ids=["aligned", "packed"])
def test_next_scale(device: Device, kernel_shape: KernelShape, pyramid: Pyramid, packed: bool) -> None:
    """Rows are written to their whole pitch, so that no reader meets what no kernel wrote."""
    if packed and kernel_shape.shape.row_unit != 4:
        packed = False
    for size in SIZES:
        loss = _loss(size, pyramid)
        plan = loss_plan(loss, kernel_shape, gradient=False, packed=packed)
        (dispatch,) = (step for step in plan.dispatches if step.targets == (f"{DISTORTED}.1",))
        planes = _noise(size, seed=1)
        layout = replace(PlaneLayout.floats("", *size[::-1]), row_bytes=plan.buffer(DISTORTED).frame_bytes // size[0])
        got = run_buffers(device, alone(plan, dispatch), {DISTORTED: pack_rows(layout, planes)})[f"{DISTORTED}.1"]
        assert np.isfinite(got).all(), f"{size}: places that are not written"
        coarse = unpack_rows(PlaneLayout.floats("", *loss.sizes[1][::-1]), got)
        check_array(LOSS_PYRAMID, f"{pyramid.value}, {size}", coarse, shrink(pyramid, planes.astype(np.float64)))


def _collect(
    device: Device, shape: KernelShape, loss: Loss, scale: int, means: npt.NDArray[np.float32]
) -> tuple[Any, Any, Any]:
    """Runs one collect on noise: the fine gradient before and after, and the coarse one."""
    plan = loss_plan(loss, shape, gradient=True)
    (dispatch,) = (step for step in plan.dispatches if step.label == f"collect, scale {scale}")
    layouts = [PlaneLayout.floats("", *loss.sizes[scale + below][::-1]) for below in (0, 1)]
    fine, coarse = (_noise((planes.height, planes.width), seed) - 0.5 for seed, planes in enumerate(layouts))
    contents = {
        _coarse(dispatch): pack_rows(layouts[1], coarse),
        dispatch.targets[0]: pack_rows(layouts[0], fine),
        MEANS: means,
    }
    buffers = alone(plan, dispatch)
    padded = {name: _padded(data, buffers.buffer(name).frame_bytes) for name, data in contents.items()}
    return fine, unpack_rows(layouts[0], run_buffers(device, buffers, padded)[dispatch.targets[0]]), coarse


def _coarse(dispatch: Dispatch) -> str:
    (name,) = (source for source in dispatch.sources if source != MEANS)
    return name


def _padded(data: npt.NDArray[np.float32], frame_bytes: int) -> npt.NDArray[np.float32]:
    """A gradient may lie in a buffer that is larger than it."""
    return np.pad(data, ((0, 0), (0, frame_bytes // 4 - data.shape[1])), constant_values=np.nan)


def _means(*power_and_slope: tuple[float, float]) -> npt.NDArray[np.float32]:
    """The same scales for each frame but for the first power, which doubles."""
    rows = [[[np.nan, power * (1 + frame * (s == 0)), slope, np.nan] for s, (power, slope) in enumerate(power_and_slope)]
            for frame in range(FRAMES)]  # fmt: skip
    return np.array(rows, np.float32).reshape(FRAMES, -1)


@pyramids
def test_collect(device: Device, kernel_shape: KernelShape, pyramid: Pyramid) -> None:
    """From the last scale: both gradients by the slopes of their means."""
    values = np.array([0.5 * 0.8, 2 * 0.5 * 0.8]).reshape(-1, 1, 1)
    for size in SIZES:
        fine, got, coarse = _collect(device, kernel_shape, _loss(size, pyramid), 0, _means((0.5, 1.25), (0.8, -0.75)))
        expected = values * (1.25 * fine - 0.75 * shrink_adjoint(pyramid, coarse.astype(np.float64), size))
        check_array(LOSS_COLLECT, f"{pyramid.value}, {size}", got, expected)


@pyramids
def test_collect_from_a_scale_that_has_its_slope(device: Device, kernel_shape: KernelShape, pyramid: Pyramid) -> None:
    """Not from the last scale: the dispatch before has applied the coarser slope."""
    means, size = _means((0.5, 1.25), (0.8, -0.75), (0.25, 8.0)), (45, 50)
    values = np.array([0.1, 0.2]).reshape(-1, 1, 1)
    fine, got, coarse = _collect(device, kernel_shape, _loss(size, pyramid, scales=3), 0, means)
    expected = values * 1.25 * fine + shrink_adjoint(pyramid, coarse.astype(np.float64), size)
    check_array(LOSS_COLLECT, f"{pyramid.value}, middle", got, expected)
