"""Twin of `ssim.comp`, and of `ssim_map.comp`, which writes the first of the maps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..types import DoublePlane, FloatPlane
from .ssim_downscale import downscale
from .window import LcsMaps, lcs_maps


def ssim_maps(
    reference: FloatPlane,
    distorted: FloatPlane,
    factor: int = 1,
    maps: Callable[[FloatPlane, FloatPlane], LcsMaps] = lcs_maps,
) -> tuple[DoublePlane, ...]:
    """Return the maps of l c s, l, c, s, each (H', W') float64, of two (H, W) float32 planes after a downscale by `factor`.

    `maps` computes l, c, s of the windows that count.
    """
    found = maps(downscale(reference, factor), downscale(distorted, factor))
    return found.luminance * found.contrast * found.structure, *found


def ssim_means(
    reference: FloatPlane,
    distorted: FloatPlane,
    factor: int = 1,
    maps: Callable[[FloatPlane, FloatPlane], LcsMaps] = lcs_maps,
) -> DoublePlane:
    """Return the means of these maps, (4,) float64."""
    return np.array([term.mean() for term in ssim_maps(reference, distorted, factor, maps)])
