"""Twin of `psnr.comp`, and libvmaf's formula for the score."""

from __future__ import annotations

import numpy as np

from ..types import Doubles, FloatPlane

EPSILON = 1e-10
"""The smallest noise of the formula. Identical frames of peak 255 would have 148.13 dB if there were no lower limit."""


def noise(reference: FloatPlane, distorted: FloatPlane) -> float:
    """Return the mean squared difference of two (H, W) float32 planes.

    Differences and their squares are rounded to float32 and added in double, as in `compute_psnr` of libvmaf's psnr.c.
    """
    difference = reference - distorted
    return float(np.square(difference).sum(dtype=np.float64) / difference.size)


def psnr(noise: Doubles, peak: float, limit: float) -> Doubles:
    """Return min(10 log10(peak^2 / max(noise, 1e-10)), limit) in dB, as `compute_psnr` does.

    The result is NaN if the noise is not finite. libvmaf does not expect such samples, and would give the best score.
    """
    finite = np.where(np.isfinite(noise), noise, np.nan)
    found: Doubles = np.minimum(10 * np.log10(peak**2 / np.maximum(finite, EPSILON)), limit)
    return found
