"""`loss_value.comp`, `loss_gradient.comp` and `loss_gather.comp`: sums and gradients of one scale against the twin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

from vkssim.features.planes import KernelShape
from vkssim.host.device import Device
from vkssim.loss.plan import DISTORTED, GRADIENT, REFERENCE, Planes, loss_plan
from vkssim.loss.spec import Loss, Negative, Padding, constants
from vkssim.reference.loss import mean_and_gradient

from ..differences import check_array, check_number
from ..loss.images import Doubles, images
from ..tolerances import LOSS_SAMPLE, LOSS_VALUE
from .harness import push_of, stem_of
from .losses import Floats, packed, run, unpacked

C = constants(1.0)
STEMS = {"loss_value", "loss_gradient", "loss_gather"}
WEIGHT = 3.0
"""Of the gradient, so that a forgotten one shows."""

PLANES = 2
SMALL = [(11, 11), (12, 13), (17, 30), (33, 27)]
ACROSS = [(47, 250), (251, 61), (13, 700)]
PLACES = {"cs, first": (2, 0), "l cs, alone": (1, 0), "l cs, last": (2, 1)}
"""Which scale of how many: the last has luminance in its term."""

by_padding = pytest.mark.parametrize("padding", Padding, ids=lambda padding: padding.value)
by_place = pytest.mark.parametrize("place", PLACES)


@dataclass(frozen=True)
class Case:
    """A scale of a size of its own in a plan of one scale or two."""

    scales: int
    scale: int
    height: int
    width: int
    padding: Padding = Padding.VALID
    packed: bool = False

    @property
    def loss(self) -> Loss:
        factor = 2**self.scale
        weights = (1 / self.scales,) * self.scales
        return Loss(
            factor * self.height, factor * self.width, **C, padding=self.padding, weights=weights, negative=Negative.CLAMP
        )


class Result(NamedTuple):
    """Means (P,) of the term, gradients of the sum of all (P, H, W), and what the maps hold."""

    means: Doubles
    gradients: Floats | None
    maps: list[Floats]


def _named(buffer: str, scale: int) -> str:
    return f"{buffer}.{scale}" if scale else buffer


def _run(device: Device, shape: KernelShape, case: Case, reference: Floats, distorted: Floats, *, gradient: bool) -> Result:
    made = loss_plan(case.loss, shape, gradient=gradient, weight=WEIGHT, packed=case.packed)
    dispatches = [
        dispatch
        for dispatch in made.plan.dispatches
        if stem_of(dispatch) in STEMS and dispatch.label.endswith(f"scale {case.scale}")
    ]
    layout = made.planes if not case.scale else Planes.aligned("", (case.height, case.width))
    filled = {
        _named(DISTORTED, case.scale): packed(layout, distorted),
        _named(REFERENCE, case.scale): packed(layout, reference),
    }
    got = run(device, made.plan, dispatches, filled)
    push, (across, down) = push_of(dispatches[0]), dispatches[0].groups
    first, count = push["first_partial"], across * down
    written = np.isfinite(got["partials"])
    assert written[:, first : first + count].all(), "a workgroup left no sum"
    assert written.sum() == written[:, first : first + count].size, "a sum lies where another scale's should"
    deficits = got["partials"][:, first : first + count].sum(axis=1, dtype=np.float64)
    maps = [unpacked(layout, memory) for name, memory in got.items() if name.startswith("maps")]
    written_rows = unpacked(layout, got[_named(GRADIENT, case.scale)])[..., : case.width] if gradient else None
    return Result(1 - deficits / case.loss.windows[case.scale], written_rows, maps)


def _check(device: Device, shape: KernelShape, case: Case, kind: str = "natural") -> None:
    reference, distorted = images(kind, PLANES, case.height, case.width)
    with_luminance = case.scale == case.scales - 1
    expected, slopes = mean_and_gradient(
        reference.astype(np.float64), distorted.astype(np.float64), **C, padding=case.padding, with_luminance=with_luminance
    )
    value = _run(device, shape, case, reference, distorted, gradient=False)
    both = _run(device, shape, case, reference, distorted, gradient=True)
    assert both.gradients is not None
    unit = WEIGHT * np.abs(slopes).max()
    check_array(LOSS_SAMPLE, f"{case}, {shape.shape.value}", both.gradients / unit, WEIGHT * slopes / unit)
    for plane in range(PLANES):
        where = f"{case}, {shape.shape.value}, plane {plane}"
        check_number(LOSS_VALUE, "loss_value", where, value.means[plane], expected[plane])
        check_number(LOSS_VALUE, "loss_gradient", where, both.means[plane], expected[plane])
        check_number(LOSS_VALUE, "one against the other", where, value.means[plane], both.means[plane])


def _cases(place: str, height: int, width: int, padding: Padding) -> Case:
    """Where there are two scales the second of 11x11 is the smallest: sides of the first are brought up to it."""
    scales, scale = PLACES[place]
    smallest = 21 if (scales, scale) == (2, 0) else 0
    return Case(scales, scale, max(height, smallest), max(width, smallest), padding)


@by_place
@by_padding
@pytest.mark.parametrize(("height", "width"), SMALL + ACROSS)
def test_every_size(device: Device, kernel_shape: KernelShape, place: str, height: int, width: int, padding: Padding) -> None:
    _check(device, kernel_shape, _cases(place, height, width, padding))
