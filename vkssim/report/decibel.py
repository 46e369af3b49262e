"""A similarity in decibels."""

from __future__ import annotations

import numpy as np

from ..types import Doubles


def decibel(similarity: Doubles) -> Doubles:
    """Return -10 log10(1 - similarity): infinite for 1, NaN for NaN. A value above 1, caused by rounding, counts as 1."""
    with np.errstate(divide="ignore"):
        values: Doubles = -10 * np.log10(np.maximum(0.0, 1 - similarity))
    return values
