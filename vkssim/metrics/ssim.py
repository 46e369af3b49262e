"""Twins of `ssim_downscale.comp`, of `ms_ssim_decimate.comp`, and of `ssim.comp` with its map (`include/map.glsl`)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..shaders.constants import LOW_PASS_QUARTER, SCALES
from ..types import DoublePlane, FloatPlane
from .window import LcsMaps, lcs_maps, mirror


def downscaled_size(width: int, height: int, scale: int) -> tuple[int, int]:
    """Return width and height after the downscale by libvmaf's rule: w/s + (w & 1), h/s + (h & 1) in integer division."""
    if scale == 1:
        return width, height
    return width // scale + (width & 1), height // scale + (height & 1)


def downscale(plane: FloatPlane, scale: int) -> FloatPlane:
    """Return the means of the `scale` x `scale` boxes of a (H, W) float32 plane, float32; scale 1 returns the plane itself.

    The box of output x spans the `scale` source samples from scale*x - floor(scale/2), with a symmetric border. Each sample is
    weighted by float32(1/scale^2).
    """
    if scale == 1:
        return plane
    height, width = plane.shape
    boxes = np.full((scale, scale), np.float32(1.0) / np.float32(scale * scale))
    return _weighted_sums(plane, boxes, scale, *downscaled_size(width, height, scale))


def low_pass_table() -> FloatPlane:
    """Return libvmaf's 9x9 low-pass table, float32, completed from its upper left quarter."""
    quarter = np.array(LOW_PASS_QUARTER, np.float32)
    half = np.concatenate([quarter, quarter[:, -2::-1]], axis=1)
    return np.concatenate([half, half[-2::-1]], axis=0)


def decimate(plane: FloatPlane) -> FloatPlane:
    """Return the next scale of the pyramid: (H, W) float32 to (ceil(H/2), ceil(W/2)) float32, by the 9x9 table."""
    height, width = plane.shape
    return _weighted_sums(plane, low_pass_table(), 2, (width + 1) // 2, (height + 1) // 2)


def _weighted_sums(plane: FloatPlane, table: FloatPlane, step: int, width: int, height: int) -> FloatPlane:
    """Return the sums of the samples around every `step`-th sample, weighted by a square table, with a symmetric border.

    Products are rounded to float32 and summed in double, as in libvmaf's `_iqa_decimate`.
    """
    reach = len(table) // 2
    rows, columns = (
        mirror(np.arange(step * count + len(table)) - reach, length)
        for count, length in zip((height, width), plane.shape, strict=True)
    )
    # Planes of every `step`-th sample: NumPy is faster if the samples that it reads are beside each other.
    parts = [[part.take(columns[x::step], 1) for x in range(step)] for part in (plane[rows[y::step]] for y in range(step))]
    total, product = np.zeros((height, width), np.float64), np.empty((height, width), np.float32)
    for (row, column), weight in np.ndenumerate(table):
        (y, first_row), (x, first_column) = (divmod(place, step)[::-1] for place in (row, column))
        samples = parts[y][x][first_row : first_row + height, first_column : first_column + width]
        total += np.multiply(samples, weight, out=product)
    return total.astype(np.float32)


def ssim_maps(
    reference: FloatPlane, distorted: FloatPlane, factor: int = 1, maps: Callable[[FloatPlane, FloatPlane], LcsMaps] = lcs_maps
) -> tuple[DoublePlane, ...]:
    """Return the maps of l c s, l, c, s, each (H', W') float64, of two (H, W) float32 planes after a downscale by `factor`.

    `maps` computes l, c, s of the windows that count.
    """
    terms = maps(downscale(reference, factor), downscale(distorted, factor))
    return terms.luminance * terms.contrast * terms.structure, *terms


def ssim_means(
    reference: FloatPlane, distorted: FloatPlane, factor: int = 1, maps: Callable[[FloatPlane, FloatPlane], LcsMaps] = lcs_maps
) -> DoublePlane:
    """Return the means of these maps, (4,) float64."""
    return np.array([term.mean() for term in ssim_maps(reference, distorted, factor, maps)])


def scale_means(reference: FloatPlane, distorted: FloatPlane) -> DoublePlane:
    """Return mean luminance, contrast and structure of five scales: two (H, W) float32 planes to (5, 3) float64."""
    means = np.empty((SCALES, 3), np.float64)
    for scale in range(SCALES):
        if scale:
            reference, distorted = decimate(reference), decimate(distorted)
        means[scale] = [term.mean() for term in lcs_maps(reference, distorted)]
    return means
