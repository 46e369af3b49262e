"""The kernels with a window, `ssim.comp`, `ms_ssim.comp`, `ssim_uniform.comp` and `ssim_estimate.comp`, against their twins."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from vkssim.host.device import Device
from vkssim.host.plan import Role
from vkssim.metrics.dispatches import KernelShape, PlanePair, partials, window
from vkssim.metrics.float_ssim import ESTIMATE, GAUSSIAN11, UNIFORM8, Windows
from vkssim.metrics.samples import ingest
from vkssim.metrics.ssim import ssim_maps
from vkssim.shaders.interface import Precision
from vkssim.types import FrameFormat

from ..support.differences import check_array
from ..support.pictures import Picture, distort, texture
from ..support.tolerances import (
    MEAN_NEAR_0,
    MEAN_NEAR_0_FAST,
    SSIM_MAP_EXACT,
    SSIM_MAP_FAST,
    UNIFORM,
    UNIFORM_MAP,
    WINDOW_EXACT,
    WINDOW_FAST,
    Tolerance,
)
from .harness import FORMATS, pack, run

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]

TERMS = ("lcs", "l", "c", "s")
LCS = TERMS[1:]


class Kernel(NamedTuple):
    """A build of a kernel, with the tolerances of its sums and of its map, if it has one; with `counts`, sums have counts."""

    windows: Windows
    precision: Precision
    tolerance: Tolerance
    map_tolerance: Tolerance | None
    terms: tuple[str, ...] = TERMS
    counts: bool = False

    @property
    def numbers(self) -> int:
        """How many floats a workgroup writes."""
        return len(self.terms) * (1 + self.counts)

    def shape(self, shape: KernelShape) -> KernelShape:
        return replace(shape, precision=self.precision)


MS_SSIM = replace(GAUSSIAN11, stem="ms_ssim")
KERNELS = {
    "ms_ssim": Kernel(MS_SSIM, Precision.EXACT, WINDOW_EXACT, None, LCS, counts=True),
    "ms_ssim, fast": Kernel(MS_SSIM, Precision.FAST, WINDOW_FAST, None, LCS, counts=True),
    "ssim": Kernel(GAUSSIAN11, Precision.EXACT, WINDOW_EXACT, SSIM_MAP_EXACT),
    "ssim, fast": Kernel(GAUSSIAN11, Precision.FAST, WINDOW_FAST, SSIM_MAP_FAST),
    "uniform": Kernel(UNIFORM8, Precision.EXACT, UNIFORM, UNIFORM_MAP),
    "estimate": Kernel(ESTIMATE, Precision.EXACT, UNIFORM, None),
}
BOXES = ("uniform", "estimate")
WITH_MAP = ("ssim", "ssim, fast", "uniform")
GAUSSIAN_SIZES = [(11, 11), (12, 40), (33, 27), (251, 90), (177, 179), (700, 13)]
BOX_SIZES = [(8, 8), (31, 9), (32, 10), (39, 8), (40, 15), (177, 179), (700, 13)]
"""Also those where a fragment of the estimate ends within a window, and the last one has no window or one."""
WALKS = [name for name, kernel in KERNELS.items() if not kernel.counts]
"""The kernels whose walk over the windows is tested; those with counts have the walk of `ssim`."""
SIZES = [(name, *size) for name in WALKS for size in (BOX_SIZES if name in BOXES else GAUSSIAN_SIZES)]
FLAT = {
    "uint8": lambda noise: np.round(235 + noise),
    "uint16 of 10 bits": lambda noise: np.round(4 * (235 + noise)),
    "uint16 of 16 bits": lambda noise: np.round(256 * (235 + noise)),
    "float32": lambda noise: 235 + noise,
}
"""Bright pictures of little contrast, by format."""

by_kernel = pytest.mark.parametrize("name", KERNELS)
by_box = pytest.mark.parametrize("name", BOXES)
by_kernel_with_map = pytest.mark.parametrize("name", WITH_MAP)
by_format = pytest.mark.parametrize("format_name", FORMATS)


class Layout(NamedTuple):
    """Where the windows of each workgroup lie: edges of rows and of columns, by column of workgroups."""

    rows: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int64]


def _run(
    device: Device, shape: KernelShape, name: str, frame: FrameFormat, planes: Picture, *, with_map: bool = False
) -> tuple[Floats, Floats]:
    """What the kernel leaves: sums, (frames, groups down, groups across, numbers), and the map after them, (frames, H', W')."""
    windows, build, source = KERNELS[name].windows, KERNELS[name].shape(shape), PlanePair.raw(frame)
    numbers = KERNELS[name].numbers
    walk = windows.walk(build, source)
    first, rows, columns = numbers * walk.count, with_map * (frame.height - windows.side + 1), frame.width - windows.side + 1
    target = partials("partials", first + rows * columns)
    dispatch = window(build, windows.stem, source, walk, target, first_window=first if with_map else None)
    data = run(device, [dispatch], source.spec(Role.INPUT), target, pack(source, planes)).view(np.float32)
    sums = data[:, :first].reshape(len(planes), *walk.groups[::-1], numbers)
    return sums, data[:, first : first + rows * columns].reshape(len(planes), rows, columns)


def _numbers(device: Device, shape: KernelShape, name: str, frame: FrameFormat, planes: Picture) -> Floats:
    return _run(device, shape, name, frame, planes)[0]


def _sums(device: Device, shape: KernelShape, name: str, frame: FrameFormat, planes: Picture) -> Doubles:
    """How much the windows of each workgroup lack of 1, (frames, groups down, groups across, terms)."""
    numbers = _numbers(device, shape, name, frame, planes).astype(np.float64)
    if not KERNELS[name].counts:
        return numbers
    sums, counts = np.split(numbers, 2, axis=-1)
    return sums + counts


def _twin(name: str, frame: FrameFormat, pair: Picture) -> Doubles:
    """The maps of each term, (H', W', terms)."""
    reference, distorted = (ingest(plane, frame.factor) for plane in pair)
    maps = dict(zip(TERMS, ssim_maps(reference, distorted, maps=KERNELS[name].windows.maps), strict=True))
    return np.stack([maps[term] for term in KERNELS[name].terms], axis=-1)


@cache
def _layout(device: Device, shape: KernelShape, name: str, width: int, height: int) -> Layout:
    """Count the windows of each workgroup, by means of planes that lack the same luminance in every window.

    That no window is left out, and none is counted twice, is asserted on the way.
    """
    frame = FrameFormat.of_array(width, height, np.float32, 255.0)
    planes = np.zeros((1, 2, height, width), np.float32)
    planes[:, 1] = 255.0
    windows, term = KERNELS[name].windows, KERNELS[name].terms.index("l")
    lacking = 1 - _twin(name, frame, planes[0])[0, 0, term]
    counted = _sums(device, shape, name, frame, planes)[0, :, :, term] / lacking
    counts = np.round(counted).astype(np.int64)
    assert np.abs(counted - counts).max() < 0.05, "a workgroup does not count whole windows"
    # What one row of windows has in each workgroup is its count without the factor that the rows are.
    strip = windows.walk(KERNELS[name].shape(shape), PlanePair.raw(frame)).strip
    all_rows, all_columns = height - windows.side + 1, windows.columns(width)
    rows = np.minimum(np.arange(len(counts) + 1) * strip, all_rows)
    columns = np.concatenate(([0], np.cumsum(counts[0] // np.diff(rows)[0])))
    assert rows[-1] == all_rows, "the last rows of windows belong to no workgroup"
    assert columns[-1] == all_columns, "the workgroups across do not take each column of windows once"
    assert (counts > 0).all(), "a workgroup has nothing to do"
    np.testing.assert_array_equal(counts, np.outer(np.diff(rows), np.diff(columns)))
    return Layout(rows, columns)


def _check(device: Device, shape: KernelShape, name: str, frame: FrameFormat, planes: Picture) -> None:
    """Compare the kernel with its twin over (frames, 2, H, W) samples; sums are divided by the windows they are of."""
    where = _layout(device, shape, name, frame.width, frame.height)
    counts = np.outer(np.diff(where.rows), np.diff(where.columns))[:, :, None]
    got = _sums(device, shape, name, frame, planes) / counts
    lacking = np.stack([1 - _twin(name, frame, pair) for pair in planes])
    expected = np.add.reduceat(np.add.reduceat(lacking, where.rows[:-1], axis=1), where.columns[:-1], axis=2) / counts
    check_array(KERNELS[name].tolerance, _described(shape, name, frame), got, expected)


def _described(shape: KernelShape, name: str, frame: FrameFormat) -> str:
    return f"{name}, {frame.dtype} {frame.width}x{frame.height}, {shape.shape.value}"


@cache
def textures(format_name: str, width: int, height: int) -> tuple[FrameFormat, Picture]:
    """A format, and two textures with distorted copies as (2, 2, height, width), which no test may change."""
    dtype, peak = FORMATS[format_name]
    pictures = [(texture(height, width, seed), distort(texture(height, width, seed), seed)) for seed in range(2)]
    scaled = np.array(pictures) * peak
    return FrameFormat.of_array(width, height, dtype, peak), (scaled if dtype is np.float32 else np.round(scaled)).astype(dtype)


@cache
def _begins(shape: KernelShape, name: str, groups: int) -> int:
    """The greatest width that so many workgroups across are enough for."""
    windows, build = KERNELS[name].windows, KERNELS[name].shape(shape)

    def across(width: int) -> int:
        return windows.walk(build, PlanePair.floats("planes", width, 30)).groups[0]

    width = max(width for width in range(windows.side, 800) if across(width) == groups)
    assert across(width + 1) == groups + 1
    return width


@pytest.mark.parametrize(("name", "width", "height"), SIZES)
def test_every_size(device: Device, kernel_shape: KernelShape, name: str, width: int, height: int) -> None:
    _check(device, kernel_shape, name, *textures("float32", width, height))


@pytest.mark.parametrize("name", WALKS)
@pytest.mark.parametrize("beside", [-1, 0, 1])
@pytest.mark.parametrize("groups", [1, 2])
def test_columns_where_a_workgroup_begins(
    device: Device, kernel_shape: KernelShape, name: str, groups: int, beside: int
) -> None:
    _check(device, kernel_shape, name, *textures("uint8", _begins(kernel_shape, name, groups) + beside, 30))


@by_kernel
@by_format
def test_every_format(device: Device, kernel_shape: KernelShape, name: str, format_name: str) -> None:
    _check(device, kernel_shape, name, *textures(format_name, 141, 47))


@by_box
@pytest.mark.parametrize("format_name", FLAT)
def test_bright_and_nearly_flat(device: Device, kernel_shape: KernelShape, name: str, format_name: str) -> None:
    """No digit is lost where the squares are large and the variances are not: the tolerance is that of all pictures."""
    noise = np.random.default_rng(0).normal(0, [[[[0.3]], [[1.0]]]], (1, 2, 47, 141))
    dtype, peak = FORMATS[format_name]
    planes = FLAT[format_name](noise).astype(dtype)
    _check(device, kernel_shape, name, FrameFormat.of_array(141, 47, dtype, peak), planes)


@by_kernel
@by_format
def test_identical_planes_lack_nothing(device: Device, kernel_shape: KernelShape, name: str, format_name: str) -> None:
    """Every sum and count is exactly 0, whatever the driver's division and square root do in the last place."""
    dtype, peak = FORMATS[format_name]
    plane = (texture(40, 61) * peak).astype(dtype)
    frame = FrameFormat.of_array(61, 40, dtype, peak)
    assert not _numbers(device, kernel_shape, name, frame, np.stack([plane, plane])[None]).any()


@pytest.mark.parametrize("name", [name for name, kernel in KERNELS.items() if kernel.counts])
@by_format
def test_values_near_0_keep_their_digits(device: Device, kernel_shape: KernelShape, name: str, format_name: str) -> None:
    """A mean is raised to a power, so its error counts in proportion to it: here the luminance is 0.00012, and s is 0.005."""
    dtype, peak = FORMATS[format_name]
    rows, columns = np.mgrid[:47, :141]
    frame = FrameFormat.of_array(141, 47, dtype, peak)
    dark, bright = np.zeros((47, 141)), np.full((47, 141), 235 / 255)
    stripes, dots = (0.5 + 0.4 * (columns % 2 * 2 - 1), 0.5 + 0.4 * (rows % 2 * 2 - 1))
    planes = np.round(np.array([[dark, bright], [stripes, dots]]) * peak).astype(dtype)

    numbers = _numbers(device, kernel_shape, name, frame, planes).astype(np.float64).sum(axis=(1, 2))
    sums, counts = np.split(numbers, 2, axis=-1)
    windows = (47 - 10) * (141 - 10)
    means = ((windows - counts - sums) / windows)[[0, 1], [0, 2]]
    expected = np.stack([_twin(name, frame, pair).mean(axis=(0, 1)) for pair in planes])[[0, 1], [0, 2]]
    assert (expected < [2e-4, 1e-2]).all()
    tolerance = MEAN_NEAR_0 if KERNELS[name].precision is Precision.EXACT else MEAN_NEAR_0_FAST
    check_array(tolerance, _described(kernel_shape, name, frame), means / expected, np.ones(2))


@by_box
def test_swapped_planes_give_the_same_bits(device: Device, kernel_shape: KernelShape, name: str) -> None:
    frame, planes = textures("float32", 141, 47)
    swapped, expected = (_sums(device, kernel_shape, name, frame, pair) for pair in (planes[:, ::-1], planes))
    np.testing.assert_array_equal(swapped, expected)


@pytest.mark.parametrize("clip", [0, 1])
def test_fragments_do_not_see_each_other(device: Device, kernel_shape: KernelShape, clip: int) -> None:
    """Each fragment's column 31 is in no window that counts: what stands there changes no bit, but for the last fragment."""
    frame, planes = textures("uint8", 150, 30)
    changed = planes.copy()
    changed[:, clip, :, 31:128:32] ^= 0xFF
    got, expected = (_sums(device, kernel_shape, "estimate", frame, pair) for pair in (changed, planes))
    np.testing.assert_array_equal(got, expected)


def _check_map(device: Device, shape: KernelShape, name: str, frame: FrameFormat, planes: Picture) -> None:
    sums, maps = _run(device, shape, name, frame, planes, with_map=True)
    tolerance = KERNELS[name].map_tolerance
    assert tolerance is not None
    expected = np.stack([_twin(name, frame, pair)[..., 0] for pair in planes])
    check_array(tolerance, _described(shape, name, frame), maps, expected)
    alone = _sums(device, shape, name, frame, planes)
    np.testing.assert_allclose(sums, alone, rtol=1e-5, atol=1e-6 if name in BOXES else 0)


@pytest.mark.parametrize(("name", "width", "height"), [size for size in SIZES if size[0] in WITH_MAP])
def test_a_map_has_every_window(device: Device, kernel_shape: KernelShape, name: str, width: int, height: int) -> None:
    """The sums beside it are those without a map."""
    _check_map(device, kernel_shape, name, *textures("float32", width, height))


@by_kernel_with_map
@pytest.mark.parametrize("beside", [-1, 0, 1])
def test_a_map_where_a_workgroup_begins(device: Device, kernel_shape: KernelShape, name: str, beside: int) -> None:
    _check_map(device, kernel_shape, name, *textures("uint8", _begins(kernel_shape, name, 1) + beside, 30))


@by_kernel_with_map
@by_format
def test_a_map_of_every_format(device: Device, kernel_shape: KernelShape, name: str, format_name: str) -> None:
    _check_map(device, kernel_shape, name, *textures(format_name, 141, 47))


@by_kernel_with_map
def test_a_map_of_identical_planes_is_1_everywhere(device: Device, kernel_shape: KernelShape, name: str) -> None:
    frame, planes = textures("uint8", 61, 40)
    planes = planes[:, :1].repeat(2, axis=1)
    sums, maps = _run(device, kernel_shape, name, frame, planes, with_map=True)
    assert not sums.any()
    assert (maps == 1.0).all()
