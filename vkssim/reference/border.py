"""The one border rule of the metrics: symmetric reflection, with the edge sample repeated."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def mirror(index: npt.NDArray[np.int64], length: int) -> npt.NDArray[np.int64]:
    """Return the index that is read for an index outside 0..length-1: 0 for -1, 1 for -2, n-1 for n, with period 2n."""
    folded = np.mod(index, 2 * length)
    return np.where(folded < length, folded, 2 * length - 1 - folded)
