"""`psnr.comp`: the sums of each workgroup against those of its samples, and their total against the twin's noise."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from vkssim.host.device import Device
from vkssim.host.plan import Role
from vkssim.metrics.dispatches import KernelShape, PlanePair, WindowWalk
from vkssim.metrics.float_psnr import FloatPsnrScorer
from vkssim.metrics.samples import ingest, noise
from vkssim.types import FrameFormat

from ..support.devices.geometry import columns_of_a_group
from ..support.pictures import Picture
from .harness import FORMATS, make_planes, pack, run

SIZES = [(1, 1), (3, 1), (1, 5), (16, 8), (17, 9), (33, 140), (251, 90), (1030, 75)]
INTEGERS = [name for name in FORMATS if name != "float32"]


def _sums(device: Device, shape: KernelShape, frame: FrameFormat, planes: Picture) -> npt.NDArray[np.float32]:
    """Return what the kernel leaves, as the host is given it."""
    source = PlanePair.raw(frame)
    plan = FloatPsnrScorer(frame, {}).plan(shape, source)
    (dispatch,) = plan.steps[0]
    data = run(device, [dispatch], source.spec(Role.INPUT), plan.partials, pack(source, planes))
    return data.view(np.float32)[:, : 3 * WindowWalk.samples(shape, source).count].reshape(len(planes), -1, 3)


def _totals(device: Device, shape: KernelShape, frame: FrameFormat, planes: Picture, base: int) -> list[Fraction]:
    """Return the sum of each frame without any rounding, from digits of that base."""
    return [
        sum((Fraction(float(digit)) * base**place for digits in sums for place, digit in enumerate(digits)), Fraction())
        for sums in _sums(device, shape, frame, planes)
    ]


def _squares(planes: Picture) -> list[int]:
    """Return the sum of the squared differences of each frame of integers."""
    differences = planes[:, 0].astype(np.int64) - planes[:, 1]
    return [int(frame.sum()) for frame in differences**2]


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_every_size(device: Device, kernel_shape: KernelShape, width: int, height: int) -> None:
    """Two frames, in rows whose padding differs between the planes where it is not looked at."""
    frame, planes = make_planes("uint8", width, height)
    assert _totals(device, kernel_shape, frame, planes, 1 << 16) == _squares(planes)


@pytest.mark.parametrize("beside", [-1, 0, 1])
@pytest.mark.parametrize("groups", [1, 2])
def test_columns_where_a_workgroup_begins(device: Device, kernel_shape: KernelShape, groups: int, beside: int) -> None:
    width = groups * columns_of_a_group("samples", kernel_shape) + beside
    frame, planes = make_planes("float32", width, 5)
    planes = np.round(planes)  # so that sums are exact in any order
    expected = [int(total) for total in np.square(planes[:, 0] - planes[:, 1]).sum((1, 2), np.float64)]
    assert _totals(device, kernel_shape, frame, planes, 1) == expected


@pytest.mark.parametrize("format_name", INTEGERS)
def test_sums_of_integers_are_exact(device: Device, kernel_shape: KernelShape, format_name: str) -> None:
    frame, planes = make_planes(format_name, 203, 77)
    assert _totals(device, kernel_shape, frame, planes, 1 << 16) == _squares(planes)


@pytest.mark.parametrize("format_name", INTEGERS)
@pytest.mark.parametrize("swapped", [False, True])
def test_black_against_white(device: Device, kernel_shape: KernelShape, format_name: str, swapped: bool) -> None:
    """The largest sums there are."""
    dtype, peak = FORMATS[format_name]
    planes = np.zeros((1, 2, 300, 700), dtype)
    planes[:, int(swapped)] = int(peak)
    frame = FrameFormat.of_array(700, 300, dtype, peak)
    assert _totals(device, kernel_shape, frame, planes, 1 << 16) == [300 * 700 * int(peak) ** 2]


@pytest.mark.parametrize("place", [(0, 0), (0, 699), (71, 15), (72, 16), (133, 699), (134, 0), (299, 699)])
def test_one_sample_differs(device: Device, kernel_shape: KernelShape, place: tuple[int, int]) -> None:
    planes = np.full((1, 2, 300, 700), 128, np.uint8)
    planes[(0, 1, *place)] = 129
    assert _totals(device, kernel_shape, FrameFormat.of_bits(700, 300, 8), planes, 1 << 16) == [1]


FLOATS: dict[str, Any] = {
    "noise": lambda random, shape: random.random(shape) * 255,
    "a constant that no float has": lambda random, shape: np.full(shape, 254.7),
    "one large difference among small ones": lambda random, shape: np.where(
        np.arange(shape[0] * shape[1]).reshape(shape) == 4321, 255.0, 1e-3 * random.random(shape)
    ),
    "halves of very different size": lambda random, shape: (
        np.where(np.arange(shape[1]) < 350, 251.3, 1e-4) * random.random(shape)
    ),
    "differences too small for a depth": lambda random, shape: 1e-6 * random.random(shape),
}


@pytest.mark.parametrize("name", FLOATS)
def test_floats_are_added_without_rounding(device: Device, kernel_shape: KernelShape, name: str) -> None:
    """Difference and square are rounded to float32, as by libvmaf; their sum is right to a place beyond what float32 has."""
    planes = np.zeros((1, 2, 150, 700), np.float32)
    planes[0, 0] = FLOATS[name](np.random.default_rng(3), (150, 700))
    (total,) = _totals(device, kernel_shape, FrameFormat.of_array(700, 150, np.float32, 255.0), planes, 1)
    expected = math.fsum(np.square(planes[0, 0] - planes[0, 1]).ravel().tolist())
    assert float(total) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_no_number_gives_none(device: Device, kernel_shape: KernelShape, value: float) -> None:
    planes = np.zeros((2, 2, 20, 70), np.float32)
    planes[1, 0, 7, 33] = value
    sums = _sums(device, kernel_shape, FrameFormat.of_array(70, 20, np.float32, 1.0), planes)
    assert np.isfinite(sums[0]).all()
    assert not np.isfinite(sums[1].sum())


@pytest.mark.parametrize("format_name", FORMATS)
def test_the_host_makes_the_twins_noise_of_them(device: Device, kernel_shape: KernelShape, format_name: str) -> None:
    frame, planes = make_planes(format_name, 203, 77)
    scorer = FloatPsnrScorer(frame, {})
    source = PlanePair.raw(frame)
    plan = scorer.plan(kernel_shape, source)
    data = run(device, plan.steps[0], source.spec(Role.INPUT), plan.partials, pack(source, planes))
    expected = [noise(*(ingest(plane, frame.factor) for plane in pair)) for pair in planes]
    np.testing.assert_allclose(scorer.means(data.view(np.float32), plan)[:, 0], expected, rtol=1e-8)
