"""The plan of a loss, built without a device: buffers, order, and where each dispatch reads and writes."""

from __future__ import annotations

from itertools import pairwise

import pytest

from vkssim.host.plan import Dispatch, Plan, Role
from vkssim.loss.plan import DISTORTED, GRADIENT, MEANS, REFERENCE, loss_plan
from vkssim.loss.spec import MS_SSIM_WEIGHTS, Loss, Negative, Padding, Pyramid, constants
from vkssim.metrics.dispatches import KernelShape
from vkssim.shaders.interface import Shape

from ..shaders.harness import push_of, stem_of

WINDOWS = {"loss_value", "loss_gradient"}

shapes = pytest.mark.parametrize("shape", [KernelShape(Shape.STRIP, 8), KernelShape(Shape.STAGED, 64)], ids=str)
pyramids = pytest.mark.parametrize("pyramid", Pyramid, ids=lambda pyramid: pyramid.value)
scales = pytest.mark.parametrize("weights", [(1.0,), (0.5, 0.5), MS_SSIM_WEIGHTS, (0.1,) * 6], ids=lambda it: f"{len(it)}")
gradients = pytest.mark.parametrize("gradient", [False, True], ids=["value", "gradient"])


def _plan(
    shape: KernelShape,
    weights: tuple[float, ...],
    *,
    gradient: bool,
    pyramid: Pyramid = Pyramid.AVERAGE,
    size: tuple[int, int] = (361, 467),
    packed: bool = False,
) -> Plan:
    loss = Loss(*size, **constants(1.0), padding=Padding.SAME, weights=weights, pyramid=pyramid, negative=Negative.CLAMP)
    plan = loss_plan(loss, shape, gradient=gradient, packed=packed)
    plan.validate()
    return plan


def _unit(shape: KernelShape, dispatch: Dispatch) -> int:
    """Bytes of what the dispatch counts its sources' rows in."""
    return shape.shape.row_unit if dispatch.kernel.texel_input else 4


@shapes
@scales
@gradients
def test_number_of_dispatches(shape: KernelShape, weights: tuple[float, ...], gradient: bool) -> None:
    stems = [stem_of(dispatch) for dispatch in _plan(shape, weights, gradient=gradient).dispatches]
    count = len(weights)
    gathered = gradient and shape.shape is Shape.STRIP
    expected = {
        "loss_average": 2 * (count - 1),
        "loss_gradient" if gradient else "loss_value": count,
        "loss_gather": count * gathered,
        "loss_means": count,
        "loss_collect": (count - 1) * gradient,
    }
    assert {stem: stems.count(stem) for stem in stems} == {stem: number for stem, number in expected.items() if number}


@shapes
@scales
@gradients
def test_roles(shape: KernelShape, weights: tuple[float, ...], gradient: bool) -> None:
    plan = _plan(shape, weights, gradient=gradient)
    roles = {spec.name: spec.role for spec in plan.buffers if spec.role is not Role.WORK}
    expected = {DISTORTED: Role.INPUT, REFERENCE: Role.INPUT, MEANS: Role.OUTPUT}
    assert roles == (expected | {GRADIENT: Role.LARGE_OUTPUT} if gradient else expected)
    assert plan.buffer(MEANS).frame_bytes == 16 * len(weights)
    written = {name for dispatch in plan.dispatches for name in dispatch.targets}
    assert {spec.name for spec in plan.buffers} == written | {DISTORTED, REFERENCE}, "a buffer that nothing writes"


@shapes
@pyramids
@gradients
@pytest.mark.parametrize("packed", [False, True], ids=["aligned", "packed"])
def test_every_dispatch_stays_within_its_buffers(shape: KernelShape, pyramid: Pyramid, gradient: bool, packed: bool) -> None:
    packed = packed and shape.shape is Shape.STAGED
    plan = _plan(shape, MS_SSIM_WEIGHTS, gradient=gradient, pyramid=pyramid, packed=packed)
    for dispatch in plan.dispatches:
        push, stem = push_of(dispatch), stem_of(dispatch)
        if stem == "loss_means":
            continue
        collect = stem == "loss_collect"
        sources = [name for name in dispatch.sources if name != MEANS]
        rows = (push["height"] + 1) // 2 if collect else push["height"]
        assert rows * push["pitch"] <= push["plane"]
        for name in sources:
            maps = 3 if name.startswith("maps") else 1
            assert maps * push["plane"] * _unit(shape, dispatch) <= plan.buffer(name).frame_bytes, (dispatch.label, name)
        target = dispatch.targets[0]
        if target != "partials":
            maps = 3 if target.startswith("maps") else 1
            assert 4 * maps * push["target_plane"] <= plan.buffer(target).frame_bytes, (dispatch.label, target)


@shapes
@scales
@pytest.mark.parametrize("size", [(352, 352), (361, 467), (1080, 1920), (2160, 360)])
def test_partial_sums_lie_side_by_side(shape: KernelShape, weights: tuple[float, ...], size: tuple[int, int]) -> None:
    """Each scale writes where the one before ended, all fit what is reserved for a plane, and means read the same."""
    plan = _plan(shape, weights, gradient=True, size=size)
    windows = [dispatch for dispatch in plan.dispatches if stem_of(dispatch) in WINDOWS]
    means = {push["scale_index"]: push for push in map(push_of, plan.dispatches) if "scale_index" in push and "groups" in push}
    ends = [0]
    for scale, dispatch in enumerate(windows):
        push, count = push_of(dispatch), dispatch.groups[0] * dispatch.groups[1]
        assert push["first_partial"] == means[scale]["first_partial"] == ends[-1]
        assert means[scale]["groups"] == count
        assert 4 * push["plane_partials"] == 4 * means[scale]["plane_partials"] == plan.buffer("partials").frame_bytes
        assert push["strip"] * (dispatch.groups[1] - 1) < push["height"] <= push["strip"] * dispatch.groups[1]
        ends.append(ends[-1] + count)
    assert all(start < end for start, end in pairwise(ends))
    assert 4 * ends[-1] <= plan.buffer("partials").frame_bytes < 4 * ends[-1] + 16
