"""`loss_value.comp`, `loss_gradient.comp` and `loss_gather.comp`: sums and gradients of one scale against the float64 twin."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import count, takewhile
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from vkssim.host.device import Device
from vkssim.host.plan import Dispatch, Plan
from vkssim.loss.plan import loss_plan
from vkssim.loss.reference import mean_and_gradient
from vkssim.loss.spec import Loss, Negative, Padding, constants
from vkssim.metrics.dispatches import KernelShape, PlaneLayout
from vkssim.shaders.interface import Shape

from ..loss.images import images
from ..support.differences import check_array, check_number
from ..support.tolerances import LOSS_SAMPLE, LOSS_VALUE
from .harness import UNWRITTEN, Floats, alone, pack_rows, push_of, run_buffers, unpack_rows

PLANES = 2
WEIGHT = 3.0
"""Of the gradient, so that one forgotten or applied twice shows."""

SIZES = [(11, 11), (12, 14), (33, 27), (251, 62), (23, 700)]
SMALL = [(1, 1), (3, 40), (11, 10), (16, 7)]
TERMS = {"cs": (2, 0), "l cs": (1, 0), "l cs, behind others": (2, 1)}
"""How many scales a plan has, and which of them runs: the last has luminance in its term."""

by_padding = pytest.mark.parametrize("padding", Padding, ids=lambda padding: padding.value)
by_term = pytest.mark.parametrize("term", TERMS)


@dataclass(frozen=True)
class Case:
    """One scale, of a size of its own."""

    height: int
    width: int
    term: str = "l cs"
    padding: Padding = Padding.VALID
    packed: bool = False
    data_range: float = 1.0

    @property
    def loss(self) -> Loss:
        scales, scale = TERMS[self.term]
        size = self.height << scale, self.width << scale
        options: dict[str, Any] = {**constants(self.data_range), "weights": (1 / scales,) * scales}
        return Loss(*size, padding=self.padding, negative=Negative.CLAMP, **options)

    @property
    def layout(self) -> PlaneLayout:
        """How its planes lie in memory."""
        aligned = PlaneLayout.floats("", self.width, self.height)
        return replace(aligned, row_bytes=4 * self.width) if self.packed else aligned

    def twin(self, reference: Floats, distorted: Floats) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Means of the term (P,) and their gradients (P, H, W), in double."""
        exact = reference.astype(np.float64), distorted.astype(np.float64)
        return mean_and_gradient(*exact, self.loss.c1, self.loss.c2, self.padding, with_luminance=self.term != "cs")

    def plan(self, shape: KernelShape, *, gradient: bool) -> Plan:
        return loss_plan(self.loss, shape, gradient=gradient, weight=WEIGHT, packed=self.packed)


class Sums(NamedTuple):
    """What the windows of planes come to: means of the term (P,) and the rest that the kernel wrote, if any."""

    means: npt.NDArray[np.float64]
    rest: Floats


def _written(data: Floats) -> npt.NDArray[np.bool_]:
    written: npt.NDArray[np.bool_] = data.view(np.uint32) != UNWRITTEN
    return written


def _dispatch(made: Plan, stage: str, case: Case) -> Dispatch:
    label = f"{stage}, scale {TERMS[case.term][1]}"
    (found,) = (dispatch for dispatch in made.dispatches if dispatch.label == label)
    return found


def _windows(device: Device, made: Plan, case: Case, distorted: Floats, reference: Floats) -> Sums:
    """Run the walk alone. Each workgroup writes its own sum, and nothing beside them."""
    dispatch = _dispatch(made, "windows", case)
    planes = (pack_rows(case.layout, side) for side in (distorted, reference))
    got = run_buffers(device, alone(made, dispatch), dict(zip(dispatch.sources, planes, strict=True)))
    *rest, partials = dispatch.targets
    first, groups = push_of(dispatch)["first_partial"], dispatch.groups[0] * dispatch.groups[1]
    written = _written(got[partials])
    expected = (np.arange(written.shape[1]) >= first) & (np.arange(written.shape[1]) < first + groups)
    np.testing.assert_array_equal(written, np.broadcast_to(expected, written.shape))
    deficits = got[partials][:, expected].sum(axis=1, dtype=np.float64) / case.loss.windows[TERMS[case.term][1]]
    return Sums(1 - deficits, got[rest[0]] if rest else np.empty(0, np.float32))


def _gradient(device: Device, shape: KernelShape, case: Case, distorted: Floats, reference: Floats) -> Sums:
    """The same with the gradient (P, H, W): the walk's own, or gathered from its maps, which are whole rows without a gap."""
    made = case.plan(shape, gradient=True)
    sums = _windows(device, made, case, distorted, reference)
    rows = sums.rest
    if shape.shape is Shape.STRIP:
        assert _written(rows).all(), "the maps have places that are not written"
        dispatch = _dispatch(made, "gather", case)
        planes = (pack_rows(case.layout, side) for side in (distorted, reference))
        contents = dict(zip(dispatch.sources, (rows, *planes), strict=True))
        rows = run_buffers(device, alone(made, dispatch), contents)[dispatch.targets[0]]
    return Sums(sums.means, unpack_rows(case.layout, rows))


def _check(device: Device, shape: KernelShape, case: Case, kind: str = "natural") -> None:
    reference, distorted = images(kind, PLANES, case.height, case.width)
    means, slopes = case.twin(reference, distorted)
    value = _windows(device, case.plan(shape, gradient=False), case, distorted, reference)
    sums = _gradient(device, shape, case, distorted, reference)
    where, unit = f"{shape.shape.value}, {case}", np.abs(slopes).max(axis=(1, 2), keepdims=True)
    check_array(LOSS_SAMPLE, where, sums.rest / (WEIGHT * unit), slopes / unit)
    for plane in range(PLANES):
        check_number(LOSS_VALUE, "loss_value", f"{where}, plane {plane}", value.means[plane], means[plane])
        check_number(LOSS_VALUE, "loss_gradient", f"{where}, plane {plane}", sums.means[plane], means[plane])
        check_number(LOSS_VALUE, "both kernels", f"{where}, plane {plane}", sums.means[plane], value.means[plane])


@by_padding
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_every_size(device: Device, kernel_shape: KernelShape, size: tuple[int, int], padding: Padding) -> None:
    _check(device, kernel_shape, Case(*size, padding=padding))


@by_term
def test_every_term(device: Device, kernel_shape: KernelShape, term: str) -> None:
    for padding in Padding:
        _check(device, kernel_shape, Case(39, 131, term, padding))


@pytest.mark.parametrize("size", SMALL, ids=str)
def test_planes_smaller_than_the_window(device: Device, kernel_shape: KernelShape, size: tuple[int, int]) -> None:
    _check(device, kernel_shape, Case(*size, padding=Padding.SAME), "noise")


@pytest.mark.parametrize("beside", [-1, 0, 1])
@pytest.mark.parametrize("gradient", [False, True], ids=["value", "gradient"])
def test_columns_where_a_workgroup_begins(device: Device, kernel_shape: KernelShape, gradient: bool, beside: int) -> None:
    """The two kernels of the staged shape differ in the columns that a workgroup has."""

    def groups(width: int) -> int:
        made = Case(16, width, padding=Padding.SAME).plan(kernel_shape, gradient=gradient)
        return made.dispatches[0].groups[0]

    columns = sum(1 for _ in takewhile(lambda width: groups(width) == 1, count(1)))
    for across, padding in enumerate(Padding, 1):
        _check(device, kernel_shape, Case(30, across * columns + beside, padding=padding))


def test_strips_as_long_as_they_get(device: Device, kernel_shape: KernelShape) -> None:
    """Strips are cut short while workgroups are few; here the rows alone make many."""
    _check(device, kernel_shape, Case(2881, 15))


@by_padding
@pytest.mark.parametrize("width", range(60, 64))
def test_rows_without_a_gap(device: Device, padding: Padding, width: int) -> None:
    """Where the width is a multiple of four the kernel reads and writes sixteen bytes at a time, else four."""
    shape = KernelShape(Shape.STAGED, 64)  # the strip shape needs rows that begin on sixteen bytes
    for across in (width, width + 4 * 40):
        _check(device, shape, Case(35, across, padding=padding, packed=True))


@by_term
def test_identical_planes_lack_nothing(device: Device, kernel_shape: KernelShape, term: str) -> None:
    """Sums and gradient are exactly 0."""
    case = Case(45, 131, term, Padding.SAME)
    plane, _ = images("natural", PLANES, case.height, case.width)
    sums = _gradient(device, kernel_shape, case, plane, plane)
    assert not sums.rest.any()
    assert (sums.means == 1.0).all()


REACH = 10
"""How far a sample is from the samples whose windows it lies in, at most."""

TWO_STRIPS = Case(18, 27, padding=Padding.SAME)
"""Wide enough that a sample leaves columns on one of its sides alone, and high enough for two workgroups."""

Places = tuple[tuple[int, ...], tuple[int, ...]]
"""Some rows, and some columns, each with each."""

EVERY_PLACE = tuple(range(TWO_STRIPS.height)), tuple(range(TWO_STRIPS.width))


class Spoilt(NamedTuple):
    """Planes with one such sample each, its (row, column) places, and what the twin makes of the planes."""

    places: npt.NDArray[np.int64]
    planes: tuple[Floats, Floats]
    means: npt.NDArray[np.float64]
    slopes: npt.NDArray[np.float64]


@cache  # the same for both shapes
def _spoilt(case: Case, hot: float, places: Places, kind: str) -> Spoilt:
    grid = np.array(np.meshgrid(*places)).reshape(2, -1)
    planes = tuple(np.repeat(side[:1], grid.shape[1], axis=0) for side in images(kind, 1, case.height, case.width))
    reference, distorted = planes
    for side in planes:
        side[np.arange(grid.shape[1]), grid[0], grid[1]] = hot
    with np.errstate(invalid="ignore"):
        return Spoilt(grid, (reference, distorted), *case.twin(reference, distorted))


def _check_beside(device: Device, shape: KernelShape, case: Case, hot: float, places: Places, kind: str = "natural") -> None:
    """Compare planes with one such sample each, in both images as where a renderer has fireflies, at every place."""
    grid, (reference, distorted), means, slopes = _spoilt(case, hot, places, kind)
    rows, columns = grid.reshape(2, -1, 1, 1)
    sums = _gradient(device, shape, case, distorted, reference)
    down, across = np.arange(case.height)[None, :, None] - rows, np.arange(case.width)[None, None] - columns
    spoilt = (np.abs(down) <= REACH) & (np.abs(across) <= REACH)
    unit = np.abs(np.where(spoilt, 0.0, slopes)).max(axis=(1, 2), keepdims=True)
    where = f"{shape.shape.value}, {case.height}x{case.width}, {hot}"
    beside = np.where(spoilt, 0.0, sums.rest / (WEIGHT * unit))
    check_array(LOSS_SAMPLE, f"beside a sample, {where}", beside, np.where(spoilt, 0.0, slopes / unit))
    if np.isfinite(hot):
        check_array(LOSS_VALUE, where, sums.means, means)
    else:
        assert np.isnan(sums.means).all()
        assert np.isnan(np.where(spoilt, sums.rest, np.nan)).all(), "a number where a window is none"


@pytest.mark.parametrize("hot", [1e3, -1e4, np.inf, np.nan], ids=str)
def test_one_sample_spoils_no_window_but_its_own(device: Device, kernel_shape: KernelShape, hot: float) -> None:
    """A plane for every place that the sample can have, so that no pivot is spared."""
    _check_beside(device, kernel_shape, TWO_STRIPS, hot, EVERY_PLACE)


def test_a_dark_sample_in_a_bright_wall(device: Device, kernel_shape: KernelShape) -> None:
    """The sample is within the range; a pivot of 0 would leave the wall, which is nearly flat, half of its digits."""
    _check_beside(device, kernel_shape, TWO_STRIPS, 0.0, EVERY_PLACE, "bright")


def test_one_sample_where_workgroups_meet(device: Device, kernel_shape: KernelShape) -> None:
    """Also in the middle of each, and in the corners of the plane."""
    rows, columns = (0, 9, 18, 19, 20, 28, 39), (0, 7, 8, 53, 54, 63, 64, 107, 108, 120, 162, 215, 216, 239)
    _check_beside(device, kernel_shape, Case(40, 240), 1e3, (rows, columns))


@pytest.mark.parametrize("share", [0.3, 0.7, 0.95])
def test_a_lamp_leaves_the_dark_part_alone(device: Device, kernel_shape: KernelShape, share: float) -> None:
    """Where nearly all of a plane is ten thousand times as bright as its range, the rest is what it would be without."""
    case = Case(61, 300, padding=Padding.SAME)
    reference, distorted = images("natural", 1, 61, 300)
    edge = round(share * 300)
    for side in (reference, distorted):
        side[..., :edge] *= np.float32(1e4)
    sums = _gradient(device, kernel_shape, case, distorted, reference)
    means, slopes = case.twin(reference, distorted)
    dark = np.s_[:, :, edge + REACH :]
    unit = np.abs(slopes[dark]).max()
    check_array(LOSS_SAMPLE, f"{kernel_shape.shape.value}, {share}", sums.rest[dark] / (WEIGHT * unit), slopes[dark] / unit)
    check_array(LOSS_VALUE, f"{kernel_shape.shape.value}, lamp {share}", sums.means, means)


@by_term
@pytest.mark.parametrize("odd", [np.inf, -np.inf, np.nan, 1e25])
def test_a_window_without_a_number_is_none(device: Device, kernel_shape: KernelShape, term: str, odd: float) -> None:
    """It is not taken for a perfect one, whichever image the sample is in."""
    case = Case(31, 40, term)
    for side in range(2):
        pair = images("natural", PLANES, case.height, case.width)
        pair[side][0, 17, 21] = odd
        for sums in (
            _windows(device, case.plan(kernel_shape, gradient=False), case, *pair),
            _gradient(device, kernel_shape, case, *pair),
        ):
            assert np.isnan(sums.means).tolist() == [True, False]


@pytest.mark.parametrize("hot", [1e9, 1e15])
def test_denominators_do_not_overflow(device: Device, kernel_shape: KernelShape, hot: float) -> None:
    """Their product would, and a window of two unlike samples would be a perfect one."""
    case = Case(31, 40)
    reference, distorted = images("natural", PLANES, case.height, case.width)
    distorted[:, 17, 21] = hot
    means, _ = case.twin(reference, distorted)
    for gradient in (False, True):
        got = _windows(device, case.plan(kernel_shape, gradient=gradient), case, distorted, reference).means
        check_array(LOSS_VALUE, f"{kernel_shape.shape.value}, {hot}", got, means)


@pytest.mark.parametrize("data_range", [1e-15, 1e-9, 1e9, 1e15])
def test_ranges_far_from_1(device: Device, kernel_shape: KernelShape, data_range: float) -> None:
    """Neither denominators nor squares leave what float32 can hold."""
    case = Case(31, 140, data_range=data_range)
    reference, distorted = (side * np.float32(data_range) for side in images("natural", PLANES, case.height, case.width))
    means, slopes = case.twin(reference, distorted)
    sums = _gradient(device, kernel_shape, case, distorted, reference)
    unit = np.abs(slopes).max()
    check_array(LOSS_SAMPLE, f"{kernel_shape.shape.value}, {data_range}", sums.rest / (WEIGHT * unit), slopes / unit)
    for got, expected in zip(sums.means, means, strict=True):
        check_number(LOSS_VALUE, "range", f"{kernel_shape.shape.value}, {data_range}", got, expected)
