"""Planes that kernels make of samples, and the largest samples that they find, against those of their twins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from vkssim.host.device import Device
from vkssim.host.plan import Dispatch, Plan, Role
from vkssim.metrics import samples, ssim
from vkssim.metrics.dispatches import KernelShape, PlanePair, decimate, deinterleave, downscale, ingest, largest_sample
from vkssim.shaders.interface import Precision, Shape
from vkssim.types import FloatPlane, FrameFormat

from ..support.devices.geometry import columns_of_a_group
from ..support.differences import check_array
from ..support.pictures import Picture
from ..support.tolerances import DECIMATE_EXACT, DECIMATE_FAST, DOWNSCALE, INGEST, Tolerance
from .harness import FORMATS, make_planes, pack, run, run_buffers, run_planes

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


# -- the largest samples ----------------------------------------------------------------------------------------------


def _largest(device: Device, frame: FrameFormat, planes: np.ndarray) -> np.ndarray:
    source = PlanePair.raw(frame)
    dispatch, target = largest_sample(KernelShape(Shape.STAGED, 64), source, "largest")
    groups = dispatch.groups[0] * dispatch.groups[1]
    found = run(device, [dispatch], source.spec(Role.INPUT), target, pack(source, planes)).view(np.uint32)
    largest: npt.NDArray[np.uint32] = found[:, : 2 * groups].reshape(len(planes), 2, groups).max(axis=2)
    return largest


@pytest.mark.parametrize(("width", "height"), [(11, 11), (33, 12), (128, 32), (129, 33), (251, 65), (577, 40)])
@pytest.mark.parametrize("format_name", ["uint8", "uint16 of 10 bits", "uint16 of 14 bits"])
def test_largest_samples(device: Device, format_name: str, width: int, height: int) -> None:
    """The rows are padded with larger ones, which do not count."""
    frame, planes = make_planes(format_name, width, height, frames=3)
    planes //= 2
    np.testing.assert_array_equal(_largest(device, frame, planes), samples.largest_samples(planes))


@pytest.mark.parametrize("place", [(0, 0), (0, 250), (31, 127), (32, 128), (64, 250), (64, 0)])
@pytest.mark.parametrize("image", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_wherever_it_is(device: Device, image: tuple[int, int], place: tuple[int, int]) -> None:
    planes = np.zeros((2, 2, 65, 251), np.uint16)
    planes[image][place] = 65535
    expected = np.zeros((2, 2))
    expected[image] = 65535
    np.testing.assert_array_equal(_largest(device, FrameFormat.of_bits(251, 65, 10), planes), expected)


# -- chroma of surfaces -----------------------------------------------------------------------------------------------

FRAMES = 2
CHROMA = ("cb", "cr")


def _separated(device: Device, shape: KernelShape, frame: FrameFormat, chroma: Picture) -> list[Picture]:
    """Run the kernel over (frames, 2, H, 2 W) samples; returns Cb and Cr, (frames, 2, H, W) both."""
    source = PlanePair.interleaved(frame)
    targets = [replace(PlanePair.raw(frame), buffer=name).spec(Role.OUTPUT) for name in CHROMA]
    plan = Plan((source.spec(Role.INPUT), *targets), ((deinterleave(shape, source, *CHROMA),),))
    written = run_buffers(device, plan, {source.buffer: pack(source, chroma)})
    rows = [written[name].view(frame.dtype).reshape(FRAMES, 2, frame.height, -1) for name in CHROMA]
    return [plane[..., : frame.width] for plane in rows]


@pytest.mark.parametrize(("width", "height"), [(1, 1), (8, 8), (33, 25), (64, 9), (251, 17)])
@pytest.mark.parametrize("bits", [8, 10])
def test_deinterleave(device: Device, kernel_shape: KernelShape, bits: int, width: int, height: int) -> None:
    """All bits of a sample are moved, those too that samples of ten bits do not have."""
    frame = FrameFormat.of_bits(width, height, bits)
    largest = 256**frame.dtype.itemsize - 1
    chroma = np.random.default_rng(1).integers(0, largest, (FRAMES, 2, height, 2 * width), frame.dtype, endpoint=True)
    for got, expected in zip(_separated(device, kernel_shape, frame, chroma), samples.deinterleave(chroma), strict=True):
        np.testing.assert_array_equal(got, expected)
