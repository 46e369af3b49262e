"""`motion.comp`: the sum of every frame against the twin's, also of those whose earlier frame is in an earlier batch."""

from __future__ import annotations

import numpy as np
import pytest

from vkssim.backends.vulkan import VulkanBackend
from vkssim.metrics.dispatches import KernelShape
from vkssim.metrics.motion import clip_sums
from vkssim.metrics.plane_metrics import FrameMetrics
from vkssim.shaders.constants import MOTION_WORKGROUP, STRIP_COLUMNS
from vkssim.shaders.interface import Shape
from vkssim.types import FrameFormat, Samples

pytestmark = pytest.mark.usefixtures("shared_device")

SIZES = [(3, 3), (16, 5), (17, 16), (64, 65), (201, 130)]
BITS = [8, 9, 10, 12, 16]
FRAMES = 6


def _noise(frame: FrameFormat) -> Samples:
    """References of noise, and two that are black and white: the largest difference."""
    noise = np.random.default_rng(0).integers(0, int(frame.peak) + 1, (FRAMES, frame.height, frame.width))
    noise[2], noise[3] = 0, frame.peak
    return noise.astype(frame.dtype)


def _sums(shape: KernelShape, frame: FrameFormat, references: Samples, batch: int = 2, feature: str = "motion") -> list[int]:
    """Return the sums of frames in batches that take turns with two slots."""
    sums: list[int] = []
    before = None
    with VulkanBackend(FrameMetrics(feature, [frame]).planes, batch=batch, slots=2, shape=shape.shape) as backend:
        for number, first in enumerate(range(0, len(references), batch)):
            part = references[first : first + batch]
            current = backend.batches[number % 2]
            current.reference[0][: len(part)], current.distorted[0][: len(part)] = part, 0
            backend.submit(current, len(part), before)
            sums += backend.collect(current)[0][0][:, 0].astype(int).tolist()
            before = current
    return sums


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_every_size(kernel_shape: KernelShape, width: int, height: int) -> None:
    frame = FrameFormat.of_bits(width, height, 8)
    references = _noise(frame)
    assert _sums(kernel_shape, frame, references) == clip_sums(references, 8)


@pytest.mark.parametrize("bits", BITS)
def test_every_depth(kernel_shape: KernelShape, bits: int) -> None:
    frame = FrameFormat.of_bits(45, 70, bits)
    references = _noise(frame)
    assert _sums(kernel_shape, frame, references) == clip_sums(references, bits)


@pytest.mark.parametrize("beside", [-1, 0, 1])
def test_columns_where_a_workgroup_begins(kernel_shape: KernelShape, beside: int) -> None:
    columns = MOTION_WORKGROUP - 4 if kernel_shape.shape is Shape.STAGED else STRIP_COLUMNS * kernel_shape.workgroup
    frame = FrameFormat.of_bits(columns + beside, 9, 8)
    references = _noise(frame)
    assert _sums(kernel_shape, frame, references) == clip_sums(references, 8)


@pytest.mark.parametrize("batch", [1, 2, 4, 5])
@pytest.mark.parametrize("distance", [1, 2])
def test_batches_of_any_size(kernel_shape: KernelShape, batch: int, distance: int) -> None:
    """The last batch may be short, and a batch of one frame follows one of its own slot or of the other."""
    frame = FrameFormat.of_bits(33, 20, 10)
    references = _noise(frame)
    feature = f"motion=motion_five_frame_window={str(distance == 2).lower()}"
    assert _sums(kernel_shape, frame, references, batch, feature) == clip_sums(references, 10, distance)
