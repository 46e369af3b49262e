"""speed_chroma: every digit of libvmaf's C code, planes without a covariance, scaled planes and the smallest size."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from vkssim.errors import FrameError
from vkssim.metrics.speed import WEIGHT_MODES, Speed, SpeedOptions, combined, eigenvalues, scale, solve, speed

from ..support.golden import CLIPS, clip_planes, clip_report

OF_MODELS = SpeedOptions(sigma_nn=0.19, nn_floor=0.1, weight_var_mode=5)
SUFFIX = "_mxv_45_nnf_0.1_snn_0.19_wvm_5"
SINGULAR = Speed(0.0, singular=True)


def _noise(height: int, width: int, seed: int = 0) -> npt.NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (height, width), np.uint8)


@pytest.mark.parametrize("clip", CLIPS)
def test_every_digit_of_the_clips(clip: str) -> None:
    count, bits = 4, 10 if "10bit" in clip else 8
    planes = [
        np.array([speed(one, other, bits, OF_MODELS) for one, other in zip(*clip_planes(clip, count, plane), strict=True)])
        for plane in (1, 2)
    ]
    found = [planes[0][:, 0], planes[1][:, 0], combined(*planes)]
    frames = clip_report(clip, "vmaf_v1")["frames"][:count]
    expected = [[frame[f"speed_chroma_{name}{SUFFIX}"] for frame in frames] for name in ("u", "v", "uv")]
    np.testing.assert_array_equal(found, expected)


def test_planes_without_a_covariance() -> None:
    """libvmaf gives 0 if a plane is flat, and takes the score of the other plane of chroma."""
    flat, noise = np.full((96, 128), 90, np.uint8), _noise(96, 128)
    assert speed(flat, flat, 8, OF_MODELS) == speed(flat, noise, 8, OF_MODELS) == SINGULAR
    assert combined(np.array([[0.0, 1], [3, 0], [2, 0]]), np.array([[4.0, 0], [0, 1], [3, 0]])).tolist() == [4, 3, 2.5]


def test_a_small_prescale_leaves_too_few_samples() -> None:
    """The clip's chroma of 288x162 has 10x6 samples at 0.6 of its size, and libvmaf's score is 0."""
    (reference, *_), (distorted, *_) = clip_planes(CLIPS[0], 1, 1)
    options = replace(OF_MODELS, prescale=0.6, prescale_method="bilinear")
    assert speed(reference, distorted, 8, options) == SINGULAR


@pytest.mark.parametrize("mode", WEIGHT_MODES)
def test_weights(mode: int) -> None:
    plane, other = _noise(256, 256), _noise(256, 256, 1)
    options = SpeedOptions(weight_var_mode=mode)
    assert speed(plane, plane, 8, options).score < 1e-5  # some modes round both weights differently
    assert speed(plane, other, 8, options).score > 1
    wide, other_wide = plane.astype(np.uint16) << 4, other.astype(np.uint16) << 4
    assert speed(wide, other_wide, 12, options) == speed(plane, other, 8, options)


@pytest.mark.parametrize("method", ["nearest", "bilinear"])
def test_scaled_planes(method: str) -> None:
    plane = np.add.outer(np.arange(10), 2 * np.arange(20)).astype(np.float32)
    half = scale(plane, SpeedOptions(prescale=0.5, prescale_method=method))
    assert half.shape == (5, 10)
    np.testing.assert_array_equal(half, plane[::2, ::2] + (1.5 if method == "bilinear" else 0))


def test_linear_algebra() -> None:
    samples = np.random.default_rng(2).normal(size=(25, 200))
    matrix = (samples @ samples.T).astype(np.float32)
    np.testing.assert_allclose(np.sort(eigenvalues(matrix)), np.linalg.eigvalsh(matrix), rtol=1e-4)
    right = samples[:, :7].astype(np.float32)
    solution = solve(matrix, right)
    assert solution is not None
    np.testing.assert_allclose(matrix @ solution, right, atol=1e-4)
    assert solve(np.diag([1.0] * 24 + [1e-7]).astype(np.float32), right) is None


def test_too_small() -> None:
    with pytest.raises(FrameError, match="chroma of 80x80 at least, got 90x79"):
        speed(_noise(79, 90), _noise(79, 90), 8)
    with pytest.raises(FrameError, match=r"after speed_prescale=0\.5, got 120x200"):
        speed(_noise(200, 120), _noise(200, 120), 8, SpeedOptions(prescale=0.5))
