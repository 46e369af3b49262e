"""`ingest.comp`, `ssim_downscale.comp` and `ms_ssim_decimate.comp`: planes against those of their twins."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from vkssim.features.planes import KernelShape, PlanePair, decimate, downscale, ingest
from vkssim.host.device import Device
from vkssim.host.plan import Dispatch
from vkssim.reference import samples, ssim
from vkssim.shaders.interface import Precision
from vkssim.types import FloatPlane, FrameFormat

from ..support.differences import check_array
from ..support.geometry import columns_of_a_group
from ..support.pictures import Picture
from ..support.tolerances import DECIMATE_EXACT, DECIMATE_FAST, DOWNSCALE, INGEST, Tolerance
from .harness import FORMATS, make_planes, run_planes

INGEST_SIZES = [(16, 11), (177, 5), (251, 3), (33, 12)]
DECIMATE_SIZES = [(22, 22), (23, 25), (24, 31), (177, 50), (176, 33), (333, 29), (40, 217)]
ODD_RANGES = {
    "uint8 of range 100": (np.uint8, 100.0),
    "uint16 of range 1000": (np.uint16, 1000.0),
    "float32 of range 1": (np.float32, 1.0),
}

by_format = pytest.mark.parametrize("format_name", FORMATS)


def _check(
    tolerance: Tolerance,
    device: Device,
    made: Callable[[PlanePair, PlanePair], tuple[Dispatch, ...]],
    twin: Callable[[FloatPlane], FloatPlane],
    frame: FrameFormat,
    planes: Picture,
) -> None:
    """Compare the planes of dispatches, which are made for a source and a target, with the twin's."""
    expected = np.stack([[twin(samples.ingest(plane, frame.factor)) for plane in pair] for pair in planes])
    source, target = PlanePair.raw(frame), PlanePair.floats("target", *expected.shape[:1:-1])
    got = run_planes(device, made(source, target), source, target, planes)
    check_array(tolerance, f"{frame.dtype} {frame.width}x{frame.height}", got, expected)


def _check_ingest(device: Device, shape: KernelShape, frame: FrameFormat, planes: Picture) -> None:
    _check(INGEST, device, lambda *pair: ingest(shape, *pair), lambda plane: plane, frame, planes)


@pytest.mark.parametrize(("width", "height"), INGEST_SIZES)
@by_format
def test_ingest(device: Device, kernel_shape: KernelShape, format_name: str, width: int, height: int) -> None:
    _check_ingest(device, kernel_shape, *make_planes(format_name, width, height))


@pytest.mark.parametrize("name", ODD_RANGES)
def test_ingest_of_ranges_that_are_no_bit_depth(device: Device, kernel_shape: KernelShape, name: str) -> None:
    dtype, peak = ODD_RANGES[name]
    planes = (np.random.default_rng(1).random((2, 2, 9, 41)) * peak).astype(dtype)
    _check_ingest(device, kernel_shape, FrameFormat.of_array(41, 9, dtype, peak), planes)


def test_ingest_of_special_values(device: Device, kernel_shape: KernelShape) -> None:
    """Negative samples and those above the range are scaled like all others: nothing clamps."""
    planes = np.tile(np.array([-1.0, 2.0, 0.0, 1e-20, 1e20], np.float32), (1, 2, 3, 4))
    _check_ingest(device, kernel_shape, FrameFormat.of_array(20, 3, np.float32, 1.0), planes)


DOWNSCALES = [
    *(("uint8", 151, 113, factor) for factor in range(2, 11)),
    *(("uint8", width, height, 3) for width, height in ((120, 110), (121, 110), (120, 111), (771, 33))),
    *((name, 99, 58, 4) for name in FORMATS),
]
"""Every factor, every parity, every format. 771 by 3 is 258: the last box lies beyond the edge and reads mirrored samples."""


@pytest.mark.parametrize(("format_name", "width", "height", "factor"), DOWNSCALES)
def test_downscale(device: Device, kernel_shape: KernelShape, format_name: str, width: int, height: int, factor: int) -> None:
    def made(source: PlanePair, target: PlanePair) -> tuple[Dispatch, ...]:
        return (downscale(kernel_shape, source, target, factor),)

    _check(DOWNSCALE, device, made, lambda plane: ssim.downscale(plane, factor), *make_planes(format_name, width, height))


def _check_decimate(device: Device, shape: KernelShape, frame: FrameFormat, planes: Picture) -> None:
    tolerance = DECIMATE_EXACT if shape.precision is Precision.EXACT else DECIMATE_FAST
    _check(tolerance, device, lambda *pair: (decimate(shape, "decimate", *pair),), ssim.decimate, frame, planes)


@pytest.mark.parametrize(("width", "height"), DECIMATE_SIZES)
def test_decimate(device: Device, kernel_build: KernelShape, width: int, height: int) -> None:
    _check_decimate(device, kernel_build, *make_planes("float32", width, height))


@pytest.mark.parametrize("beside", [-1, 0, 1])
def test_decimate_where_a_workgroup_begins(device: Device, kernel_build: KernelShape, beside: int) -> None:
    width = 2 * (columns_of_a_group("decimate", kernel_build) + beside)
    _check_decimate(device, kernel_build, *make_planes("uint8", width, 40))


@by_format
def test_decimate_every_format(device: Device, kernel_build: KernelShape, format_name: str) -> None:
    """In frames so wide that some workgroups touch neither border: the staged shape has another way to read for these."""
    width = 2 * (2 * columns_of_a_group("decimate", kernel_build) + 10) - 1
    _check_decimate(device, kernel_build, *make_planes(format_name, width, 45))


def test_decimate_keeps_a_flat_plane(device: Device, kernel_build: KernelShape) -> None:
    """The border's mirrored taps fold onto the samples inside: at each edge the weights still sum to the same."""
    frame, planes = make_planes("float32", 61, 43)
    _check_decimate(device, kernel_build, frame, np.full_like(planes, 100.0))
