"""`ssim_downscale.comp` against its twin."""

from __future__ import annotations

import numpy as np
import pytest

from vkssim.features.planes import KernelShape, PlanePair, downscale
from vkssim.host.device import Device
from vkssim.reference.samples import ingest
from vkssim.reference.ssim import downscale as twin
from vkssim.reference.ssim import downscaled_size

from ..support.differences import check_array
from ..support.tolerances import DOWNSCALE
from .harness import FORMATS, make_planes, run_planes


def _check(device: Device, shape: KernelShape, format_name: str, width: int, height: int, factor: int) -> None:
    frame, planes = make_planes(format_name, width, height)
    source = PlanePair.raw(frame)
    target = PlanePair.floats("downscaled", *downscaled_size(width, height, factor))
    got = run_planes(device, [downscale(shape, source, target, factor)], source, target, planes)
    expected = np.stack([[twin(ingest(plane, frame.factor), factor) for plane in pair] for pair in planes])
    check_array(DOWNSCALE, f"{format_name} {width}x{height} by {factor}", got, expected)


@pytest.mark.parametrize("factor", range(2, 11))
def test_every_factor(device: Device, kernel_shape: KernelShape, factor: int) -> None:
    _check(device, kernel_shape, "uint8", 151, 113, factor)


@pytest.mark.parametrize(("width", "height"), [(120, 110), (121, 110), (120, 111), (771, 33)])
def test_every_parity(device: Device, kernel_shape: KernelShape, width: int, height: int) -> None:
    """771 by 3 is 258: the last box lies beyond the edge and reads mirrored samples."""
    _check(device, kernel_shape, "uint8", width, height, 3)


@pytest.mark.parametrize("format_name", FORMATS)
def test_every_format(device: Device, kernel_shape: KernelShape, format_name: str) -> None:
    _check(device, kernel_shape, format_name, 99, 58, 4)
