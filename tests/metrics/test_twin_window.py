"""The window, the l, c, s maps and the noise, against formulas written out in double."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from vkssim.metrics.samples import ingest, noise
from vkssim.metrics.ssim import scale_means, ssim_means
from vkssim.metrics.window import gaussian, lcs_maps
from vkssim.shaders.constants import C1, C2, C3, GAUSSIAN

from ..support.pictures import distort, texture


def _planes(height: int = 19, width: int = 23) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    reference = texture(height, width)
    return (255 * reference).astype(np.float32), (255 * distort(reference)).astype(np.float32)


def _weighted_mean(plane: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    windows = np.lib.stride_tricks.sliding_window_view(plane, (11, 11))
    means: npt.NDArray[np.float64] = np.einsum("yxij,i,j->yx", windows, GAUSSIAN, GAUSSIAN)
    return means


def test_gaussian_is_the_weighted_mean_of_each_whole_window() -> None:
    plane, _ = _planes()
    got = gaussian(plane)
    assert got.shape == (9, 13)
    np.testing.assert_allclose(got, _weighted_mean(plane.astype(np.float64)), rtol=1e-6)


def test_maps_are_the_formulas() -> None:
    reference, distorted = (plane.astype(np.float64) for plane in _planes())
    mean1, mean2 = _weighted_mean(reference), _weighted_mean(distorted)
    variance1 = _weighted_mean(reference**2) - mean1**2
    variance2 = _weighted_mean(distorted**2) - mean2**2
    covariance = _weighted_mean(reference * distorted) - mean1 * mean2
    geometric = np.sqrt(variance1 * variance2)
    maps = lcs_maps(*_planes())
    np.testing.assert_allclose(maps.luminance, (2 * mean1 * mean2 + C1) / (mean1**2 + mean2**2 + C1), atol=1e-6)
    np.testing.assert_allclose(maps.contrast, (2 * geometric + C2) / (variance1 + variance2 + C2), atol=2e-5)
    np.testing.assert_allclose(maps.structure, (covariance + C3) / (geometric + C3), atol=2e-5)


def test_identical_planes_give_exactly_one() -> None:
    plane, _ = _planes()
    for term in lcs_maps(plane, plane):
        assert (term == 1.0).all()


def test_covariance_of_flat_windows_counts_as_zero() -> None:
    """Rounding alone makes it negative: without the guard the structure would fall below 1."""
    for value in np.linspace(0.3, 254.7, 40, dtype=np.float32):
        flat = np.full((11, 11), value, np.float32)
        maps = lcs_maps(flat, flat * np.float32(0.9))
        assert maps.structure.max() <= 1 + 1e-4
        assert maps.structure.min() >= 1 - 1e-4


def test_means_of_the_twins_are_those_of_the_maps() -> None:
    reference, distorted = _planes(180, 177)
    maps = lcs_maps(reference, distorted)
    product = (maps.luminance * maps.contrast * maps.structure).mean()
    np.testing.assert_array_equal(ssim_means(reference, distorted), [product, *(term.mean() for term in maps)])
    pyramid = scale_means(reference, distorted)
    assert pyramid.shape == (5, 3)
    np.testing.assert_array_equal(pyramid[0], [term.mean() for term in maps])


def test_samples_are_divided_by_a_power_of_two() -> None:
    """b bits by 2^(b-8), not by (2^b - 1)/255: 1023 of 10 bits is 255.75."""
    assert ingest(np.array([[1023]], np.uint16), 2.0**-2)[0, 0] == 255.75


@pytest.mark.parametrize("scale", [1.0, 4.0, 256.0])
def test_noise_is_added_sample_by_sample(scale: float) -> None:
    """Of differences and squares in float32, as libvmaf's C has them."""
    random = np.random.default_rng(0)
    first, second = ((random.integers(0, int(256 * scale), (23, 31)) / scale).astype(np.float32) for _ in range(2))
    squares = [float(np.float32(difference * difference)) for difference in (first - second).ravel()]
    assert noise(first, second) == pytest.approx(sum(squares) / first.size, rel=1e-14)
