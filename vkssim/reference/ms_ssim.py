"""Twin of `ms_ssim_decimate.comp`, and the l, c, s of each scale of float_ms_ssim."""

from __future__ import annotations

import numpy as np

from ..shaders.constants import LOW_PASS_QUARTER, SCALES
from ..types import DoublePlane, FloatPlane
from .window import lcs_maps, mirror

_RADIUS = 4


def low_pass_table() -> FloatPlane:
    """Return libvmaf's 9x9 low-pass table, float32, completed from its upper left quarter."""
    quarter = np.array(LOW_PASS_QUARTER, np.float32)
    half = np.concatenate([quarter, quarter[:, -2::-1]], axis=1)
    return np.concatenate([half, half[-2::-1]], axis=0)


def decimate(plane: FloatPlane) -> FloatPlane:
    """Return the next scale of the pyramid: (H, W) float32 to (ceil(H/2), ceil(W/2)) float32.

    One pass applies the 9x9 table with a symmetric border. Products are rounded to float32 and summed in double, as in
    libvmaf's `_iqa_decimate`.
    """
    height, width = plane.shape
    rows = mirror(np.arange(-_RADIUS, height + _RADIUS), height)
    columns = mirror(np.arange(-_RADIUS, width + _RADIUS), width)
    padded = plane[rows[:, None], columns[None, :]]
    total = np.zeros(((height + 1) // 2, (width + 1) // 2), np.float64)
    for (row, column), weight in np.ndenumerate(low_pass_table()):
        total += padded[row : row + height : 2, column : column + width : 2] * weight
    return total.astype(np.float32)


def scale_means(reference: FloatPlane, distorted: FloatPlane) -> DoublePlane:
    """Return mean luminance, contrast and structure of five scales: two (H, W) float32 planes to (5, 3) float64."""
    means = np.empty((SCALES, 3), np.float64)
    for scale in range(SCALES):
        if scale:
            reference, distorted = decimate(reference), decimate(distorted)
        means[scale] = [term.mean() for term in lcs_maps(reference, distorted)]
    return means
