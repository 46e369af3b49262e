"""The specification of a loss: scales and exponents, constants, border rule, pyramid, and negative terms; and its last step.

The last step of every loss is Wang's product over the scales.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeVar

import numpy as np

from ..errors import FrameError, OptionError
from ..shaders.constants import BETA, GAUSSIAN
from ..types import Doubles
from ..utils.limits import real_number, real_numbers

RADIUS = len(GAUSSIAN) // 2
"""The samples of a window on each side of its centre."""

MS_SSIM_WEIGHTS = BETA
"""The five exponents of Wang et al. 2003."""

_RANGES = 1e-15, 1e15
_SMALLEST_CONSTANT = 1e-36


class Padding(Enum):
    """The positions of windows.

    SAME has a window on every sample, with zeros beyond the border. VALID has only windows completely inside.
    """

    SAME = "same"
    VALID = "valid"

    @property
    def margin(self) -> int:
        """Return the number of samples at each border without a window."""
        return 0 if self is Padding.SAME else RADIUS


class Pyramid(Enum):
    """The step from one scale to the next.

    AVERAGE takes 2x2 means; an odd side gets a zero before its first sample and after its last, as in PyTorch libraries.
    LIBVMAF applies the 9-tap low-pass of float_ms_ssim with mirrored borders, and takes every second sample.
    """

    AVERAGE = "average"
    LIBVMAF = "libvmaf"


class Negative(Enum):
    """The contribution of a scale with a negative mean.

    KEEP uses the mean itself, which is possible only if every exponent is 1. CLAMP uses 0 with gradient 0, like relu. With
    NULL, the value and its gradient are NaN.
    """

    KEEP = "keep"
    CLAMP = "clamp"
    NULL = "null"


@dataclass(frozen=True)
class Loss:
    """SSIM (one scale of weight 1) or MS-SSIM of planes of one size.

    A plane's value is the product over the scales of mean(term)^weight; the term is l cs on the last scale and cs on the
    others, with l and cs of every window

        l = (2 m1 m2 + c1) / (m1^2 + m2^2 + c1),   cs = (2 cov + c2) / (v1 + v2 + c2).

    `data_range` is the largest possible sample. The value depends on it only through c1 and c2. The kernels also need it to
    limit the level that they subtract from samples before they square them (docs/adr/0017-losses.md).
    """

    height: int
    width: int
    c1: float
    c2: float
    padding: Padding = Padding.VALID
    weights: tuple[float, ...] = (1.0,)
    pyramid: Pyramid = Pyramid.AVERAGE
    negative: Negative = Negative.KEEP
    data_range: float = field(kw_only=True)

    def __post_init__(self) -> None:
        if self.negative is Negative.KEEP and any(weight != 1 for weight in self.weights):
            raise OptionError(f"negative terms can only be kept under weights of 1, got {self.weights}; choose clamp or null")
        if not self.weights or not all(0 <= weight < math.inf for weight in self.weights):
            raise OptionError(f"weights must be one number or more, none negative, got {self.weights}")
        smallest_range, largest_range = _RANGES
        is_sound = all(_SMALLEST_CONSTANT <= constant < math.inf for constant in (self.c1, self.c2))
        if not smallest_range <= self.data_range <= largest_range or not is_sound:
            raise OptionError(
                f"data_range is {self.data_range:g}, C1 {self.c1:g} and C2 {self.c2:g}; float32 has room for squares of samples"
                f" if data_range lies between {smallest_range:g} and {largest_range:g} and C1 and C2 are"
                f" {_SMALLEST_CONSTANT:g} or more: scale the images"
            )
        scales = len(self.weights)
        smallest = 2 * self.padding.margin + 1 if scales == 1 else len(GAUSSIAN)
        if min(self.sizes[-1]) < smallest:
            needed = (smallest - 1) * 2 ** (scales - 1) + 1
            raise FrameError(
                f"images of {self.width}x{self.height} are too small: {scales} scale{'s' * (scales > 1)} with"
                f" padding {self.padding.value!r} need {needed}x{needed} at least; choose fewer weights or larger images"
            )

    @property
    def sizes(self) -> tuple[tuple[int, int], ...]:
        """Return (height, width) of each scale; each is half of the previous one, rounded up."""
        sizes = [(self.height, self.width)]
        for _ in self.weights[1:]:
            height, width = sizes[-1]
            sizes.append(((height + 1) // 2, (width + 1) // 2))
        return tuple(sizes)

    @property
    def windows(self) -> tuple[int, ...]:
        """Return the number of windows of each scale."""
        margin = 2 * self.padding.margin
        return tuple((height - margin) * (width - margin) for height, width in self.sizes)


Chosen = TypeVar("Chosen", bound=Enum)

_BY_WORD: dict[Any, dict[str, Any]] = {
    kind: {choice.value: choice for choice in kind if choice is not Negative.KEEP} for kind in (Padding, Pyramid, Negative)
}
# torch.compile, which traces `chosen`, cannot go through the members of an Enum in Python 3.12 and later.


def chosen(kind: type[Chosen], text: str) -> Chosen:
    """Return the choice with the given name, which users may choose. Raises OptionError for any other name."""
    choice: Chosen | None = _BY_WORD[kind].get(text) if isinstance(text, str) else None
    if choice is None:
        raise OptionError(f"{kind.__name__.lower()} is {text!r}; {' or '.join(_BY_WORD[kind])} is possible")
    return choice


def constants(data_range: float, k: Sequence[float] = (0.01, 0.03)) -> dict[str, Any]:
    """Return data_range, c1 and c2 of `Loss` from the range of the samples: (K1 range)^2 and (K2 range)^2."""
    data_range, k = real_number("data_range", data_range), real_numbers("K", k)
    if len(k) != 2:
        raise OptionError(f"K is {k}; two numbers, K1 and K2, are needed")
    if any(not value > 0 for value in (data_range, *k)):
        raise OptionError(f"data_range, K1 and K2 must be numbers above 0, got {data_range!r}, {k[0]!r} and {k[1]!r}")
    c1, c2 = (scaled * scaled for scaled in (data_range * factor for factor in k))  # a power would raise OverflowError
    return {"c1": c1, "c2": c2, "data_range": data_range}


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
