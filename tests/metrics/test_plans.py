"""The plan of a frame, built without a device: how many dispatches, in which order, on which buffers."""

from __future__ import annotations

import itertools

import pytest

from vkssim.backends.vulkan import frame_plan
from vkssim.host.plan import Dispatch, Plan, Role
from vkssim.metrics import FEATURES, with_options
from vkssim.metrics.dispatches import KernelShape
from vkssim.metrics.plane_metrics import FrameMetrics, plane_formats
from vkssim.shaders.constants import SCALES
from vkssim.shaders.interface import Shape
from vkssim.types import FrameFormat

from ..shaders.harness import push_of, stem_of

SHAPES = [KernelShape(Shape.STRIP, 8), KernelShape(Shape.STRIP, 4), KernelShape(Shape.STAGED, 64)]
FRAMES = {
    "8 bit": FrameFormat.of_bits(576, 324, 8),
    "10 bit": FrameFormat.of_bits(576, 324, 10),
    "16 bit": FrameFormat.of_bits(576, 324, 16),
    "float": FrameFormat.of_array(576, 324, "float32", 1.0),
    "range of its own": FrameFormat.of_array(576, 324, "uint16", 1000),
}
WITH_INGEST = {"float", "range of its own"}


def _plan(frame: FrameFormat, shape: KernelShape, *features: str) -> Plan:
    plan, _ = frame_plan(FrameMetrics(features or ("float_ms_ssim",), [frame]).planes, shape)
    plan.validate()
    return plan


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", FRAMES)
def test_number_of_dispatches(shape: KernelShape, name: str) -> None:
    """2 ingest where the samples need it, 4 decimations of both planes, 5 scales of windows: 11 for floats, 9 for integers."""
    stems = [stem_of(dispatch) for dispatch in _plan(FRAMES[name], shape).dispatches]
    assert [stems.count(stem) for stem in ("ms_ssim_decimate", "ms_ssim")] == [4, 5]
    assert stems.count("ingest") == (2 if name in WITH_INGEST else 0)
    assert len(stems) == (11 if name in WITH_INGEST else 9)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("bits", [8, 10])
def test_chroma_of_surfaces_is_separated_first(shape: KernelShape, bits: int) -> None:
    """Everything else is the plan of the same frames that the host writes, with chroma one step later."""
    luma = FrameFormat.of_bits(704, 576, bits)
    plain, surfaces = (
        frame_plan(FrameMetrics("float_ms_ssim", plane_formats(frame, "all")).planes, shape)[0]
        for frame in (luma, luma.in_surfaces())
    )
    surfaces.validate()
    inputs = {spec.name: spec.frame_bytes for spec in surfaces.buffers if spec.role is Role.INPUT}
    assert inputs == {"samples": plain.buffer("samples").frame_bytes, "chroma": 2 * plain.buffer("cb.samples").frame_bytes}
    assert {surfaces.buffer(name).role for name in ("cb.samples", "cr.samples")} == {Role.WORK}
    (separation,) = [dispatch for dispatch in surfaces.steps[0] if stem_of(dispatch) == "deinterleave"]
    assert (separation.sources, separation.targets) == (("chroma",), ("cb.samples", "cr.samples"))
    assert _steps_of(surfaces, chroma=True) == [[], *_steps_of(plain, chroma=True)]
    assert _steps_of(surfaces, chroma=False) == [*_steps_of(plain, chroma=False), []]


def _steps_of(plan: Plan, *, chroma: bool) -> list[list[tuple[object, ...]]]:
    """What the metrics of the luma, or those of chroma, do in each step."""
    return [
        [
            (dispatch.label, dispatch.sources, dispatch.targets)
            for dispatch in step
            if dispatch.label.startswith(("cb.", "cr.")) is chroma and stem_of(dispatch) != "deinterleave"
        ]
        for step in plan.steps
    ]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_order_and_buffers_of_a_float_frame(shape: KernelShape) -> None:
    plan = _plan(FRAMES["float"], shape)
    ingests, *scales = plan.steps
    assert [push_of(dispatch)["first_plane"] for dispatch in ingests] == [0, 1]
    assert {(dispatch.sources, dispatch.targets) for dispatch in ingests} == {(("samples",), ("planes",))}
    level = "planes"
    for scale, step in enumerate(scales):
        by_stem = {stem_of(dispatch): dispatch for dispatch in step}
        windows, decimation = by_stem.pop("ms_ssim"), by_stem.pop("ms_ssim_decimate", None)
        assert not by_stem
        assert windows.sources == (level,)
        assert plan.buffer(windows.targets[0]).role is Role.OUTPUT
        assert (decimation is None) == (scale == SCALES - 1)
        if decimation is not None:
            assert (decimation.sources, decimation.layers) == ((level,), 2)
            (level,) = decimation.targets
    roles = [spec.role for spec in plan.buffers]
    assert (roles.count(Role.INPUT), roles.count(Role.OUTPUT)) == (1, 1)


def test_integer_samples_are_read_as_they_are() -> None:
    first = _plan(FRAMES["10 bit"], SHAPES[0]).steps[0]
    assert {dispatch.sources for dispatch in first} == {("samples",)}
    assert {push_of(dispatch)["scale"] for dispatch in first} == {0.25}


@pytest.mark.parametrize(
    ("size", "scale", "expected"),
    [((320, 240), "0", 1), ((320, 240), "1", 1), ((1920, 1080), "0", 2), ((320, 240), "3", 2)],
)
def test_float_ssim_has_a_downscale_only_where_it_downscales(size: tuple[int, int], scale: str, expected: int) -> None:
    plan = _plan(FrameFormat.of_bits(*size, 8), SHAPES[0], f"float_ssim=scale={scale}")
    assert len(plan.dispatches) == expected


def test_features_share_the_samples_and_the_ingest() -> None:
    both = _plan(FRAMES["float"], SHAPES[0], "float_ms_ssim", "float_ssim")
    assert [stem_of(dispatch) for dispatch in both.dispatches].count("ingest") == 2
    assert len(both.dispatches) == 12
    assert len(both.steps) == 6, "the steps of the two run side by side"


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("size", [(176, 176), (177, 179), (251, 190), (576, 324), (1920, 1080), (180, 2160)])
def test_partial_sums_lie_side_by_side(shape: KernelShape, size: tuple[int, int]) -> None:
    """Each scale writes where the one before ended, and all of them fit what is reserved for a frame."""
    plan = _plan(FrameFormat.of_bits(*size, 8), shape)
    windows = [dispatch for dispatch in plan.dispatches if stem_of(dispatch) == "ms_ssim"]
    place = 0
    for dispatch in windows:
        push = push_of(dispatch)
        assert push["first_partial"] == place
        assert 4 * push["frame_partials"] == plan.buffer(dispatch.targets[0]).frame_bytes
        place += 6 * dispatch.groups[0] * dispatch.groups[1]
    assert 4 * place <= plan.buffer(windows[0].targets[0]).frame_bytes < 4 * place + 16


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", FRAMES)
def test_every_dispatch_stays_within_its_buffers(shape: KernelShape, name: str) -> None:
    frame = FRAMES[name]
    plan = _plan(frame, shape, *(with_options(name, scale=2) for name, metric in FEATURES.items() if not metric.reads_integers))
    for dispatch, spec in itertools.product(plan.dispatches, plan.buffers):
        push = push_of(dispatch)
        if spec.name in dispatch.sources:
            assert push["height"] * push["pitch"] <= push["plane"]
            assert 2 * push["plane"] * shape.shape.row_unit <= spec.frame_bytes
            assert push["width"] <= push["pitch"] * shape.shape.row_unit // _sample_bytes(dispatch)
        if spec.name in dispatch.targets and "target_plane" in push:
            assert 2 * 4 * push["target_plane"] <= spec.frame_bytes
    assert all(spec.frame_bytes % 16 == 0 for spec in plan.buffers)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("bits", [8, 10])
def test_vif_makes_a_scale_while_it_sums_another(shape: KernelShape, bits: int) -> None:
    """Each scale is a quarter of the one before."""
    plan = _plan(FrameFormat.of_bits(577, 323, bits), shape, "vif")
    steps = [sorted(stem_of(dispatch) for dispatch in step) for step in plan.steps]
    assert steps == [["vif", "vif_decimate"]] * 3 + [["vif"]]
    sizes = [push_of(dispatch) for dispatch in plan.dispatches if stem_of(dispatch) == "vif"]
    assert [(push["width"], push["height"]) for push in sizes] == [(577, 323), (288, 161), (144, 80), (72, 40)]
    place = 0
    for dispatch in (dispatch for dispatch in plan.dispatches if stem_of(dispatch) == "vif"):
        push = push_of(dispatch)
        assert push["first_partial"] == place
        assert 4 * push["frame_partials"] == plan.buffer(dispatch.targets[0]).frame_bytes
        place += 8 * dispatch.groups[0] * dispatch.groups[1]
    assert 4 * place <= plan.buffer("vif.partials").frame_bytes < 4 * place + 16


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("bits", [8, 10])
def test_adm_makes_each_scale_of_the_one_before(shape: KernelShape, bits: int) -> None:
    """Each has half the width and height, rounded up. Rows are added last, in place after place."""
    plan = _plan(FrameFormat.of_bits(577, 323, bits), shape, "adm")
    steps = [sorted(stem_of(dispatch) for dispatch in step) for step in plan.steps]
    assert steps == [["adm"]] * 4 + [["adm_rows"] * 4]
    sizes = [push_of(dispatch) for dispatch in plan.dispatches if stem_of(dispatch) == "adm"]
    assert [(push["width"], push["height"]) for push in sizes] == [(577, 323), (289, 162), (145, 81), (73, 41)]
    place = 0
    for dispatch in plan.steps[-1]:
        push = push_of(dispatch)
        assert push["first_partial"] == place
        assert 4 * push["frame_partials"] == plan.buffer("adm.partials").frame_bytes
        assert 8 * 6 * push["parts"] * push["rows"] <= plan.buffer(dispatch.sources[0]).frame_bytes
        place += 24 * dispatch.groups[0]
    assert 4 * place <= plan.buffer("adm.partials").frame_bytes < 4 * place + 16


def _sample_bytes(dispatch: Dispatch) -> int:
    """Bytes of a sample that the kernel reads, by its constant FORMAT."""
    return {0: 4, 1: 1, 2: 2}[dict(dispatch.kernel.constants)[1]]
