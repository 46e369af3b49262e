"""Twin of `largest_sample.comp`: the largest sample of each plane."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..types import Samples


def largest_samples(planes: Samples) -> npt.NDArray[np.uint32]:
    """Return the largest sample of each of (..., H, W) planes of integers, as uint32."""
    largest: npt.NDArray[np.uint32] = planes.max(axis=(-2, -1)).astype(np.uint32)
    return largest
