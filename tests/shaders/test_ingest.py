"""`ingest.comp` against its twin."""

from __future__ import annotations

import numpy as np
import pytest

from vkssim.features.planes import KernelShape, PlanePair, ingest
from vkssim.host.device import Device
from vkssim.reference.samples import ingest as twin
from vkssim.types import FrameFormat

from ..support.differences import check_array
from ..support.tolerances import INGEST
from .harness import FORMATS, make_planes, run_planes

SIZES = [(16, 11), (177, 5), (251, 3), (33, 12)]
ODD_RANGES = {
    "uint8 of range 100": (np.uint8, 100.0),
    "uint16 of range 1000": (np.uint16, 1000.0),
    "float32 of range 1": (np.float32, 1.0),
}


def _check(device: Device, shape: KernelShape, where: str, frame: FrameFormat, planes: np.ndarray) -> None:
    source, target = PlanePair.raw(frame), PlanePair.floats("planes", frame.width, frame.height)
    got = run_planes(device, ingest(shape, source, target, frame.factor), source, target, planes)
    check_array(INGEST, where, got, twin(planes, frame.factor))


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("format_name", FORMATS)
def test_every_format(device: Device, kernel_shape: KernelShape, format_name: str, width: int, height: int) -> None:
    frame, planes = make_planes(format_name, width, height)
    _check(device, kernel_shape, f"{format_name} {width}x{height}", frame, planes)


@pytest.mark.parametrize("name", ODD_RANGES)
def test_ranges_that_are_no_bit_depth(device: Device, kernel_shape: KernelShape, name: str) -> None:
    dtype, peak = ODD_RANGES[name]
    planes = (np.random.default_rng(1).random((2, 2, 9, 41)) * peak).astype(dtype)
    _check(device, kernel_shape, name, FrameFormat.of_array(41, 9, dtype, peak), planes)


def test_special_values_pass(device: Device, kernel_shape: KernelShape) -> None:
    """Negative samples and those above the range are scaled like all others: nothing clamps."""
    planes = np.tile(np.array([-1.0, 2.0, 0.0, 1e-20, 1e20], np.float32), (1, 2, 3, 4))
    _check(device, kernel_shape, "special values", FrameFormat.of_array(20, 3, np.float32, 1.0), planes)
