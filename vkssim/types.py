"""Array types that the package's signatures share."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

FloatPlane = npt.NDArray[np.float32]
"""(H, W) float32 on the 0..255 scale."""

DoublePlane = npt.NDArray[np.float64]

Samples = npt.NDArray[Any]
"""(H, W) luma as it came: uint8, uint16, float32 or float64."""

Planes = tuple[Samples, ...]
"""A frame: (y,) or (y, cb, cr), each (H, W)."""
