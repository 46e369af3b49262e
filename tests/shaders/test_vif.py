"""`vif_decimate.comp` and `vif.comp`: every integer against the twin's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest

from vkssim.host.device import Device
from vkssim.host.pipelines import PipelineBuilder
from vkssim.host.plan import Dispatch, Plan, Role
from vkssim.metrics import make_scorer, vif
from vkssim.metrics.base import FeaturePlan
from vkssim.metrics.dispatches import KernelShape, PlanePair
from vkssim.shaders.constants import STRIP_COLUMNS, VIF_FILTERS, VIF_WORKGROUP
from vkssim.shaders.interface import Shape
from vkssim.types import FrameFormat, Samples

from .harness import pack, run_buffers, stem_of

SIZES = [(16, 16), (17, 16), (16, 33), (47, 61), (128, 64), (239, 40), (241, 70), (500, 150)]
BITS = [8, 9, 10, 12, 14, 16]


def _format(width: int, height: int, bits: int) -> FrameFormat:
    return FrameFormat.of_bits(width, height, bits)


def _noise(frame: FrameFormat, frames: int = 2, seed: int = 0) -> npt.NDArray[np.unsignedinteger]:
    """References of noise, and the same with less contrast and more noise, (frames, 2, H, W): every branch has windows."""
    rng = np.random.default_rng(seed)
    shape = frames, frame.height, frame.width
    reference = rng.random(shape) * np.linspace(0, 1, frame.width) ** 3
    distorted = np.clip(0.6 * reference + 0.2 * rng.random(shape) * (rng.random(shape) > 0.5), 0, 1)
    return np.round(np.stack([reference, distorted], axis=1) * frame.peak).astype(frame.dtype)


def _plan(frame: FrameFormat, shape: KernelShape, limit: int = 100) -> tuple[FeaturePlan, PlanePair]:
    source = PlanePair.raw(frame)
    return make_scorer(f"vif=vif_enhn_gain_limit={limit}", frame).plan(shape, source), source


@dataclass(frozen=True)
class Kernels:
    """A device, the shape of its kernels, and those that are compiled."""

    device: Device
    shape: KernelShape
    pipelines: PipelineBuilder


@pytest.fixture
def kernels(device: Device, kernel_shape: KernelShape, pipelines: PipelineBuilder) -> Kernels:
    return Kernels(device, kernel_shape, pipelines)


def _sums(kernels: Kernels, frame: FrameFormat, planes: Samples, limit: int = 100) -> list[list[list[int]]]:
    """Return the sums of each scale of each frame, as the host makes them of the kernels' digits."""
    plan, source = _plan(frame, kernels.shape, limit)
    whole = Plan((source.spec(Role.INPUT), *plan.buffers), plan.steps)
    contents = {source.buffer: pack(source, planes).view(np.float32)}
    partials = run_buffers(kernels.device, whole, contents, kernels.pipelines)[plan.partials.name]
    means = make_scorer(f"vif=vif_enhn_gain_limit={limit}", frame).means(partials, plan)
    return means.reshape(len(planes), vif.VIF_SCALES, 4).astype(np.int64).tolist()


def _expected(planes: Samples, bits: int, limit: int = 100) -> list[list[list[int]]]:
    return [[list(sums) for sums in vif.vif_sums(pair[0], pair[1], bits, gain_limit=limit)] for pair in planes]


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_every_size(kernels: Kernels, width: int, height: int) -> None:
    frame = _format(width, height, 8)
    planes = _noise(frame)
    assert _sums(kernels, frame, planes) == _expected(planes, 8)


@pytest.mark.parametrize("beside", [-1, 0, 1])
def test_columns_where_a_workgroup_begins(kernels: Kernels, beside: int) -> None:
    columns = VIF_WORKGROUP - len(VIF_FILTERS[0]) + 1
    if kernels.shape.shape is Shape.STRIP:
        columns = 2 * 16 * STRIP_COLUMNS  # two of the shortest strips
    frame = _format(columns + beside, 20, 8)
    planes = _noise(frame)
    assert _sums(kernels, frame, planes) == _expected(planes, 8)


@pytest.mark.parametrize("limit", [1, 2, 100])
@pytest.mark.parametrize("bits", BITS)
def test_every_depth_and_limit(kernels: Kernels, bits: int, limit: int) -> None:
    frame = _format(101, 67, bits)
    planes = _noise(frame, seed=bits)
    assert _sums(kernels, frame, planes, limit) == _expected(planes, bits, limit)


@pytest.mark.parametrize("bits", BITS)
def test_black_against_white(kernels: Kernels, bits: int) -> None:
    """Edges of the largest contrast, whose moments are the largest that there are, and flat frames."""
    frame = _format(70, 40, bits)
    planes = np.zeros((3, 2, 40, 70), frame.dtype)
    planes[0, :, :, 35:] = planes[1, 0] = planes[2, 0, ::2] = planes[2, 1, 1::2] = int(frame.peak)
    assert _sums(kernels, frame, planes) == _expected(planes, bits)


def test_samples_in_the_upper_bits(kernels: Kernels) -> None:
    """As a hardware decoder writes 10 bits."""
    frame = _format(90, 50, 10)
    planes = _noise(frame)
    surfaces = frame.in_surfaces()
    assert _sums(kernels, surfaces, planes << surfaces.shift) == _expected(planes, 10)


def _stages(dispatches: tuple[tuple[Dispatch, ...], ...], stem: str) -> list[Dispatch]:
    return [dispatch for step in dispatches for dispatch in step if stem_of(dispatch) == stem]


@pytest.mark.parametrize("bits", [8, 10])
def test_the_planes_of_each_scale(kernels: Kernels, bits: int) -> None:
    frame = _format(75, 58, bits)
    planes: Samples = _noise(frame)
    plan, source = _plan(frame, kernels.shape)
    for scale, dispatch in enumerate(_stages(plan.steps, "vif_decimate"), 1):
        width, height = planes.shape[3] // 2, planes.shape[2] // 2
        (spec,) = (spec for spec in plan.buffers if spec.name == dispatch.targets[0])
        target = spec.__class__(spec.name, Role.OUTPUT, spec.frame_bytes)
        contents = {source.buffer: pack(source, planes).view(np.float32)}
        plan_of_one = Plan((source.spec(Role.INPUT), target), ((dispatch,),))
        made = run_buffers(kernels.device, plan_of_one, contents, kernels.pipelines)[target.name]
        rows = made.view(np.uint16).reshape(len(planes), 2, height, -1)[..., :width]
        expected = np.array([[vif.halve(plane, bits, scale - 1) for plane in pair] for pair in planes])
        np.testing.assert_array_equal(rows, expected)
        planes = expected
        source = PlanePair(target.name, width, height, source.code.UINT16, spec.frame_bytes // (2 * height))
