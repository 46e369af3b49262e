"""Twin of `ssim.comp`."""

from __future__ import annotations

import numpy as np

from ..types import DoublePlane, FloatPlane
from .ssim_downscale import downscale
from .window import lcs_maps


def ssim_means(reference: FloatPlane, distorted: FloatPlane, factor: int = 1) -> DoublePlane:
    """(4,) float64: the means of l c s, l, c, s over two (H, W) float32 planes, downscaled by `factor` first."""
    maps = lcs_maps(downscale(reference, factor), downscale(distorted, factor))
    product = maps.luminance * maps.contrast * maps.structure
    return np.array([term.mean() for term in (product, *maps)])
