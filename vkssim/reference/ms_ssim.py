"""The l, c, s of each scale of float_ms_ssim, from the twins of `ssim.comp` and `ms_ssim_decimate.comp`."""

from __future__ import annotations

import numpy as np

from ..shaders.constants import SCALES
from ..types import DoublePlane, FloatPlane
from .ms_ssim_decimate import decimate
from .window import lcs_maps


def scale_means(reference: FloatPlane, distorted: FloatPlane) -> DoublePlane:
    """Return mean luminance, contrast and structure of five scales: two (H, W) float32 planes to (5, 3) float64."""
    means = np.empty((SCALES, 3), np.float64)
    for scale in range(SCALES):
        if scale:
            reference, distorted = decimate(reference), decimate(distorted)
        means[scale] = [term.mean() for term in lcs_maps(reference, distorted)]
    return means
