"""Runs a walk of windows and compares the sums of each workgroup with sums of the twin's maps over the same windows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vkssim.features.float_ssim import Windows
from vkssim.features.planes import KernelShape, PlanePair, partials, window
from vkssim.host.device import Device
from vkssim.host.plan import Role
from vkssim.reference.samples import ingest
from vkssim.types import FrameFormat

from ..support.differences import check_array
from ..support.pictures import Picture, distort, texture
from ..support.tolerances import Tolerance
from .harness import FORMATS, pack, run

_TERMS = ("lcs", "l", "c", "s")


class Layout(NamedTuple):
    """Where the windows of each workgroup lie: edges of rows and of columns, by column of workgroups."""

    rows: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int64]


def sums(device: Device, shape: KernelShape, windows: Windows, frame: FrameFormat, planes: Picture) -> npt.NDArray[np.float32]:
    """What the kernel leaves: (frames, groups down, groups across, sums)."""
    source = PlanePair.raw(frame)
    walk = windows.walk(shape, source)
    terms = len(_TERMS)
    target = partials("partials", terms * walk.count)
    dispatch = window(shape, windows.stem, source, walk, target)
    data = run(device, [dispatch], source.spec(Role.INPUT), target, pack(source, planes))
    across, down = walk.groups
    return data.view(np.float32)[:, : terms * walk.count].reshape(len(planes), down, across, terms)


def layout(device: Device, shape: KernelShape, windows: Windows, width: int, height: int) -> Layout:
    """Count the windows of each workgroup, by means of planes that lack the same luminance in every window.

    That no window is left out, and none is counted twice, is asserted on the way.
    """
    frame = FrameFormat.of_array(width, height, np.float32, 255.0)
    planes = np.zeros((1, 2, height, width), np.float32)
    planes[:, 1] = 255.0
    lacking = 1 - windows.maps(planes[0, 0], planes[0, 1]).luminance[0, 0]
    counted = sums(device, shape, windows, frame, planes)[0, :, :, _TERMS.index("l")] / lacking
    counts = np.round(counted).astype(np.int64)
    assert np.abs(counted - counts).max() < 0.05, "a workgroup does not count whole windows"
    # What one row of windows has in each workgroup is its count without the factor that the rows are.
    strip = windows.walk(shape, PlanePair.raw(frame)).strip
    all_rows, all_columns = height - windows.side + 1, windows.columns(width)
    rows = np.minimum(np.arange(len(counts) + 1) * strip, all_rows)
    columns = np.concatenate(([0], np.cumsum(counts[0] // np.diff(rows)[0])))
    assert rows[-1] == all_rows, "the last rows of windows belong to no workgroup"
    assert columns[-1] == all_columns, "the workgroups across do not take each column of windows once"
    assert (counts > 0).all(), "a workgroup has nothing to do"
    np.testing.assert_array_equal(counts, np.outer(np.diff(rows), np.diff(columns)))
    return Layout(rows, columns)


def expected_sums(windows: Windows, frame: FrameFormat, planes: Picture, where: Layout) -> npt.NDArray[np.float64]:
    """What each term lacks to 1, summed over the windows of each workgroup, by the twin."""
    found = []
    for reference, distorted in planes:
        maps = windows.maps(ingest(reference, frame.factor), ingest(distorted, frame.factor))
        product = maps.luminance * maps.contrast * maps.structure
        by_name = dict(zip(_TERMS, (product, *maps), strict=True))
        lacking = np.stack([1 - by_name[term] for term in _TERMS], axis=-1)
        down = np.add.reduceat(lacking, where.rows[:-1], axis=0)
        found.append(np.add.reduceat(down, where.columns[:-1], axis=1))
    return np.stack(found)


def check_planes(
    tolerance: Tolerance, device: Device, shape: KernelShape, windows: Windows, frame: FrameFormat, planes: Picture
) -> None:
    """Compare the kernel with its twin over (frames, 2, H, W) samples; sums are divided by the windows they are of."""
    where = layout(device, shape, windows, frame.width, frame.height)
    counts = np.outer(np.diff(where.rows), np.diff(where.columns))[:, :, None]
    got = sums(device, shape, windows, frame, planes) / counts
    expected = expected_sums(windows, frame, planes, where) / counts
    name = f"{windows.stem}, {frame.dtype} {frame.width}x{frame.height}, {shape.shape.value}"
    check_array(tolerance, name, got, expected)


def textures(format_name: str, width: int, height: int) -> tuple[FrameFormat, Picture]:
    """A format, and two textures with distorted copies as (2, 2, height, width)."""
    dtype, peak = FORMATS[format_name]
    pictures = [(texture(height, width, seed), distort(texture(height, width, seed), seed)) for seed in range(2)]
    scaled = np.array(pictures) * peak
    return FrameFormat.of_array(width, height, dtype, peak), (scaled if dtype is np.float32 else np.round(scaled)).astype(dtype)
