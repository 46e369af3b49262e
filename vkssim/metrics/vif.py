"""Twin of vif, libvmaf's integer extractor (`integer_vif.c`), by stage: every integer equals that of its C code.

The metric is that of H. R. Sheikh, A. C. Bovik, "Image information and visual quality", IEEE TIP 2006, in its form for pixels.
For the next scale, a plane is filtered by that scale's taps and halved:

    planes ──► filter_columns ──► moments ──► information ──► sums ──► num, den
      │
      └──► halve ──► the planes of the next scale

Means are 256 times the samples of 8 bits, variances 65536 times. The border is reflected, and the edge sample is not repeated.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import FrameError
from ..shaders.constants import VIF_FILTERS, VIF_NOISE, VIF_SMALLEST_SIDE

UInt32Plane = npt.NDArray[np.uint32]
Int32Plane = npt.NDArray[np.int32]
IntegerPlane = npt.NDArray[np.uint8] | npt.NDArray[np.uint16]
"""(H, W) samples of 8 to 16 bits."""

VIF_SCALES = len(VIF_FILTERS)
GAIN_LIMIT = 100.0
"""The default of vif_enhn_gain_limit."""

_LOG_STEPS = 2048  # of the logarithms, a unit


def weighted_sums(plane: npt.NDArray[Any], taps: tuple[int, ...], axis: int) -> npt.NDArray[Any]:
    """Return the sums of taps times samples along an axis, in the type of the plane, with a reflected border.

    Samples -1 and n are samples 1 and n - 2: the edge sample is not repeated. Needs more than `len(taps) // 2` samples.
    """
    reach = len(taps) // 2
    padded = np.pad(plane, [(reach, reach) if side == axis else (0, 0) for side in range(2)], mode="reflect")
    count = plane.shape[axis]
    total = np.zeros_like(plane)
    for place, tap in enumerate(taps):
        samples = padded[:, place : place + count] if axis else padded[place : place + count]
        total += samples * plane.dtype.type(tap)
    return total


def _rounded(sums: npt.NDArray[np.uint64], shift: int) -> npt.NDArray[np.uint64]:
    return (sums + np.uint64((1 << shift) >> 1)) >> np.uint64(shift)


class Columns(NamedTuple):
    """Two planes, their squares and their product, filtered along the columns: each (H, W) uint32.

    Both means are below 2^16. At scale 0 they are 256 times the samples of 8 bits, later the samples themselves.
    """

    mean1: UInt32Plane
    mean2: UInt32Plane
    square1: UInt32Plane
    square2: UInt32Plane
    product: UInt32Plane


def filter_columns(reference: IntegerPlane, distorted: IntegerPlane, bits: int, scale: int) -> Columns:
    """Return the filtered columns of two (H, W) planes: samples of `bits` at scale 0, of 16 bits later.

    The sums of means are below 2^32. Those of squares are below 2^32 for 8 bits, else below 2^48 before their shift.
    """
    first, second = reference.astype(np.uint64), distorted.astype(np.uint64)
    shift, shift_of_squares = (bits, 2 * (bits - 8)) if scale == 0 else (16, 16)
    planes = (first, second, first * first, second * second, first * second)
    shifts = (shift, shift, shift_of_squares, shift_of_squares, shift_of_squares)
    sums = (weighted_sums(plane, VIF_FILTERS[scale], axis=0) for plane in planes)
    return Columns(*(_rounded(total, bits).astype(np.uint32) for total, bits in zip(sums, shifts, strict=True)))


class Moments(NamedTuple):
    """Variances and the covariance of the window around each sample, 65536 times: each (H, W) int32, magnitudes below 2^31.

    `variance2` is at least 0. `variance1` and `covariance` may be negative by rounding.
    """

    variance1: Int32Plane
    variance2: Int32Plane
    covariance: Int32Plane


def moments(columns: Columns, scale: int) -> Moments:
    """Return the moments of filtered columns.

    The sums of means are below 2^32, and their products below 2^64; the sums of squares are below 2^48.
    """
    mean1, mean2, square1, square2, product = (
        weighted_sums(plane.astype(np.uint64), VIF_FILTERS[scale], axis=1) for plane in columns
    )

    def difference(sums: npt.NDArray[np.uint64], one: npt.NDArray[np.uint64], two: npt.NDArray[np.uint64]) -> Int32Plane:
        return (_rounded(sums, 16).astype(np.int64) - _rounded(one * two, 32).astype(np.int64)).astype(np.int32)

    variance2 = difference(square2, mean2, mean2)
    return Moments(difference(square1, mean1, mean1), np.maximum(variance2, np.int32(0)), difference(product, mean1, mean2))


@cache
def log_table() -> npt.NDArray[np.int64]:
    """Return libvmaf's logarithms, (65536,) int64: 2048 log2(i), from i = 32768; entries below are 0.

    log2 is rounded to float32 first, and a half is rounded up. In doubles 38 entries would differ.
    """
    table = np.zeros(1 << 16, np.int64)
    leading = np.arange(1 << 15, 1 << 16)
    table[leading] = np.floor(np.log2(leading).astype(np.float32).astype(np.float64) * _LOG_STEPS + 0.5)
    return table


def logarithms(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return 2048 log2 of integers from 2^17 to 2^52, by the table of their 16 leading bits, int64."""
    shift = np.frexp(values.astype(np.float64))[1].astype(np.int64) - 16
    result: npt.NDArray[np.int64] = log_table()[values >> shift] + _LOG_STEPS * shift
    return result


class Information(NamedTuple):
    """The terms of each window, each (H, W) int64.

    If the variance of the reference is below that of the noise, `flat` is 1, `loss` is the variance of the distorted plane,
    below 2^31, and the logarithms are 0. Else `flat` and `loss` are 0. Both logarithms are in units of 1/2048, below 2^15.
    """

    numerator: npt.NDArray[np.int64]
    denominator: npt.NDArray[np.int64]
    loss: npt.NDArray[np.int64]
    flat: npt.NDArray[np.int64]


def information(terms: Moments, gain_limit: float = GAIN_LIMIT) -> Information:
    """Return the information of each window, with the gain of the distorted plane held to `gain_limit`, 1 to 100.

    With gain g = cov / v1, the denominator is log2(1 + v1 / noise), and the numerator log2(1 + g^2 v1 / (v2 - g cov + noise)).
    `gain_terms` computes both terms in doubles. The limit does not apply to the gain in v2 - g cov.
    """
    variance1, variance2, covariance = (plane.astype(np.int64) for plane in terms)
    textured = variance1 >= VIF_NOISE
    denominator = np.zeros_like(variance1)
    denominator[textured] = logarithms(variance1[textured] + VIF_NOISE) - 17 * _LOG_STEPS

    seen = textured & (covariance > 0) & (variance2 > 0)
    numerator = np.zeros_like(variance1)
    rest, signal = gain_terms(variance1[seen], variance2[seen], covariance[seen], gain_limit)
    numerator[seen] = logarithms(signal + rest + VIF_NOISE) - logarithms(rest + VIF_NOISE)
    return Information(numerator, denominator, np.where(textured, 0, variance2), (~textured).astype(np.int64))


def gain_terms(
    variance1: npt.NDArray[np.int64], variance2: npt.NDArray[np.int64], covariance: npt.NDArray[np.int64], gain_limit: float
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return v2 - g cov, at least 0, and g^2 v1 with the limited g, both truncated, int64, of windows with positive moments."""
    gain = covariance / (variance1 + 65536 * 1e-10)
    rest = np.maximum((variance2 - gain * covariance).astype(np.int64), 0)
    gain = np.minimum(gain, gain_limit)
    return rest, (gain * gain * variance1).astype(np.int64)


class VifSums(NamedTuple):
    """The sums of the terms of all windows of a scale, which are whole numbers."""

    numerator: int
    denominator: int
    loss: int
    flat: int


def information_sums(terms: Information) -> VifSums:
    """Return the sums of the terms."""
    return VifSums(*(int(term.sum()) for term in terms))


def quotients(sums: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """Return num and den of scales, (..., 2) float32, from their `VifSums`, (..., 4)."""
    values = np.asarray(sums, np.float64)
    terms = values[..., :2] / _LOG_STEPS
    terms[..., 0] += values[..., 3] - values[..., 2] / 16384 / 65025
    terms[..., 1] += values[..., 3]
    return terms.astype(np.float32)


def halve(plane: IntegerPlane, bits: int, scale: int) -> npt.NDArray[np.uint16]:
    """Return the plane of the next scale: (H, W) of `scale` to (H // 2, W // 2) uint16, by the taps of the next scale.

    All sums are below 2^32. The samples of scale 1 and later have 16 bits, whatever `bits` are.
    """
    taps = VIF_FILTERS[scale + 1]
    columns = _rounded(weighted_sums(plane.astype(np.uint64), taps, axis=0), bits if scale == 0 else 16)
    filtered = _rounded(weighted_sums(columns, taps, axis=1), 16).astype(np.uint16)
    height, width = plane.shape
    return filtered[: height // 2 * 2 : 2, : width // 2 * 2 : 2]


def vif_sums(reference: IntegerPlane, distorted: IntegerPlane, bits: int, *, gain_limit: float = GAIN_LIMIT) -> list[VifSums]:
    """Return the sums of the four scales of two (H, W) planes of `bits`, 8 to 16.

    Raises FrameError below 16x16: libvmaf then reads rows outside the plane of a scale.
    """
    height, width = reference.shape
    check_size(width, height)
    sums = []
    for scale in range(VIF_SCALES):
        if scale:
            reference, distorted = halve(reference, bits, scale - 1), halve(distorted, bits, scale - 1)
        terms = moments(filter_columns(reference, distorted, bits, scale), scale)
        sums.append(information_sums(information(terms, gain_limit)))
    return sums


def check_size(width: int, height: int) -> None:
    """Raise FrameError for a plane that is too small."""
    if min(width, height) < VIF_SMALLEST_SIDE:
        raise FrameError(f"vif needs {VIF_SMALLEST_SIDE}x{VIF_SMALLEST_SIDE} at least, got {width}x{height}")


def vif_scores(sums: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """Return the scores of scales, (...) float32, from their `VifSums`, (..., 4): num / den in float32."""
    terms = quotients(sums)
    scores: npt.NDArray[np.float32] = terms[..., 0] / terms[..., 1]
    return scores
