"""The border rule, the Gaussian window, and the l, c, s maps of `ssim` and `ms_ssim`, rounded where libvmaf rounds.

libvmaf rounds every product of a tap and a sample to float32, sums in double, and stores the result of each pass (horizontal,
then vertical) as float32. The maps of variance and covariance are float32, and the three quotients are double.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..shaders.constants import C1, C2, C3, GAUSSIAN
from ..types import DoublePlane, FloatPlane


def mirror(index: npt.NDArray[np.int64], length: int) -> npt.NDArray[np.int64]:
    """Return the index that is read for an index outside 0..length-1: 0 for -1, 1 for -2, n-1 for n, with period 2n.

    This is the one border rule of the metrics: symmetric reflection, with the edge sample repeated.
    """
    folded = np.mod(index, 2 * length)
    return np.where(folded < length, folded, 2 * length - 1 - folded)


class LcsMaps(NamedTuple):
    """Luminance, contrast and structure of every window, each (H-10, W-10) float64."""

    luminance: DoublePlane
    contrast: DoublePlane
    structure: DoublePlane


_MAX_TOGETHER = 1 << 15
"""Samples of the largest planes that are filtered together: calls of NumPy take longer than so few samples."""


def _filter_pass(planes: FloatPlane, axis: int) -> FloatPlane:
    shape = list(planes.shape)
    shape[axis] = places = planes.shape[axis] - len(GAUSSIAN) + 1
    total, product = np.zeros(shape, np.float64), np.empty(shape, np.float32)
    for place, tap in enumerate(GAUSSIAN):
        window = slice(place, place + places)
        samples = planes[..., window] if axis == -1 else planes[..., window, :]
        total += np.multiply(samples, np.float32(tap), out=product)
    return total.astype(np.float32)


def gaussian(planes: FloatPlane) -> FloatPlane:
    """Return the weighted mean of each 11x11 window completely inside a plane: (…, H, W) float32 to (…, H-10, W-10) float32."""
    return _filter_pass(_filter_pass(planes, axis=-1), axis=-2)


def lcs_maps(reference: FloatPlane, distorted: FloatPlane) -> LcsMaps:
    """Return luminance, contrast and structure maps of two (H, W) float32 planes on the 0..255 scale.

    l = (2 m1 m2 + C1) / (m1^2 + m2^2 + C1), c = (2 g + C2) / (v1 + v2 + C2), s = (cov + C3) / (g + C3) with
    g = sqrt(v1 v2), as in Wang et al., "Image quality assessment: from error visibility to structural similarity", 2004,
    with libvmaf's two guards: a variance is never negative, and a negative covariance counts as 0 if g is 0.
    """
    with np.errstate(invalid="ignore", over="ignore"):  # NaN samples give NaN scores
        return _maps(reference, distorted)


def _maps(reference: FloatPlane, distorted: FloatPlane) -> LcsMaps:
    planes = reference, distorted, reference * reference, distorted * distorted, reference * distorted
    means = gaussian(np.stack(planes)) if reference.size <= _MAX_TOGETHER else [gaussian(plane) for plane in planes]
    mean1, mean2, mean_of_squares1, mean_of_squares2, mean_of_products = means
    mean1_squared, mean2_squared = mean1 * mean1, mean2 * mean2
    zero = np.float32(0)
    variance1 = np.maximum(zero, mean_of_squares1 - mean1_squared)
    variance2 = np.maximum(zero, mean_of_squares2 - mean2_squared)
    covariance = mean_of_products - mean1 * mean2
    # Roots first: the product of two large variances would be infinite.
    geometric = np.where(variance1 == variance2, variance1, np.sqrt(variance1) * np.sqrt(variance2))
    covariance = np.where((covariance < 0) & (geometric <= 0), zero, covariance)

    # Equal terms give exactly 1. This is the only difference from libvmaf: its numerators are double, its denominators float,
    # so its scores of identical frames differ from 1 by up to 6e-8.
    luminance = np.where(
        mean1 == mean2, 1.0, (2.0 * mean1 * mean2.astype(np.float64) + C1) / (mean1_squared + mean2_squared + np.float32(C1))
    )
    contrast = np.where(
        variance1 == variance2, 1.0, (2.0 * geometric.astype(np.float64) + C2) / (variance1 + variance2 + np.float32(C2))
    )
    structure = (covariance + np.float32(C3)).astype(np.float64) / (geometric + np.float32(C3))
    return LcsMaps(luminance, contrast, structure)
