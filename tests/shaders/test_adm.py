"""`adm_wavelet.comp`, `adm.comp` and `adm_rows.comp`: every integer against the twin's."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pytest

from vkssim.host.device import Device
from vkssim.host.pipelines import PipelineBuilder
from vkssim.host.plan import Plan, Role
from vkssim.metrics import adm, make_scorer
from vkssim.metrics.dispatches import KernelShape, PlanePair
from vkssim.shaders.constants import ADM_SCALES, ADM_WORKGROUP, STRIP_COLUMNS
from vkssim.shaders.interface import Shape
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


def _sums(kernels: Kernels, frame: FrameFormat, planes: Samples, feature: str) -> npt.NDArray[np.float64]:
    """Return the numbers of each frame, as the host makes them of the kernels' digits."""
    scorer, source = make_scorer(feature, frame), PlanePair.raw(frame)
    plan = scorer.plan(kernels.shape, source)
    whole = Plan((source.spec(Role.INPUT), *plan.buffers), plan.steps)
    whole.validate()
    contents = {source.buffer: pack(source, planes).view(np.float32)}
    partials = run_buffers(kernels.device, whole, contents, kernels.pipelines)[plan.partials.name]
    return scorer.means(partials, plan)


def _check(kernels: Kernels, frame: FrameFormat, planes: Samples, limit: int = 100, *, options: str = "") -> None:
    feature = f"adm=adm_enhn_gain_limit={limit}{options}"
    scorer = make_scorer(feature, replace(frame, shift=0))
    expected = [scorer.reference_means(*(plane >> frame.shift for plane in pair)) for pair in planes]
    np.testing.assert_array_equal(_sums(kernels, frame, planes, feature), expected)


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_every_size(kernels: Kernels, width: int, height: int) -> None:
    frame = _format(width, height, 8)
    _check(kernels, frame, _noise(frame))


@pytest.mark.parametrize("limit", [1, 2, 100])
@pytest.mark.parametrize("bits", BITS)
def test_every_depth_and_limit(kernels: Kernels, bits: int, limit: int) -> None:
    frame = _format(101, 67, bits)
    _check(kernels, frame, _noise(frame, seed=bits), limit)


@pytest.mark.parametrize("beside", [-1, 0, 1])
def test_columns_where_a_workgroup_begins(kernels: Kernels, beside: int) -> None:
    """Bands of 2 n columns, of which those from n // 5 on count."""
    columns = ADM_WORKGROUP - 2 if kernels.shape.shape is Shape.STAGED else STRIP_COLUMNS * kernels.shape.workgroup
    frame = _format(2 * (columns * 5 // 4) + 2 * beside, 40, 8)
    _check(kernels, frame, _noise(frame))


@pytest.mark.parametrize("limit", [1, 100])
@pytest.mark.parametrize("bits", BITS)
def test_harshest_pictures(kernels: Kernels, bits: int, limit: int) -> None:
    """Edges of the largest contrast, noise of black and white, which gives the largest bands, and flat frames."""
    frame = _format(110, 90, bits)
    planes = np.zeros((5, 2, 90, 110), frame.dtype)
    planes[0, :, :, 55:] = planes[1, 0] = planes[2, 0, ::2] = planes[2, 1, 1::2] = int(frame.peak)
    rng = np.random.default_rng(bits)
    planes[3] = rng.integers(0, 2, (2, 90, 110)) * int(frame.peak)
    planes[4, 0] = planes[3, 0]
    planes[4, 1] = planes[3, 0] // 2 + planes[3, 1] // 9
    _check(kernels, frame, planes, limit)


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("weights", ["adm_csf_mode=2:adm_norm_view_dist=5", "adm_csf_mode=1"])
def test_additions_and_other_weights(kernels: Kernels, bits: int, weights: str) -> None:
    """For aim, masked by the restored bands: of noise, and of bands of opposite signs. Barten's weights exceed 31 bits."""
    frame = _format(173, 90, bits)
    planes = _noise(frame, frames=3, seed=bits)
    planes[2, 1] = int(frame.peak) - planes[2, 0]
    _check(kernels, frame, planes, 1, options=f":adm_skip_aim=false:{weights}")


@pytest.mark.parametrize("bits", [8, 10, 16])
def test_angles_near_a_degree(kernels: Kernels, bits: int) -> None:
    """Gradients that a float32 cannot compare, but the kernels do. Contrast is enhanced on one side of a degree alone."""
    frame = _format(400, 260, bits)
    rng = np.random.default_rng(bits)
    rows, columns = np.mgrid[:260, :400] / 1.0
    tangent = np.tan(np.radians(1 + 0.002 * rng.standard_normal((2, 1, 1))))
    waves, crossing = 0.3 * np.sin(columns**2 / 300), 0.3 * np.sin(rows**2 / 250)
    turned = waves + tangent * crossing
    planes = np.stack([np.stack([0.5 + waves, 0.5 + 1.3 * other]) for other in turned])
    planes = np.round(planes * frame.peak).astype(frame.dtype)

    close = 0
    for reference, distorted in planes:
        for scale in range(ADM_SCALES):
            (reference, first), (distorted, second) = (adm.wavelet(plane, scale, bits) for plane in (reference, distorted))
            h1, v1, h2, v2 = (band.astype(np.float64) for band in (*first[:2], *second[:2]))
            left, right = (h1 * h2 + v1 * v2) ** 2, adm.COS_SQUARED * (h1**2 + v1**2) * (h2**2 + v2**2)
            close += int(np.count_nonzero(abs(left - right) < right * 2.0**-19))
    assert close > 20
    _check(kernels, frame, planes)


def test_samples_in_the_upper_bits(kernels: Kernels) -> None:
    """As a hardware decoder writes 10 bits."""
    frame = _format(90, 50, 10)
    surfaces = frame.in_surfaces()
    _check(kernels, surfaces, _noise(frame) << surfaces.shift)
