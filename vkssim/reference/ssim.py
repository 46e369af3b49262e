"""Twins of `ssim_downscale.comp` and of `ssim.comp`, which also writes the first of the maps (`include/keep.glsl`)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

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
    weighted by float32(1/scale^2), and the products are summed in double, as in libvmaf's `_iqa_decimate`.
    """
    if scale == 1:
        return plane
    height, width = plane.shape
    out_width, out_height = downscaled_size(width, height, scale)
    offsets = np.arange(scale) - scale // 2
    weight = np.float32(1.0) / np.float32(scale * scale)
    total = np.zeros((out_height, out_width), np.float64)
    for row_offset in offsets:
        rows = mirror(np.arange(out_height) * scale + row_offset, height)
        for column_offset in offsets:
            columns = mirror(np.arange(out_width) * scale + column_offset, width)
            total += plane[rows[:, None], columns[None, :]] * weight
    return total.astype(np.float32)


def ssim_maps(
    reference: FloatPlane, distorted: FloatPlane, factor: int = 1, maps: Callable[[FloatPlane, FloatPlane], LcsMaps] = lcs_maps
) -> tuple[DoublePlane, ...]:
    """Return the maps of l c s, l, c, s, each (H', W') float64, of two (H, W) float32 planes after a downscale by `factor`.

    `maps` computes l, c, s of the windows that count.
    """
    found = maps(downscale(reference, factor), downscale(distorted, factor))
    return found.luminance * found.contrast * found.structure, *found


def ssim_means(
    reference: FloatPlane, distorted: FloatPlane, factor: int = 1, maps: Callable[[FloatPlane, FloatPlane], LcsMaps] = lcs_maps
) -> DoublePlane:
    """Return the means of these maps, (4,) float64."""
    return np.array([term.mean() for term in ssim_maps(reference, distorted, factor, maps)])
