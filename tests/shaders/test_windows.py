"""`ms_ssim.comp` and `ssim.comp`: the sums of each workgroup against sums of the twin's maps over the same windows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from vkssim.features.planes import MARGIN, KernelShape, PlanePair, WindowWalk, partials, window
from vkssim.formats import FrameFormat
from vkssim.host.device import Device
from vkssim.host.plan import Role
from vkssim.reference.ingest import ingest
from vkssim.reference.window import lcs_maps

from ..differences import check_array
from ..geometry import columns_of_a_group
from ..pictures import Picture, distort, texture
from ..tolerances import WINDOW, WINDOW_EXACT, Tolerance
from .harness import FORMATS, pack, run

STEMS = {"ms_ssim": ("l", "c", "s"), "ssim": ("lcs", "l", "c", "s")}
SIZES = [(11, 11), (12, 40), (33, 27), (251, 90), (177, 179), (700, 13)]


class Layout(NamedTuple):
    """Where the windows of each workgroup lie: edges of rows and of columns, by column of workgroups."""

    rows: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int64]


def _sums(device: Device, shape: KernelShape, stem: str, frame: FrameFormat, planes: Picture) -> npt.NDArray[np.float32]:
    """What the kernel leaves: (frames, groups down, groups across, sums)."""
    source = PlanePair.raw(frame)
    walk = WindowWalk.over(shape, source)
    terms = len(STEMS[stem])
    target = partials("partials", terms * walk.count)
    data = run(device, [window(shape, stem, stem, source, walk, target)], source.spec(Role.INPUT), target, pack(source, planes))
    across, down = walk.groups
    return data.view(np.float32)[:, : terms * walk.count].reshape(len(planes), down, across, terms)


def _layout(device: Device, shape: KernelShape, stem: str, width: int, height: int) -> Layout:
    """Count the windows of each workgroup, by means of planes that lack the same luminance in every window.

    That no window is left out, and none is counted twice, is asserted on the way.
    """
    frame = FrameFormat.of_array(width, height, np.float32, 255.0)
    planes = np.zeros((1, 2, height, width), np.float32)
    planes[:, 1] = 255.0
    lacking = 1 - lcs_maps(planes[0, 0], planes[0, 1]).luminance[0, 0]
    counted = _sums(device, shape, stem, frame, planes)[0, :, :, STEMS[stem].index("l")] / lacking
    counts = np.round(counted).astype(np.int64)
    assert np.abs(counted - counts).max() < 0.05, "a workgroup does not count whole windows"
    # What one row of windows has in each workgroup is its count without the factor that the rows are.
    strip = WindowWalk.over(shape, PlanePair.raw(frame)).strip
    rows = np.minimum(np.arange(len(counts) + 1) * strip, height - MARGIN)
    columns = np.concatenate(([0], np.cumsum(counts[0] // np.diff(rows)[0])))
    assert rows[-1] == height - MARGIN, "the last rows of windows belong to no workgroup"
    assert columns[-1] == width - MARGIN, "the workgroups across do not take each column of windows once"
    assert (counts > 0).all(), "a workgroup has nothing to do"
    np.testing.assert_array_equal(counts, np.outer(np.diff(rows), np.diff(columns)))
    return Layout(rows, columns)


def _expected(stem: str, frame: FrameFormat, planes: Picture, layout: Layout) -> npt.NDArray[np.float64]:
    """What each term lacks to 1, summed over the windows of each workgroup, by the twin."""
    sums = []
    for reference, distorted in planes:
        maps = lcs_maps(ingest(reference, frame.factor), ingest(distorted, frame.factor))
        product = maps.luminance * maps.contrast * maps.structure
        by_name = dict(zip(("lcs", "l", "c", "s"), (product, *maps), strict=True))
        lacking = np.stack([1 - by_name[term] for term in STEMS[stem]], axis=-1)
        down = np.add.reduceat(lacking, layout.rows[:-1], axis=0)
        sums.append(np.add.reduceat(down, layout.columns[:-1], axis=1))
    return np.stack(sums)


def _check(device: Device, shape: KernelShape, stem: str, format_name: str, width: int, height: int) -> None:
    dtype, peak = FORMATS[format_name]
    frame = FrameFormat.of_array(width, height, dtype, peak)
    pictures = [(texture(height, width, seed), distort(texture(height, width, seed), seed)) for seed in range(2)]
    scaled = np.array(pictures) * peak
    planes = (scaled if dtype is np.float32 else np.round(scaled)).astype(dtype)
    layout = _layout(device, shape, stem, width, height)
    windows = np.outer(np.diff(layout.rows), np.diff(layout.columns))[:, :, None]
    got = _sums(device, shape, stem, frame, planes) / windows
    expected = _expected(stem, frame, planes, layout) / windows
    check_array(_tolerance(shape), f"{stem}, {format_name} {width}x{height}, {shape.shape.value}", got, expected)


def _tolerance(shape: KernelShape) -> Tolerance:
    return WINDOW_EXACT if shape.exact else WINDOW


@pytest.mark.parametrize("stem", STEMS)
@pytest.mark.parametrize(("width", "height"), SIZES)
def test_every_size(device: Device, kernel_build: KernelShape, stem: str, width: int, height: int) -> None:
    _check(device, kernel_build, stem, "float32", width, height)


@pytest.mark.parametrize("stem", STEMS)
@pytest.mark.parametrize("beside", [-1, 0, 1])
@pytest.mark.parametrize("groups", [1, 2])
def test_columns_where_a_workgroup_begins(
    device: Device, kernel_build: KernelShape, stem: str, groups: int, beside: int
) -> None:
    width = groups * columns_of_a_group("windows", kernel_build) + beside + MARGIN
    _check(device, kernel_build, stem, "uint8", width, 30)


@pytest.mark.parametrize("stem", STEMS)
@pytest.mark.parametrize("format_name", FORMATS)
def test_every_format(device: Device, kernel_build: KernelShape, stem: str, format_name: str) -> None:
    _check(device, kernel_build, stem, format_name, 141, 47)


@pytest.mark.parametrize("stem", STEMS)
@pytest.mark.parametrize("format_name", FORMATS)
def test_identical_planes_lack_nothing(device: Device, kernel_build: KernelShape, stem: str, format_name: str) -> None:
    """Every sum is exactly 0, whatever the driver's division and square root do in the last place."""
    dtype, peak = FORMATS[format_name]
    plane = (texture(40, 61) * peak).astype(dtype)
    frame = FrameFormat.of_array(61, 40, dtype, peak)
    assert not _sums(device, kernel_build, stem, frame, np.stack([plane, plane])[None]).any()
