"""Wang's product over the scales, its derivatives, and what negative means give: the last step of every loss."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .spec import Loss, Negative

Doubles = npt.NDArray[np.float64]


def product(loss: Loss, means: Doubles) -> tuple[Doubles, Doubles]:
    """Values (P,) of P planes and their derivatives (P, scales) by each mean, from (P, scales) float64 means of the terms.

    The value is prod(mean^weight), Wang, Simoncelli, Bovik 2003, equation 7, with contrast and structure as one term. A scale
    of mean 0 and weight below 1 has an infinite derivative; it is given as 0, as for a negative mean under `clamp`.
    """
    weights = np.array(loss.weights)
    if loss.negative is Negative.CLAMP:
        bases = np.maximum(means, 0.0)
    elif loss.negative is Negative.NULL:
        bases = np.where(means < 0.0, np.nan, means)
    else:
        bases = means
    powers = bases**weights
    values = np.prod(powers, axis=1)
    slopes = np.zeros_like(powers)
    for scale, weight in enumerate(loss.weights):
        others = np.prod(np.delete(powers, scale, axis=1), axis=1)
        base = bases[:, scale]
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = np.ones_like(base) if weight == 1 and loss.negative is Negative.KEEP else weight * base ** (weight - 1)
        flat = loss.negative is not Negative.KEEP and base == 0.0
        slopes[:, scale] = np.where(flat, 0.0, slope * others)
    return values, slopes
