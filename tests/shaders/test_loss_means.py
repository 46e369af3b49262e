"""`loss_means.comp`: deficit, power and slope of one scale from the sums of its workgroups."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from vkssim.host.device import Device
from vkssim.loss.plan import MEANS, loss_plan
from vkssim.loss.spec import Loss, Negative, constants
from vkssim.metrics.dispatches import KernelShape

from ..support.differences import check_array
from ..support.tolerances import LOSS_MEANS
from .harness import alone, push_of, run_buffers

Floats = npt.NDArray[np.float32]

WEIGHT = 0.2856


def _run(
    device: Device, shape: KernelShape, loss: Loss, deficits: list[float], scale: int = 0, *, whole: bool = False
) -> Floats:
    """(planes, scales, 4) from planes whose workgroups sum up to these mean deficits; other scales' sums are NaN."""
    plan = loss_plan(loss, shape, gradient=False)
    (dispatch,) = (step for step in plan.dispatches if step.label == f"means, scale {scale}")
    push = push_of(dispatch)
    first, groups = push["first_partial"], push["groups"]
    shares = np.eye(groups)[0] if whole else np.random.default_rng(0).random(groups) + 0.5  # whole: one sum, without rounding
    partials = np.full((len(deficits), push["plane_partials"]), np.nan, np.float32)
    partials[:, first : first + groups] = np.outer(deficits, shares / shares.sum()) * loss.windows[scale]
    got = run_buffers(device, alone(plan, dispatch), {dispatch.sources[0]: partials})[MEANS]
    return got.reshape(len(deficits), -1, 4)


def _loss(weights: tuple[float, ...], negative: Negative = Negative.CLAMP, size: tuple[int, int] = (60, 70)) -> Loss:
    return Loss(*size, **constants(1.0), weights=weights, negative=negative)


@pytest.mark.parametrize("weight", [0.0, 0.0448, WEIGHT, 1.0, 2.5])
@pytest.mark.parametrize("size", [(60, 70), (1500, 1100)], ids=str)
def test_power_and_slope(device: Device, kernel_shape: KernelShape, weight: float, size: tuple[int, int]) -> None:
    """One size has fewer sums than the kernel has threads, the other has more."""
    deficits = np.array([0.0, 1e-4, 0.1, 0.5, 0.9])  # nearer to 1 the mean itself has few digits left
    got = _run(device, kernel_shape, _loss((weight,), size=size), deficits.tolist())[:, 0]
    means = 1 - deficits
    where = f"weight {weight}, {size}"
    check_array(LOSS_MEANS, f"{where}, deficit", got[:, 0], deficits)
    check_array(LOSS_MEANS, f"{where}, power", got[:, 1], means**weight)
    check_array(LOSS_MEANS, f"{where}, slope", got[:, 2] * means, np.full(5, weight))
    np.testing.assert_array_equal(got[:, 3], np.float32(1) - got[:, 0], f"{where}, mean: of the deficit as it is written")


def test_weight_0_counts_for_nothing(device: Device, kernel_shape: KernelShape) -> None:
    """Power 1 and slope 0 whatever the mean, be it negative."""
    got = _run(device, kernel_shape, _loss((0.0,), Negative.NULL), [0.25, 1.0, 1.5])[:, 0]
    np.testing.assert_array_equal(got[:, 1:3], [[1, 0]] * 3)


@pytest.mark.parametrize("negative", [Negative.CLAMP, Negative.NULL], ids=lambda negative: negative.value)
def test_means_that_are_not_above_0(device: Device, kernel_shape: KernelShape, negative: Negative) -> None:
    """A mean of 0 gives power and slope 0 under both; a negative one is clamped, or makes the value NaN."""
    got = _run(device, kernel_shape, _loss((WEIGHT,), negative), [1.0, 1.5], whole=True)[:, 0]
    np.testing.assert_array_equal(got[0, :3], [1, 0, 0])
    np.testing.assert_array_equal(got[1, :3], [1.5, np.nan if negative is Negative.NULL else 0, 0])


@pytest.mark.parametrize("scale", [0, 1, 2])
def test_each_scale_has_its_place(device: Device, kernel_shape: KernelShape, scale: int) -> None:
    """It reads its own sums and writes its own four floats; the others stay as they were."""
    got = _run(device, kernel_shape, _loss((0.2, 0.3, 0.5)), [0.25, 0.5], scale)
    check_array(LOSS_MEANS, f"scale {scale}", got[:, scale, 0], np.array([0.25, 0.5]))
    assert np.isnan(np.delete(got, scale, axis=1)).all()
