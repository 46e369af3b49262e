"""`speed.comp` and `speed_blocks.comp`: every float of the small planes and of their blocks is the twin's."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from vkssim.errors import FrameError
from vkssim.host.device import Device
from vkssim.host.pipelines import PipelineBuilder
from vkssim.host.plan import Plan, Role
from vkssim.metrics import make_scorer
from vkssim.metrics.base import FeaturePlan
from vkssim.metrics.dispatches import KernelShape, PlanePair
from vkssim.metrics.speed import BLOCK, PLACES, SpeedOptions, blocks, local_contrast, small_plane
from vkssim.shaders.interface import Shape
from vkssim.types import FrameFormat, Samples

from .harness import pack, run_buffers

FEATURE = "speed_chroma=speed_prescale={0.prescale}:speed_prescale_method={0.prescale_method}:speed_kernelscale={0.kernelscale}"
DEFAULTS = SpeedOptions()


@dataclass(frozen=True)
class Kernels:
    """A device, the shape of its kernels, and those that are compiled."""

    device: Device
    shape: KernelShape
    pipelines: PipelineBuilder


@pytest.fixture
def kernels(device: Device, kernel_shape: KernelShape, pipelines: PipelineBuilder) -> Kernels:
    return Kernels(device, kernel_shape, pipelines)


def _noise(width: int, height: int, bits: int) -> Samples:
    frame = FrameFormat.of_bits(width, height, bits)
    noise: Samples = np.random.default_rng(bits).integers(0, int(frame.peak) + 1, (2, 2, height, width)).astype(frame.dtype)
    return noise


def _assert_every_float(kernels: Kernels, planes: Samples, bits: int, options: SpeedOptions = DEFAULTS) -> None:
    """Compare the small planes of (N, 2, H, W) planes, and the statistics of their blocks."""
    height, width = planes.shape[2:]
    frame = FrameFormat.of_bits(width, height, bits)
    source = PlanePair.raw(frame)
    plan = make_scorer(FEATURE.format(options), frame).plan(kernels.shape, source)
    written = tuple(replace(spec, role=Role.OUTPUT) if spec.name == "speed.small" else spec for spec in plan.buffers)
    whole = Plan((source.spec(Role.INPUT), *written), plan.steps)
    made = run_buffers(kernels.device, whole, {source.buffer: pack(source, planes).view(np.float32)}, kernels.pipelines)

    expected = np.array([[small_plane(plane, bits, options) for plane in pair] for pair in planes])
    *sides, rows, columns = expected.shape
    small = made["speed.small"].reshape(*sides, rows, -1)[..., :columns]
    np.testing.assert_array_equal(small, expected)
    statistics = made[plan.partials.name][:, : plan.groups[0]].reshape(*sides, -1)
    assert statistics.shape[-1] == PLACES + 1 + (columns // BLOCK) * (rows // BLOCK)
    for found, plane in zip(statistics.reshape(-1, statistics.shape[-1]), expected.reshape(-1, rows, columns), strict=True):
        right = blocks(local_contrast(plane, options))
        # Those of a singular covariance may be as small as the errors of products, which are 0 below the smallest float.
        smallest = 1e-6 * right.eigenvalues.max() if right.singular else 0.0
        np.testing.assert_allclose(found[:PLACES], right.eigenvalues, rtol=0, atol=smallest)
        assert bool(found[PLACES]) == right.singular
        np.testing.assert_array_equal(found[PLACES + 1 :], right.variances)


@pytest.mark.parametrize(("width", "height"), [(80, 80), (95, 161), (528, 83)])
def test_every_size(kernels: Kernels, width: int, height: int) -> None:
    _assert_every_float(kernels, _noise(width, height, 8), 8)


@pytest.mark.parametrize(
    ("options", "bits"),
    [
        (SpeedOptions(kernelscale=2.3), 9),
        (SpeedOptions(prescale=0.8, prescale_method="bilinear"), 12),
        (SpeedOptions(prescale=1.7, prescale_method="bilinear", kernelscale=0.1), 16),
        (SpeedOptions(prescale=0.8), 8),
    ],
    ids=["wide", "smaller", "larger", "nearest"],
)
def test_options_and_depths(kernels: Kernels, options: SpeedOptions, bits: int) -> None:
    _assert_every_float(kernels, _noise(170, 140, bits), bits, options)


def test_chroma_of_8k(kernels: Kernels) -> None:
    """With a turn of its loops for each sample, lavapipe would end them before the last one."""
    _assert_every_float(kernels, _noise(960, 540, 8)[:1], 8, SpeedOptions(prescale=4.0))


def test_chroma_that_lavapipe_would_not_add_up(kernels: Kernels) -> None:
    shape = replace(kernels.shape, shape=Shape.STRIP)

    def plan(side: int) -> FeaturePlan:
        frame = FrameFormat.of_bits(side, side, 8)
        return make_scorer("speed_chroma", frame).plan(shape, PlanePair.raw(frame))

    assert plan(4096).steps
    with pytest.raises(FrameError, match="chroma of 4608x4608, scaled by 1, is larger than the 4096x4096"):
        plan(4608)


def test_planes_with_little_information(kernels: Kernels) -> None:
    """Flat, a slope, one wave, a few values, noise of very different strengths: singular and nearly singular covariances."""
    height, width = 200, 250
    rows, columns = np.mgrid[:height, :width]
    random = np.random.default_rng(1)
    weak = 2000 + columns + np.where(columns > 150, random.integers(0, 2, rows.shape), 0)
    pictures = [
        np.full(rows.shape, 900),
        20 * rows,
        2048 + 2000 * np.sin(rows / 40),
        1000 * (columns // 120) + random.integers(0, 2, rows.shape),
        weak,
        weak + 8 * random.integers(0, 400, rows.shape) * (rows > 160),
    ]
    planes = np.clip(pictures, 0, 4095).astype(np.uint16).reshape(3, 2, height, width)
    _assert_every_float(kernels, planes, 12)
