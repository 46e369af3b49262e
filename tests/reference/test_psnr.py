"""The twin of `psnr.comp` against the formula written out, sample after sample, as libvmaf's C has it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from vkssim.reference.psnr import noise, psnr


def _written_out(reference: np.ndarray, distorted: np.ndarray) -> float:
    total = 0.0
    for one, other in zip(reference.ravel(), distorted.ravel(), strict=True):
        difference = np.float32(one) - np.float32(other)
        total += float(np.float32(difference * difference))
    return total / reference.size


@pytest.mark.parametrize("scale", [1.0, 4.0, 256.0])
def test_noise(scale: float) -> None:
    random = np.random.default_rng(0)
    planes = [(random.integers(0, int(256 * scale), (23, 31)) / scale).astype(np.float32) for _ in range(2)]
    assert noise(*planes) == pytest.approx(_written_out(*planes), rel=1e-14)


@pytest.mark.parametrize(
    ("value", "peak", "limit", "expected"),
    [
        (1.0, 255.0, 60.0, 48.130803608679),
        (65025.0, 255.0, 60.0, 0.0),
        (0.0, 255.0, 60.0, 60.0),
        (0.05, 255.0, 60.0, 60.0),
        (0.05, 255.75, 72.0, 61.166613),
        (0.0, 255.0, 1000.0, 148.130803608679),
        (math.nan, 255.0, 60.0, math.nan),
        (math.inf, 255.0, 60.0, math.nan),
    ],
)
def test_score_of_a_noise(value: float, peak: float, limit: float, expected: float) -> None:
    assert psnr(np.array([value]), peak, limit)[0] == pytest.approx(expected, abs=1e-6, nan_ok=True)
