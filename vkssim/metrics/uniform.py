"""Twin of `ssim_uniform.comp` and `ssim_estimate.comp`: maps of l, c and s of the 8x8 window in double precision."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..shaders.constants import C1, C2, C3, FRAGMENT, FRAGMENT_WINDOWS, UNIFORM
from ..types import DoublePlane, FloatPlane
from .window import LcsMaps


class _Blocks(NamedTuple):
    """Blocks of n samples, one for each position: sums of both planes, and n sum(x y) - sum(x) sum(y) of each pair."""

    sum1: DoublePlane
    sum2: DoublePlane
    scatter1: DoublePlane
    scatter2: DoublePlane
    coscatter: DoublePlane


def _doubled(blocks: _Blocks, offset: int, axis: int) -> _Blocks:
    """Merge each block with the block `offset` positions later: Chan, Golub, LeVeque, "Updating formulae", 1979."""
    kept = blocks.sum1.shape[axis] - offset
    first = _Blocks(*(np.take(terms, range(kept), axis) for terms in blocks))
    second = _Blocks(*(np.take(terms, range(offset, offset + kept), axis) for terms in blocks))
    difference1, difference2 = first.sum1 - second.sum1, first.sum2 - second.sum2
    return _Blocks(
        first.sum1 + second.sum1,
        first.sum2 + second.sum2,
        2 * (first.scatter1 + second.scatter1) + difference1 * difference1,
        2 * (first.scatter2 + second.scatter2) + difference2 * difference2,
        2 * (first.coscatter + second.coscatter) + difference1 * difference2,
    )


def uniform_maps(reference: FloatPlane, distorted: FloatPlane) -> LcsMaps:
    """Return luminance, contrast and structure of each 8x8 window inside two (H, W) planes: (H-7, W-7) float64.

    The planes are on the 0..255 scale. Means are over the 64 samples; variances and the covariance are divided by 63. With
    l, c, s as in `window.lcs_maps`, l c s is (2 m1 m2 + C1) / (m1^2 + m2^2 + C1) * (2 cov + C2) / (v1 + v2 + C2): P. Mazurek,
    K. Okarma, "An efficient estimation of the Structural Similarity index using the GPGPU programming techniques", 2010,
    formulas 1 to 4. Sums of integers are exact.
    """
    with np.errstate(invalid="ignore", over="ignore"):  # NaN samples give NaN scores
        return _maps(reference.astype(np.float64), distorted.astype(np.float64))


def _maps(reference: DoublePlane, distorted: DoublePlane) -> LcsMaps:
    nothing = np.zeros_like(reference)
    blocks = _Blocks(reference, distorted, nothing, nothing, nothing)
    for axis in (1, 0):
        for offset in (1, 2, 4):
            blocks = _doubled(blocks, offset, axis)
    samples = UNIFORM**2
    mean1, mean2 = blocks.sum1 / samples, blocks.sum2 / samples
    variance1, variance2, covariance = (scatter / (samples * (samples - 1)) for scatter in blocks[2:])
    geometric = np.where(variance1 == variance2, variance1, np.sqrt(variance1 * variance2))
    return LcsMaps(
        (2 * mean1 * mean2 + C1) / (mean1**2 + mean2**2 + C1),
        (2 * geometric + C2) / (variance1 + variance2 + C2),
        (covariance + C3) / (geometric + C3),
    )


def estimate_columns(width: int) -> npt.NDArray[np.int64]:
    """Return the columns of windows, by their first sample, over which the estimate averages in a plane of a width.

    The plane is divided into fragments of 32 columns; the last one may be narrower. Each column of a fragment has a thread,
    whose window begins four columns before the column. The four threads at either end do not count. So a row of a fragment has
    24 windows, which begin at its columns 0 to 23, and no window crosses its edges. A narrower fragment has only the windows
    inside the plane.
    """
    first = np.arange(width - UNIFORM + 1)
    return first[first % FRAGMENT < FRAGMENT_WINDOWS]


def estimate_maps(reference: FloatPlane, distorted: FloatPlane) -> LcsMaps:
    """Return the columns of `uniform_maps` that the estimate uses."""
    columns = estimate_columns(reference.shape[1])
    return LcsMaps(*(term[:, columns] for term in uniform_maps(reference, distorted)))
