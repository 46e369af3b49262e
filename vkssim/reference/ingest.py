"""Twin of `ingest.comp`: samples to float32 on the 0..255 scale."""

from __future__ import annotations

import numpy as np

from ..types import FloatPlane, Samples


def ingest(samples: Samples, factor: float) -> FloatPlane:
    """Return `samples` times `factor` in float32, as libvmaf's `picture_copy` does: 2^(8-bits), or 255/range for floats."""
    return samples.astype(np.float32) * np.float32(factor)
