"""The map of `ssim.comp`: every window against the twin's, and the sums against those without a map."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from vkssim.features.planes import MARGIN, KernelShape, PlanePair, WindowWalk, partials, window
from vkssim.host.device import Device
from vkssim.host.plan import Role
from vkssim.reference.samples import ingest
from vkssim.reference.ssim import ssim_maps
from vkssim.shaders.interface import Precision
from vkssim.types import FrameFormat

from ..support.differences import check_array
from ..support.geometry import columns_of_a_group
from ..support.pictures import Picture, distort, texture
from ..support.tolerances import SSIM_MAP_EXACT, SSIM_MAP_FAST
from .harness import FORMATS, pack, run

SIZES = [(11, 11), (33, 27), (251, 90), (700, 13)]
TERMS = 4
TOLERANCES = {Precision.EXACT: SSIM_MAP_EXACT, Precision.FAST: SSIM_MAP_FAST}

Floats = npt.NDArray[np.float32]


def _planes(format_name: str, width: int, height: int) -> tuple[FrameFormat, Picture]:
    dtype, peak = FORMATS[format_name]
    pictures = [texture(height, width, seed) for seed in range(2)]
    scaled = peak * np.array([(picture, distort(picture, seed)) for seed, picture in enumerate(pictures)])
    planes = (scaled if dtype is np.float32 else np.round(scaled)).astype(dtype)
    return FrameFormat.of_array(width, height, dtype, peak), planes


def _run(device: Device, shape: KernelShape, frame: FrameFormat, planes: Picture, with_map: bool) -> tuple[Floats, Floats]:
    """What the kernel leaves: (frames, sums), and (frames, windows) of the map if it writes one."""
    source = PlanePair.raw(frame)
    walk = WindowWalk.over(shape, source)
    sums = TERMS * walk.count
    windows = (frame.height - MARGIN) * (frame.width - MARGIN)
    kept, first_window = (windows, sums) if with_map else (0, None)
    target = partials("partials", sums + kept)
    dispatch = window(shape, "ssim", source, walk, target, first_window=first_window)
    data = run(device, [dispatch], source.spec(Role.INPUT), target, pack(source, planes)).view(np.float32)
    return data[:, :sums], data[:, sums : sums + kept]


def _check(device: Device, shape: KernelShape, format_name: str, width: int, height: int) -> None:
    frame, planes = _planes(format_name, width, height)
    _, windows = _run(device, shape, frame, planes, True)
    expected = [ssim_maps(ingest(first, frame.factor), ingest(second, frame.factor))[0] for first, second in planes]
    maps = windows.reshape(len(planes), height - MARGIN, width - MARGIN)
    tolerance = TOLERANCES[shape.precision]
    check_array(tolerance, f"{format_name} {width}x{height}, {shape.shape.value}", maps, np.stack(expected))


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_every_size(device: Device, kernel_build: KernelShape, width: int, height: int) -> None:
    _check(device, kernel_build, "float32", width, height)


@pytest.mark.parametrize("beside", [-1, 0, 1])
def test_columns_where_a_workgroup_begins(device: Device, kernel_build: KernelShape, beside: int) -> None:
    _check(device, kernel_build, "uint8", columns_of_a_group("windows", kernel_build) + beside + MARGIN, 30)


@pytest.mark.parametrize("format_name", FORMATS)
def test_every_format(device: Device, kernel_build: KernelShape, format_name: str) -> None:
    _check(device, kernel_build, format_name, 141, 47)


def test_sums_are_those_of_ssim(device: Device, kernel_build: KernelShape) -> None:
    """The map is written behind them and over none of them."""
    frame, planes = _planes("uint8", 251, 90)
    (expected, _), (got, _) = (_run(device, kernel_build, frame, planes, with_map) for with_map in (False, True))
    np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_identical_planes_are_1_everywhere(device: Device, kernel_build: KernelShape) -> None:
    frame, planes = _planes("uint8", 61, 40)
    planes[:, 1] = planes[:, 0]
    sums, windows = _run(device, kernel_build, frame, planes, True)
    assert not sums.any()
    assert (windows == 1.0).all()
