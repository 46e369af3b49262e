"""`speed.comp`: every float of the small planes against the twin's."""

from __future__ import annotations

import numpy as np
import pytest

from vkssim.host.device import Device
from vkssim.host.pipelines import PipelineBuilder
from vkssim.host.plan import Plan, Role
from vkssim.metrics import make_scorer
from vkssim.metrics.dispatches import KernelShape, PlanePair
from vkssim.metrics.speed import SpeedOptions, small_plane
from vkssim.types import FrameFormat

from .harness import pack, run_buffers

FEATURE = "speed_chroma=speed_prescale={0.prescale}:speed_prescale_method={0.prescale_method}:speed_kernelscale={0.kernelscale}"


def _assert_small_planes(
    device: Device, shape: KernelShape, pipelines: PipelineBuilder, width: int, height: int, bits: int, options: SpeedOptions
) -> None:
    frame = FrameFormat.of_bits(width, height, bits)
    source = PlanePair.raw(frame)
    plan = make_scorer(FEATURE.format(options), frame).plan(shape, source)
    planes = np.random.default_rng(bits).integers(0, int(frame.peak) + 1, (2, 2, height, width)).astype(frame.dtype)
    whole = Plan((source.spec(Role.INPUT), *plan.buffers), plan.steps)
    contents = {source.buffer: pack(source, planes).view(np.float32)}
    partials = run_buffers(device, whole, contents, pipelines)[plan.partials.name]
    expected = np.array([[small_plane(plane, bits, options) for plane in pair] for pair in planes])
    np.testing.assert_array_equal(partials[:, : plan.groups[0]].reshape(expected.shape), expected)


@pytest.mark.parametrize(("width", "height"), [(80, 80), (95, 161), (1040, 83)])
def test_every_size(device: Device, kernel_shape: KernelShape, pipelines: PipelineBuilder, width: int, height: int) -> None:
    _assert_small_planes(device, kernel_shape, pipelines, width, height, 8, SpeedOptions())


@pytest.mark.parametrize("bits", [8, 9, 12, 16])
@pytest.mark.parametrize(
    "options",
    [
        SpeedOptions(kernelscale=2.3),
        SpeedOptions(prescale=0.6, prescale_method="bilinear"),
        SpeedOptions(prescale=1.7, prescale_method="bilinear", kernelscale=0.1),
        SpeedOptions(prescale=0.8),
    ],
    ids=["wide", "smaller", "larger", "nearest"],
)
def test_options(
    device: Device, kernel_shape: KernelShape, pipelines: PipelineBuilder, bits: int, options: SpeedOptions
) -> None:
    _assert_small_planes(device, kernel_shape, pipelines, 170, 140, bits, options)
