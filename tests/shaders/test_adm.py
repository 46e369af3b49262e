"""`adm_wavelet.comp`, `adm.comp` and `adm_rows.comp`: every integer against the twin's."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pytest

from vkssim.host.device import Device
from vkssim.host.pipelines import PipelineBuilder
from vkssim.host.plan import Plan, Role
from vkssim.metrics import make_scorer
from vkssim.metrics.dispatches import KernelShape, PlanePair
from vkssim.types import FrameFormat, Samples

from .harness import pack, run_buffers

SIZES = [(33, 33), (34, 33), (33, 40), (47, 61), (64, 48), (163, 40), (241, 70), (500, 150), (800, 37)]
BITS = [8, 9, 10, 12, 14, 16]


def _format(width: int, height: int, bits: int) -> FrameFormat:
    return FrameFormat.of_bits(width, height, bits)


def _noise(frame: FrameFormat, frames: int = 2, seed: int = 0) -> npt.NDArray[np.unsignedinteger]:
    """References of noise, and the same with less or more contrast and some noise, (frames, 2, H, W)."""
    rng = np.random.default_rng(seed)
    shape = frames, frame.height, frame.width
    reference = rng.random(shape) * np.linspace(0, 1, frame.width) ** 3
    gain = np.linspace(0.5, 1.5, frame.height)[:, None]
    distorted = np.clip(gain * reference + 0.2 * rng.random(shape) * (rng.random(shape) > 0.7), 0, 1)
    return np.round(np.stack([reference, distorted], axis=1) * frame.peak).astype(frame.dtype)


@dataclass(frozen=True)
class Kernels:
    """A device, the shape of its kernels, and those that are compiled."""

    device: Device
    shape: KernelShape
    pipelines: PipelineBuilder


@pytest.fixture
def kernels(device: Device, kernel_shape: KernelShape, pipelines: PipelineBuilder) -> Kernels:
    return Kernels(device, kernel_shape, pipelines)


def _sums(kernels: Kernels, frame: FrameFormat, planes: Samples, limit: int = 100) -> npt.NDArray[np.float64]:
    """Return the numbers of each frame, as the host makes them of the kernels' digits."""
    scorer, source = make_scorer(f"adm=adm_enhn_gain_limit={limit}", frame), PlanePair.raw(frame)
    plan = scorer.plan(kernels.shape, source)
    whole = Plan((source.spec(Role.INPUT), *plan.buffers), plan.steps)
    whole.validate()
    contents = {source.buffer: pack(source, planes).view(np.float32)}
    partials = run_buffers(kernels.device, whole, contents, kernels.pipelines)[plan.partials.name]
    return scorer.means(partials, plan)


def _check(kernels: Kernels, frame: FrameFormat, planes: Samples, limit: int = 100) -> None:
    scorer = make_scorer(f"adm=adm_enhn_gain_limit={limit}", replace(frame, shift=0))
    expected = [scorer.reference_means(*(plane >> frame.shift for plane in pair)) for pair in planes]
    np.testing.assert_array_equal(_sums(kernels, frame, planes, limit), expected)


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_every_size(kernels: Kernels, width: int, height: int) -> None:
    frame = _format(width, height, 8)
    _check(kernels, frame, _noise(frame))


@pytest.mark.parametrize("limit", [1, 2, 100])
@pytest.mark.parametrize("bits", BITS)
def test_every_depth_and_limit(kernels: Kernels, bits: int, limit: int) -> None:
    frame = _format(101, 67, bits)
    _check(kernels, frame, _noise(frame, seed=bits), limit)
