"""Twin of `psnr.comp`, and libvmaf's formula that makes a score of its sums."""

from __future__ import annotations

import numpy as np

from ..types import Doubles, FloatPlane

EPSILON = 1e-10
"""The least noise that the formula knows: identical frames of peak 255 would have 148.13 dB without a lower limit."""


def noise(reference: FloatPlane, distorted: FloatPlane) -> float:
    """Return the mean squared difference of two (H, W) float32 planes.

    Differences and their squares are rounded to float32 and added in double, as by `compute_psnr` of libvmaf's psnr.c.
    """
    difference = reference - distorted
    return float(np.square(difference).sum(dtype=np.float64) / difference.size)


def psnr(noise: Doubles, peak: float, limit: float) -> Doubles:
    """Return min(10 log10(peak^2 / max(noise, 1e-10)), limit) in dB, as `compute_psnr` does.

    NaN where the noise is not finite: libvmaf knows no such samples, and would give the best score there is.
    """
    finite = np.where(np.isfinite(noise), noise, np.nan)
    found: Doubles = np.minimum(10 * np.log10(peak**2 / np.maximum(finite, EPSILON)), limit)
    return found
