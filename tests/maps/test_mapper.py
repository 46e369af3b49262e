"""SSIM with its map: of arrays by `ssim(return_map=True)`, of stacks by the mapper."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vkssim
from vkssim import arrays
from vkssim.backends.vulkan import frame_plan
from vkssim.errors import OptionError
from vkssim.host.plan import Role
from vkssim.maps.mapper import SsimMapper
from vkssim.metrics.dispatches import KernelShape
from vkssim.metrics.float_ssim import SsimMapScorer
from vkssim.metrics.plane_metrics import PlaneMetrics
from vkssim.metrics.uniform import uniform_maps
from vkssim.shaders.interface import Shape
from vkssim.types import FrameFormat

from ..shaders.harness import push_of, stem_of
from ..support.differences import check_array, check_number
from ..support.pictures import Picture, clip, distort, pair, texture
from ..support.tolerances import MAP_MEAN, SSIM_MAP_EXACT, SSIM_MAP_FAST, UNIFORM_MAP

pytestmark = pytest.mark.usefixtures("shared_device")

BACKENDS = ("vulkan", "cpu")


@pytest.mark.parametrize("backend", BACKENDS)
def test_one_image_gives_a_map_and_a_stack_a_stack(backend: str) -> None:
    reference = clip(3, 40, 61)
    distorted = np.roll(reference, 1, axis=1)
    scores, maps = vkssim.ssim(reference, distorted, return_map=True, backend=backend)
    assert (maps.shape, maps.dtype) == ((3, 30, 51), np.dtype(np.float32))
    assert isinstance(scores, np.ndarray)
    for score, ssim_map, first, second in zip(scores, maps, reference, distorted, strict=True):
        alone, map_alone = vkssim.ssim(first, second, return_map=True, backend=backend)
        assert type(alone) is float
        assert alone == score == vkssim.ssim(first, second, backend=backend)
        np.testing.assert_array_equal(map_alone, ssim_map)


@pytest.mark.parametrize("precision", ["exact", "fast"])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.float64])
def test_backends_agree_on_every_window(dtype: type, precision: str) -> None:
    peak = np.iinfo(dtype).max if np.issubdtype(dtype, np.integer) else 1.0
    images: list[Picture] = [(picture * peak).astype(dtype) for picture in (texture(60, 75), distort(texture(60, 75)))]
    got, expected = (
        vkssim.ssim(*images, data_range=peak, precision=precision, return_map=True, backend=backend)[1] for backend in BACKENDS
    )
    check_array(SSIM_MAP_EXACT if precision == "exact" else SSIM_MAP_FAST, f"{dtype.__name__}", got, expected)
    assert expected.min() < 0.8 < expected.max()


@pytest.mark.parametrize(("window", "edges"), [("gaussian11", [30, 40, 20, 30]), ("uniform8", [33, 40, 23, 30])])
def test_a_difference_is_where_it_was_made(window: str, edges: list[int]) -> None:
    """Sample (y, x) of the map is the window centred on (y + 5, x + 5), or the window of 8x8 samples from (y, x) on."""
    reference = clip(1, 64, 80)[0]
    distorted = reference.copy()
    distorted[40, 30] ^= 128
    _, ssim_map = vkssim.ssim(reference, distorted, window=window, return_map=True)
    rows, columns = np.nonzero(ssim_map < 1)
    assert [int(edge) for edge in (rows.min(), rows.max(), columns.min(), columns.max())] == edges
    assert ssim_map[35, 25] < 0.95


@pytest.mark.parametrize("batch", [1, 2, None])
@pytest.mark.parametrize("backend", BACKENDS)
def test_maps_belong_to_their_frames_whatever_the_batch(backend: str, batch: int | None) -> None:
    references = clip(11, 24, 32)
    distorteds = np.roll(references, 1, axis=2)
    with SsimMapper(FrameFormat.of_bits(32, 24, 8), {}, backend=backend, batch=batch) as mapper:
        for _ in range(2):
            scores, maps = mapper.run(references, distorteds)
            np.testing.assert_allclose(maps.mean(axis=(1, 2), dtype=np.float64), scores, atol=MAP_MEAN.value)
    assert len(np.unique(scores)) == 11, "no two frames are alike"


def test_no_map_is_computed_unless_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a map was asked for")

    monkeypatch.setattr(arrays, "SsimMapper", refuse)
    image = clip(1, 40, 61)[0]
    assert vkssim.ssim(image, image) == 1.0
    with pytest.raises(AssertionError, match="a map was asked for"):
        vkssim.ssim(image, image, scale=3, return_map=True)


@pytest.mark.parametrize("shape", [KernelShape(Shape.STRIP, 8), KernelShape(Shape.STAGED, 64)], ids=str)
@pytest.mark.parametrize("scale", [1, 2])
@pytest.mark.parametrize(("window", "stem", "margin"), [("gaussian11", "ssim", 10), ("uniform8", "ssim_uniform", 7)])
def test_sums_and_map_fit_what_is_reserved(shape: KernelShape, scale: int, window: str, stem: str, margin: int) -> None:
    frame = FrameFormat.of_bits(177, 131, 8)
    scorer = SsimMapScorer(frame, {"scale": scale, "window": window})
    plan, ((part,),) = frame_plan([PlaneMetrics("y", frame, (scorer,))], shape)
    plan.validate()
    partials = part.partials
    assert partials.role is Role.LARGE_OUTPUT
    dispatch = plan.dispatches[-1]
    assert stem_of(dispatch) == stem
    push = push_of(dispatch)
    assert push["first_window"] == 4 * dispatch.groups[0] * dispatch.groups[1]
    rows, columns = scorer.map_shape
    assert (rows, columns) == (push["height"] - margin, push["width"] - margin)
    floats = push["first_window"] + rows * columns
    assert 4 * floats <= partials.frame_bytes == 4 * push["frame_partials"] < 4 * floats + 16


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("window", "scale", "shape"),
    [
        ("gaussian11", 1, (81, 111)),
        ("gaussian11", 2, (36, 51)),
        ("gaussian11", 3, (21, 31)),
        ("uniform8", 1, (84, 114)),
        ("uniform8", 2, (39, 54)),
    ],
)
def test_mean_is_the_score_at_every_scale(backend: str, window: str, scale: int, shape: tuple[int, int]) -> None:
    """The map lacks the margin of the downscaled picture, by libvmaf's rule for odd sides."""
    images = [np.stack(side) for side in zip(pair(91, 121), pair(91, 121)[::-1], strict=True)]
    options: dict[str, Any] = {"scale": scale, "window": window, "backend": backend}
    scores, maps = vkssim.ssim(*images, return_map=True, **options)
    assert (maps.shape, maps.dtype) == ((2, *shape), np.dtype(np.float32))
    assert isinstance(scores, np.ndarray)
    np.testing.assert_array_equal(scores, vkssim.ssim(*images, **options))
    for score, ssim_map in zip(scores, maps, strict=True):
        check_number(MAP_MEAN, window, f"{backend}, scale {scale}", float(ssim_map.mean(dtype=np.float64)), score)
    if (window, scale) == ("uniform8", 1):
        expected = uniform_maps(*(side[0].astype(np.float32) for side in images))
        product = expected.luminance * expected.contrast * expected.structure
        check_array(UNIFORM_MAP, f"uniform8, {backend}", maps[0], product)


def test_an_estimate_has_no_map() -> None:
    image = np.zeros((32, 32), np.uint8)
    with pytest.raises(OptionError, match="a map has every window; estimate=true leaves some out"):
        vkssim.ssim(image, image, window="uniform8", estimate=True, return_map=True, backend="cpu")


def test_decibels_are_of_the_score_alone() -> None:
    images = pair(60, 75)
    score, ssim_map = vkssim.ssim(*images, return_map=True)
    in_decibel, the_same = vkssim.ssim(*images, return_map=True, enable_db=True)
    assert in_decibel == pytest.approx(-10 * np.log10(1 - score))
    np.testing.assert_array_equal(the_same, ssim_map)
