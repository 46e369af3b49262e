"""Wang's product over the scales, with its derivatives and the treatment of negative means: the last step of every loss."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .spec import Loss, Negative

Doubles = npt.NDArray[np.float64]


def product(loss: Loss, means: Doubles) -> tuple[Doubles, Doubles]:
    """Return values (P,) of P planes and their derivatives (P, scales) by each mean.

    `means` are (P, scales) float64 means of the terms.

    The value is prod(mean^weight), equation 7 of Wang, Simoncelli, Bovik 2003, with contrast and structure as one term. A scale
    with mean 0 and a weight below 1 has an infinite derivative; the function returns 0 for it, as for a negative mean with
    `clamp`.
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
        if loss.negative is Negative.KEEP:  # every weight is 1
            slopes[:, scale] = others
        elif weight > 0:
            with np.errstate(divide="ignore", invalid="ignore"):
                slope = weight * base ** (weight - 1) * others
            slopes[:, scale] = np.where(base == 0.0, 0.0, slope)
    return values, slopes
