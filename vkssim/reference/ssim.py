"""Twin of `ssim.comp`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..types import DoublePlane, FloatPlane
from .ssim_downscale import downscale
from .window import LcsMaps, lcs_maps


def ssim_means(
    reference: FloatPlane,
    distorted: FloatPlane,
    factor: int = 1,
    maps: Callable[[FloatPlane, FloatPlane], LcsMaps] = lcs_maps,
) -> DoublePlane:
    """(4,) float64: the means of l c s, l, c, s over two (H, W) float32 planes, downscaled by `factor` first.

    `maps` gives l, c, s of the windows that count.
    """
    found = maps(downscale(reference, factor), downscale(distorted, factor))
    product = found.luminance * found.contrast * found.structure
    return np.array([term.mean() for term in (product, *found)])
