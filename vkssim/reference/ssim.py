"""Twin of `ssim.comp`, and of `ssim_map.comp`, which keeps the first of the maps."""

from __future__ import annotations

import numpy as np

from ..types import DoublePlane, FloatPlane
from .ssim_downscale import downscale
from .window import lcs_maps


def ssim_maps(reference: FloatPlane, distorted: FloatPlane, factor: int = 1) -> tuple[DoublePlane, ...]:
    """The maps of l c s, l, c, s, each (H-10, W-10) float64, of two (H, W) float32 planes, downscaled by `factor` first."""
    maps = lcs_maps(downscale(reference, factor), downscale(distorted, factor))
    return maps.luminance * maps.contrast * maps.structure, *maps


def ssim_means(reference: FloatPlane, distorted: FloatPlane, factor: int = 1) -> DoublePlane:
    """(4,) float64: the means of these maps."""
    return np.array([term.mean() for term in ssim_maps(reference, distorted, factor)])
