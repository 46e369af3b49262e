"""The two metrics as such: names, smallest frames, and how means become scores."""

from __future__ import annotations

import math

import numpy as np
import pytest

from vkssim.errors import FrameError
from vkssim.metrics import make_scorer
from vkssim.metrics.base import sum_groups
from vkssim.shaders.constants import BETA
from vkssim.types import FrameFormat

FRAME = FrameFormat.of_bits(576, 324, 8)


def _finish(feature: str, means: np.ndarray) -> dict[str, float]:
    """Scores of one frame from its means."""
    return {name: float(column[0]) for name, column in make_scorer(feature, FRAME).finish(means[None]).items()}


def test_names_in_libvmafs_order() -> None:
    lcs = [f"float_ms_ssim_{term}_scale{scale}" for term in "lcs" for scale in range(5)]
    assert make_scorer("float_ms_ssim", FRAME).names == ("float_ms_ssim",)
    assert make_scorer("float_ms_ssim=enable_lcs=true", FRAME).names == ("float_ms_ssim", *lcs)
    assert make_scorer("float_ssim=enable_lcs=true", FRAME).names == tuple(
        "float_ssim" + term for term in ("", "_l", "_c", "_s")
    )


@pytest.mark.parametrize("size", [(175, 176), (176, 175), (16, 16)])
def test_ms_ssim_refuses_what_has_no_five_scales(size: tuple[int, int]) -> None:
    with pytest.raises(FrameError, match=f"needs 176x176 at least, got {size[0]}x{size[1]}"):
        make_scorer("float_ms_ssim", FrameFormat.of_bits(*size, 8))
    make_scorer("float_ms_ssim", FrameFormat.of_bits(176, 176, 8))


@pytest.mark.parametrize(("size", "scale"), [((10, 11), 1), ((11, 10), 1), ((20, 30), 2), ((100, 400), 10)])
def test_ssim_refuses_what_has_no_window(size: tuple[int, int], scale: int) -> None:
    with pytest.raises(FrameError, match="needs 11x11 at least after its downscale"):
        make_scorer(f"float_ssim=scale={scale}", FrameFormat.of_bits(*size, 8))


@pytest.mark.parametrize(
    ("size", "factor"),
    [
        *[
            ((1920, 1080), 4),
            ((3840, 2160), 8),
            ((576, 324), 1),
            ((771, 515), 2),
            ((900, 771), 3),
            ((128, 500), 1),
            ((16, 16), 1),
        ],
        *[((960, 640), 3), ((2048, 1152), 5), ((1664, 2000), 7), ((4096, 2176), 9), ((384, 384), 2), ((639, 900), 2)],
    ],
)
def test_automatic_downscale(size: tuple[int, int], factor: int) -> None:
    """Scale 0 gives the same as libvmaf's factor for this size: the smaller side over 256, halves rounded up."""
    frame = FrameFormat.of_bits(*size, 8)
    planes = [np.random.default_rng(seed).random(size[::-1], np.float32)[:400, :400] * 255 for seed in range(2)]
    automatic, said = (make_scorer(f"float_ssim=scale={scale}", frame) for scale in (0, factor))
    np.testing.assert_array_equal(automatic.reference_means(*planes), said.reference_means(*planes))


def test_product_of_the_scales() -> None:
    means = np.linspace(0.5, 0.95, 15)
    lcs = means.reshape(5, 3)
    expected = lcs[4, 0] ** 0.1333 * np.prod([(c * s) ** power for (_, c, s), power in zip(lcs, BETA, strict=True)])
    scores = _finish("float_ms_ssim=enable_lcs=true", means)
    assert scores["float_ms_ssim"] == pytest.approx(expected, rel=1e-14)
    assert scores["float_ms_ssim_c_scale3"] == means[3 * 3 + 1]


@pytest.mark.parametrize("scale", range(5))
def test_negative_structure_is_null_unless_clamped(scale: int) -> None:
    means = np.full(15, 0.9)
    means[3 * scale + 2] = -0.01
    assert math.isnan(_finish("float_ms_ssim", means)["float_ms_ssim"])
    assert math.isnan(_finish("float_ms_ssim=enable_db=true:clip_db=true", means)["float_ms_ssim"])
    clamped = _finish("float_ms_ssim=negative=clamp:enable_lcs=true", means)
    assert clamped["float_ms_ssim"] == 0.0
    assert clamped[f"float_ms_ssim_s_scale{scale}"] == -0.01, "the term itself is given as it is"


def test_decibel_is_never_applied_to_the_terms() -> None:
    scores = _finish("float_ssim=enable_db=true:enable_lcs=true", np.array([0.9, 0.99, 0.98, 0.97]))
    assert scores["float_ssim"] == pytest.approx(10)
    assert [scores[f"float_ssim_{term}"] for term in "lcs"] == [0.99, 0.98, 0.97]


def test_sums_are_added_in_double() -> None:
    """A sum of many small floats beside a large one, which float32 would lose."""
    partial_sums = np.array([[1e8, 1, *[1.0, 2.0] * 4, 99, 99]], np.float32)
    np.testing.assert_array_equal(sum_groups(partial_sums, [2, 3], 2), [[[1e8 + 1, 3], [3, 6]]])
