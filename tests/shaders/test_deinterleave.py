"""`deinterleave.comp` against its twin."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from vkssim.features.planes import KernelShape, PlanePair, deinterleave
from vkssim.host.device import Device
from vkssim.host.plan import Plan, Role
from vkssim.reference.samples import deinterleave as twin
from vkssim.types import FrameFormat

from ..support.pictures import Picture
from .harness import pack, run_buffers

FRAMES = 2
SIZES = [(1, 1), (8, 8), (33, 25), (64, 9), (251, 17)]
CHROMA = ("cb", "cr")


def _separated(device: Device, shape: KernelShape, frame: FrameFormat, chroma: Picture) -> list[Picture]:
    """Run the kernel over (frames, 2, H, 2 W) samples; returns Cb and Cr, (frames, 2, H, W) both."""
    source = PlanePair.interleaved(frame)
    targets = [replace(PlanePair.raw(frame), buffer=name).spec(Role.OUTPUT) for name in CHROMA]
    plan = Plan((source.spec(Role.INPUT), *targets), ((deinterleave(shape, source, *CHROMA),),))
    written = run_buffers(device, plan, {source.buffer: pack(source, chroma)})
    rows = [written[name].view(frame.dtype).reshape(FRAMES, 2, frame.height, -1) for name in CHROMA]
    return [plane[..., : frame.width] for plane in rows]


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("bits", [8, 10])
def test_every_size(device: Device, kernel_shape: KernelShape, bits: int, width: int, height: int) -> None:
    """All bits of a sample are moved, those too that samples of ten bits do not have."""
    frame = FrameFormat.of_bits(width, height, bits)
    largest = 256**frame.dtype.itemsize - 1
    chroma = np.random.default_rng(1).integers(0, largest, (FRAMES, 2, height, 2 * width), frame.dtype, endpoint=True)
    for got, expected in zip(_separated(device, kernel_shape, frame, chroma), twin(chroma), strict=True):
        np.testing.assert_array_equal(got, expected)
