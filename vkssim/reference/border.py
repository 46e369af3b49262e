"""The one border rule of the metric: symmetric reflection, the edge sample repeated."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def mirror(index: npt.NDArray[np.int64], length: int) -> npt.NDArray[np.int64]:
    """Return where an index outside 0..length-1 reads: -1 reads 0, -2 reads 1, n reads n-1, with period 2n."""
    folded = np.mod(index, 2 * length)
    return np.where(folded < length, folded, 2 * length - 1 - folded)
