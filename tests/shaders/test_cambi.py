"""`cambi_*.comp` and `cambi.comp`: the planes, the contrasts and the strongest of them against the twin's."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pytest

from vkssim.host.device import Device
from vkssim.host.pipelines import PipelineBuilder
from vkssim.host.plan import Dispatch, Plan, Role
from vkssim.metrics import cambi, make_scorer
from vkssim.metrics.base import FeaturePlan
from vkssim.metrics.cambi import CambiOptions
from vkssim.metrics.dispatches import KernelShape, PlanePair
from vkssim.shaders.constants import CAMBI_SCALES
from vkssim.shaders.interface import Shape
from vkssim.types import FrameFormat, Samples

from .harness import pack, push_of, run_buffers, stem_of

DEFAULTS = CambiOptions()
SIZES = [(216, 33), (31, 217), (257, 130), (300, 220)]


def _planes(width: int, height: int, bits: int, seed: int = 0) -> Samples:
    """Slopes with visible steps, noise and black, (1, 2, H, W): every branch has places."""
    rng = np.random.default_rng(seed)
    rows, columns = np.mgrid[:height, :width]
    plane = 40 + (3 * rows + 2 * columns) / 40 + 4 * np.sin(columns / 31)
    plane[: height // 5] += rng.normal(size=plane[: height // 5].shape)
    plane[height // 2 :, : width // 6] = 0
    frame = FrameFormat.of_bits(width, height, bits)
    noise = rng.integers(0, int(frame.peak) + 1, plane.shape)
    return np.stack([noise, plane * 2.0 ** (bits - 8)]).astype(frame.dtype)[None]


@dataclass(frozen=True)
class Kernels:
    """A device, the shape of its kernels, and those that are compiled."""

    device: Device
    shape: KernelShape
    pipelines: PipelineBuilder

    def run(
        self, planes: Samples, bits: int, feature: str = "cambi", shift: int = 0
    ) -> tuple[FeaturePlan, dict[str, npt.NDArray[np.float32]]]:
        """Return the metric's plan, and all that its kernels write."""
        frame = FrameFormat.of_bits(planes.shape[3], planes.shape[2], bits)
        frame = frame.in_surfaces() if shift else frame
        source = PlanePair.raw(frame)
        plan = make_scorer(feature, frame).plan(self.shape, source)
        written = tuple(
            replace(spec, role=Role.OUTPUT) if spec.role is Role.WORK and not spec.begins_with_zeros else spec
            for spec in plan.buffers
        )
        contents = {source.buffer: pack(source, planes << shift).view(np.float32)}
        return plan, run_buffers(self.device, Plan((source.spec(Role.INPUT), *written), plan.steps), contents, self.pipelines)


@pytest.fixture
def kernels(device: Device, kernel_shape: KernelShape, pipelines: PipelineBuilder) -> Kernels:
    return Kernels(device, kernel_shape, pipelines)


def _dispatches(plan: FeaturePlan, *stems: str) -> list[Dispatch]:
    return [dispatch for step in plan.steps for dispatch in step if stem_of(dispatch) in stems]


def _rows(buffer: npt.NDArray[np.float32], width: int, height: int) -> npt.NDArray[np.uint16]:
    return buffer.view(np.uint16).reshape(height, -1)[:, :width]


def _assert_stages(kernels: Kernels, planes: Samples, bits: int, settings: CambiOptions = DEFAULTS) -> None:
    """Compare every plane and every contrast with the twin's, and the means."""
    words = [f"{name}={value}" for name, value in vars(settings).items() if value != getattr(DEFAULTS, name)]
    own = ("high_res_speedup", "vis_lum_threshold", "topk", "eotf")
    feature = f"cambi={':'.join('cambi_' * word.startswith(own) + word for word in words)}" if words else "cambi"
    plan, made = kernels.run(planes, bits, feature)
    plane = cambi.ten_bits(planes[0, 1], bits, settings)
    height, width = plane.shape
    flat, halved = cambi.flat_places(plane), cambi.is_halved(width, height, settings)
    if kernels.shape.shape is Shape.STAGED:
        np.testing.assert_array_equal(_rows(made["cambi.levels"], width, height), plane)
    made_flat = plane | flat << 15
    if kernels.shape.shape is Shape.STRIP and halved:
        made_flat = made_flat[::2, ::2]
    np.testing.assert_array_equal(_rows(made["cambi.flat"], *made_flat.shape[::-1]), made_flat)

    side = cambi.window_side(width, height, settings)
    steps = _dispatches(plan, "cambi", "cambi_lists")
    scales = [dispatch for dispatch in steps if push_of(dispatch).get("first_strip", 0) == 0]
    assert len(scales) == CAMBI_SCALES
    for number, dispatch in enumerate(scales):
        if number > 0 or halved:
            plane, flat = plane[::2, ::2], flat[::2, ::2]
        plane = cambi.without_specks(plane)
        rows, columns = plane.shape
        np.testing.assert_array_equal(_rows(made[f"cambi.scale{number}"], columns, rows), plane | flat << 15)
        first = push_of(dispatch)["first_value"]
        values = made["cambi.values"][0, first : first + plane.size].reshape(plane.shape)
        np.testing.assert_array_equal(values, cambi.contrasts(plane, flat, side, settings))
    frame = FrameFormat.of_bits(planes.shape[3], planes.shape[2], bits)
    means = make_scorer(feature, frame).means(made[plan.partials.name], plan)[0]
    np.testing.assert_allclose(means, cambi.cambi_means(planes[0, 1], bits, settings), rtol=2e-7)


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_every_size(kernels: Kernels, width: int, height: int) -> None:
    _assert_stages(kernels, _planes(width, height, 8), 8)


@pytest.mark.parametrize("bits", [9, 10, 12, 16])
def test_every_depth(kernels: Kernels, bits: int) -> None:
    _assert_stages(kernels, _planes(230, 90, bits), bits)


@pytest.mark.parametrize(
    "settings",
    [
        CambiOptions(high_res_speedup=1080, window_size=127, vis_lum_threshold=3.0),
        CambiOptions(max_log_contrast=5, topk=0.05),
        CambiOptions(max_log_contrast=0, eotf="pq", tvi_threshold=0.005),
        CambiOptions(enc_width=221, enc_height=77, enc_bitdepth=10),
    ],
    ids=lambda settings: str(settings)[:40],
)
def test_options(kernels: Kernels, settings: CambiOptions) -> None:
    _assert_stages(kernels, _planes(260, 100, 8, seed=1), 8, settings)


@pytest.mark.parametrize("bits", [8, 10])
def test_a_first_scale_of_half_the_size(kernels: Kernels, bits: int) -> None:
    settings = CambiOptions(high_res_speedup=1080)
    assert cambi.is_halved(1923, 1081, settings)
    _assert_stages(kernels, _planes(1923, 1081, bits), bits, settings)


def _wide_planes() -> Samples:
    """White of 16 bits, which is rounded up to 1024, with darker levels, mostly flat: the window has 65 columns.

    White is too bright to have a contrast, and costs little. So there is much of it, and the darker levels are around their
    corner, where windows are full of them, and at the end of the rows.
    """
    planes = np.full((1, 2, 80, 2990), 65535, np.uint16)
    planes[..., :200:130] = 1018 << 6
    planes[..., 200:270] = planes[..., 1420:1500] = 100 << 6
    planes[..., :40, 1500:1580] = 100 << 6
    planes[..., 40:, 1500:1580] = planes[..., 2920:] = 102 << 6
    return planes


def test_the_largest_window_of_flat_places(kernels: Kernels) -> None:
    """Counts of 4,225 places, and contrasts of over a thousand."""
    settings = CambiOptions(window_size=127)
    assert cambi.window_side(2990, 80, settings) == cambi.LARGEST_WINDOW
    _assert_stages(kernels, _wide_planes(), 16, settings)


def test_the_most_contrasts_of_the_largest_window(device: Device, pipelines: PipelineBuilder) -> None:
    """With a loop over the words of a window, lavapipe would end the strips early. GPUs have that loop."""
    kernels = Kernels(device, KernelShape.for_device(device.info), pipelines)
    _assert_stages(kernels, _wide_planes(), 16, CambiOptions(window_size=127, max_log_contrast=5))


def test_samples_in_the_upper_bits(kernels: Kernels) -> None:
    """As a hardware decoder writes 10 bits."""
    planes = _planes(240, 60, 10)
    lower, upper = (kernels.run(planes, 10, shift=shift)[1]["cambi.values"] for shift in (0, 6))
    np.testing.assert_array_equal(upper, lower)


@pytest.mark.parametrize(("positive", "count"), [(0, 7), (5, 7), (40000, 20000), (40000, 5000), (66000, 39000), (66000, 7)])
def test_the_strongest_contrasts(kernels: Kernels, positive: int, count: int) -> None:
    """Of numbers of every size, of numbers that are alike or nearly so, and of which more or fewer are 0 than count."""
    width, height = 300, 220
    feature = f"cambi=cambi_topk={(count + 0.5) / (width * height)}"
    planes = np.zeros((1, 2, height, width), np.uint8)
    plan, made = kernels.run(planes, 8, feature)
    random = np.random.default_rng(positive + count)
    drawn = 2 ** random.uniform(-1, 13, positive)
    drawn[::3] = random.uniform(40, 40.05, len(drawn[::3]))
    drawn[1::3] = random.choice([40.03, 1200.1], len(drawn[1::3]))
    values = np.zeros_like(made["cambi.values"])
    values[0, :positive] = drawn
    steps = tuple((dispatch,) for dispatch in _dispatches(plan, "cambi_select"))
    buffers = tuple(
        replace(spec, role=Role.INPUT) if spec.name in ("cambi.values", "cambi.histograms") else spec
        for spec in plan.buffers
        if spec.name in {name for step in steps for name in (*step[0].sources, *step[0].targets)}
    )
    contents = {"cambi.values": values, "cambi.histograms": np.zeros((1, 5 * 4096), np.float32)}
    partials = run_buffers(kernels.device, Plan(buffers, steps), contents, kernels.pipelines)[plan.partials.name]
    frame = FrameFormat.of_bits(width, height, 8)
    strongest = np.sort(values[0, : width * height])[::-1][:count]
    mean = make_scorer(feature, frame).means(partials, plan)[0, 0]
    assert mean == pytest.approx(strongest.mean(dtype=np.float64), rel=3e-7)
