"""Twin of `ssim_uniform.comp`, `ssim_uniform_map.comp` and `ssim_estimate.comp`.

It gives maps of l, c and s of the rectangular 8x8 window, in double.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..shaders.constants import C1, C2, C3, FRAGMENT, FRAGMENT_WINDOWS, UNIFORM
from ..types import DoublePlane, FloatPlane
from .window import LcsMaps


class _Blocks(NamedTuple):
    """Blocks of n samples, one from each place on: sums of both planes, and n sum(x y) - sum(x) sum(y) of each pair of them."""

    sum1: DoublePlane
    sum2: DoublePlane
    scatter1: DoublePlane
    scatter2: DoublePlane
    coscatter: DoublePlane


def _doubled(blocks: _Blocks, offset: int, axis: int) -> _Blocks:
    """Return each block and the one `offset` places on put together: Chan, Golub, LeVeque, "Updating formulae", 1979."""
    kept = blocks.sum1.shape[axis] - offset
    first = _Blocks(*(np.take(part, range(kept), axis) for part in blocks))
    other = _Blocks(*(np.take(part, range(offset, offset + kept), axis) for part in blocks))
    apart1, apart2 = first.sum1 - other.sum1, first.sum2 - other.sum2
    return _Blocks(
        first.sum1 + other.sum1,
        first.sum2 + other.sum2,
        2 * (first.scatter1 + other.scatter1) + apart1 * apart1,
        2 * (first.scatter2 + other.scatter2) + apart2 * apart2,
        2 * (first.coscatter + other.coscatter) + apart1 * apart2,
    )


def uniform_maps(reference: FloatPlane, distorted: FloatPlane) -> LcsMaps:
    """Luminance, contrast and structure of each 8x8 window inside two (H, W) planes on the 0..255 scale: (H-7, W-7) float64.

    Means over the 64 samples, variances and the covariance divided by 63; l, c, s as in `window.lcs_maps`, so that l c s is
    (2 m1 m2 + C1) / (m1^2 + m2^2 + C1) * (2 cov + C2) / (v1 + v2 + C2): P. Mazurek, K. Okarma, "An efficient estimation of the
    Structural Similarity index using the GPGPU programming techniques", 2010, formulas 1 to 4. Sums of integers are exact.
    """
    with np.errstate(invalid="ignore", over="ignore"):  # samples that are no numbers give scores that are none
        return _maps(reference.astype(np.float64), distorted.astype(np.float64))


def _maps(reference: DoublePlane, distorted: DoublePlane) -> LcsMaps:
    nothing = np.zeros_like(reference)
    blocks = _Blocks(reference, distorted, nothing, nothing, nothing)
    for axis in (1, 0):
        for offset in (1, 2, 4):
            blocks = _doubled(blocks, offset, axis)
    samples = UNIFORM**2
    mean1, mean2 = blocks.sum1 / samples, blocks.sum2 / samples
    variance1, variance2, covariance = (part / (samples * (samples - 1)) for part in blocks[2:])
    geometric = np.where(variance1 == variance2, variance1, np.sqrt(variance1 * variance2))
    return LcsMaps(
        (2 * mean1 * mean2 + C1) / (mean1**2 + mean2**2 + C1),
        (2 * geometric + C2) / (variance1 + variance2 + C2),
        (covariance + C3) / (geometric + C3),
    )


def estimate_columns(width: int) -> npt.NDArray[np.int64]:
    """Return the columns of windows, by their first sample, that the estimate averages of a plane of that width.

    The plane is cut into fragments of 32 columns, the last one perhaps narrower. A thread for each column of a fragment takes
    the window that begins four columns before it; the four threads at either end do not count. So 24 windows are left in a
    row of a fragment, those that begin at its columns 0 to 23; no window sees the neighbours. Of the narrower fragment those
    are taken that lie inside the plane.
    """
    first = np.arange(width - UNIFORM + 1)
    return first[first % FRAGMENT < FRAGMENT_WINDOWS]


def estimate_maps(reference: FloatPlane, distorted: FloatPlane) -> LcsMaps:
    """Return the columns of `uniform_maps` that the estimate takes."""
    columns = estimate_columns(reference.shape[1])
    return LcsMaps(*(term[:, columns] for term in uniform_maps(reference, distorted)))
