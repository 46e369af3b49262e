"""How work is cut into workgroups: for any size everything is covered, and nothing twice. No device is needed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vkssim.host.devices import DeviceKind
from vkssim.metrics.dispatches import (
    MARGIN,
    KernelShape,
    PlanePair,
    WindowWalk,
    decimate,
    downscale,
    ingest,
    partials,
    window,
)
from vkssim.shaders.interface import SampleCode, Shape
from vkssim.types import FrameFormat

from ..host.made_up import device_info
from ..shaders.harness import push_of
from ..support.devices.geometry import GROUPS_ACROSS, columns_of_a_group

SIDES = st.integers(11, 4400)
SHAPES = st.sampled_from([KernelShape(Shape.STRIP, 4), KernelShape(Shape.STRIP, 8), KernelShape(Shape.STAGED, 64)])
many_sizes = settings(deadline=None, max_examples=100)


def _strips(rows: int, strip: int, groups: int) -> list[range]:
    """The rows that each workgroup down takes."""
    return [range(top, min(top + strip, rows)) for top in range(0, groups * strip, strip)]


def _check_strips(rows: int, strip: int, groups: int) -> None:
    """Each row in exactly one strip, no strip empty."""
    taken = _strips(rows, strip, groups)
    assert [row for strip_rows in taken for row in strip_rows] == list(range(rows))
    assert all(taken)


@many_sizes
@given(shape=SHAPES, width=SIDES, height=SIDES)
def test_windows_are_covered_exactly_once(shape: KernelShape, width: int, height: int) -> None:
    """Rows here, columns below; where a workgroup's columns begin is counted on the device, in shaders/test_windows."""
    planes = PlanePair.floats("planes", width, height)
    walk = WindowWalk.over(shape, planes)
    _check_strips(height - MARGIN, walk.strip, walk.groups[1])
    assert 1 <= walk.groups[0] <= width - MARGIN
    assert walk.count == walk.groups[0] * walk.groups[1]
    dispatch = window(shape, "ssim", planes, walk, partials("partials", 4 * walk.count))
    assert (dispatch.groups, push_of(dispatch)["strip"]) == (walk.groups, walk.strip)


@many_sizes
@given(shape=SHAPES, width=st.integers(8, 4400), height=st.integers(8, 4400))
def test_windows_of_8x8_are_covered_exactly_once(shape: KernelShape, width: int, height: int) -> None:
    """Rows here too; the estimate never has more workgroups than all windows have."""
    planes = PlanePair.floats("planes", width, height)
    exact, estimate = WindowWalk.uniform(shape, planes), WindowWalk.estimate(shape, planes)
    for walk in (exact, estimate):
        _check_strips(height - 7, walk.strip, walk.groups[1])
    assert 1 <= estimate.groups[0] <= exact.groups[0] <= width - 7


@many_sizes
@given(shape=SHAPES, width=SIDES, height=SIDES)
def test_decimation_is_covered_exactly_once(shape: KernelShape, width: int, height: int) -> None:
    target = PlanePair.floats("next", (width + 1) // 2, (height + 1) // 2)
    dispatch = decimate(shape, "decimate", PlanePair.floats("planes", width, height), target)
    _check_strips(target.height, push_of(dispatch)["strip"], dispatch.groups[1])


@many_sizes
@given(shape=SHAPES, width=SIDES, height=SIDES)
def test_ingest_and_downscale_take_each_row_once(shape: KernelShape, width: int, height: int) -> None:
    source, target = PlanePair.floats("planes", width, height), PlanePair.floats("small", width // 2, height // 2)
    assert {dispatch.groups[1] for dispatch in ingest(shape, source, source)} == {height}
    assert downscale(shape, source, target, 2).groups[1] == target.height


@many_sizes
@given(stage=st.sampled_from(sorted(GROUPS_ACROSS)), shape=SHAPES, columns=st.integers(1, 8000))
def test_workgroups_across_are_as_many_as_the_columns_need(stage: str, shape: KernelShape, columns: int) -> None:
    """Rows are padded to four floats, and kernels write the padding, so that the count may round up to that."""
    enough = columns_of_a_group(stage, shape)
    assert columns <= GROUPS_ACROSS[stage](shape, columns) * enough < columns + enough + 4


@given(width=SIDES, height=SIDES, bits=st.integers(8, 16))
def test_rows_begin_on_sixteen_bytes(width: int, height: int, bits: int) -> None:
    for planes in (PlanePair.raw(FrameFormat.of_bits(width, height, bits)), PlanePair.floats("planes", width, height)):
        sample_bytes = {SampleCode.UINT8: 1, SampleCode.UINT16: 2, SampleCode.FLOAT32: 4}[planes.code]
        assert planes.row_bytes % 16 == 0
        assert 0 <= planes.row_bytes - width * sample_bytes < 16
        assert planes.plane_bytes == planes.row_bytes * height


@pytest.mark.parametrize("kind", DeviceKind)
@pytest.mark.parametrize("name", ["llvmpipe (LLVM 15.0.6, 256 bits)", "SwiftShader Device (Subzero)"])
def test_shape_by_device(kind: DeviceKind, name: str) -> None:
    """One subgroup a workgroup on lavapipe, the staged shape on everything else, other software drivers included."""
    chosen = KernelShape.for_device(device_info(name=name, kind=kind, subgroup_size=8))
    if kind is DeviceKind.CPU and name.startswith("llvmpipe"):
        assert chosen == KernelShape(Shape.STRIP, 8)
    else:
        assert chosen.shape is Shape.STAGED
