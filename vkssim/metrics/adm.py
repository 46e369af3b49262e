"""Twin of adm, libvmaf's integer extractor (`integer_adm.c`), by stage: every integer equals that of its C code.

The metric is that of S. Li, F. Zhang, L. Ma, K. N. Ngan, "Image quality assessment by separately evaluating detail losses and
additive impairments", IEEE TMM 2011. Each scale is:

    planes ──► wavelet ──► decouple ──► weigh ──► threshold ──► masked_sums ──► num
      │           │           └── restored ────────────────────────┘
      │           └── bands of the reference ──► band_sums ──► den
      └──► approximation ──► the planes of the next scale

aim is the same with restored and additive bands exchanged. Bands are (3, H, W) int32: horizontal (high-pass along the columns),
vertical (high-pass along the rows), diagonal. Their magnitudes are LARGEST[scale] at most.

A border repeats the edge sample at the bottom and at the right, and does not repeat it at the top and at the left.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import FrameError
from ..shaders.constants import (
    ADM_COS_SQUARED,
    ADM_FIFTEENTH,
    ADM_HIGH_PASS,
    ADM_LOW_PASS,
    ADM_SCALES,
    ADM_SMALLEST_SIDE,
    ADM_THIRTIETH,
)
from ..types import Doubles
from .adm_csf import DEFAULT_VIEWING, Viewing, Weights, band_weights

Int64s = npt.NDArray[np.int64]
Int32Plane = npt.NDArray[np.int32]
Bands = npt.NDArray[np.int32]
"""(3, H, W): the horizontal, the vertical and the diagonal band."""

GAIN_LIMIT = 100.0
"""The default of adm_enhn_gain_limit."""
NOISE_WEIGHT = 0.03125
"""The default of adm_noise_weight."""
DLM_WEIGHT = 0.5
"""The default of adm_dlm_weight."""

LARGEST = (22_931, 2_103_300_000, 1_471_900_000, 2_060_000_000)
"""The magnitudes of the bands and of the approximation of each scale are at most these."""

_DOWN_SHIFTS = (None, 0, 16, 16)  # of the vertical pass of each scale; at scale 0, the bits of a sample
ACROSS_SHIFTS = (16, 15, 16, 15)  # of the horizontal pass
_ONE = 1 << 15  # a gain of 1
COS_SQUARED = ADM_COS_SQUARED / (1 << 24)  # of the angle below which contrast counts as enhanced


def _rounded(values: Any, shift: Any) -> Any:
    """Return values divided by 2^shift, a half rounded up."""
    return (values + ((1 << shift) >> 1)) >> shift


def _column(values: tuple[int, int, int]) -> Int64s:
    return np.array(values, np.int64)[:, None, None]


class Level(NamedTuple):
    """A plane, halved: its approximation (H, W) and its bands (3, H, W), both int32."""

    approximation: Int32Plane
    bands: Bands


def tap_indices(length: int) -> Int64s:
    """Return the samples that the four taps of each output read, (4, outputs) int64, for (length + 1) // 2 outputs."""
    index = 2 * np.arange((length + 1) // 2) + np.arange(-1, 3)[:, None]
    index = np.where(index < 0, -index, index)
    return np.where(index >= length, 2 * length - 1 - index, index)


def wavelet(plane: npt.NDArray[Any], scale: int, bits: int = 8) -> Level:
    """Return the next level of an (H, W) plane, each side halved and rounded up.

    At scale 0 the plane has unsigned samples of `bits`, else it is the approximation of the scale before. Every sum of scale 0,
    and of the vertical pass of scale 1, fits in int32: libvmaf's partial sums of 16 bits exceed it and come back. The others
    have 48 bits.
    """
    shift = _DOWN_SHIFTS[scale]
    if shift is None:
        plane = plane.astype(np.int64) - (1 << (bits - 1))  # the taps of the high-pass sum to 0
        shift = bits
    rows = plane.astype(np.int64)[tap_indices(plane.shape[0])]
    low, high = (_rounded(np.tensordot(taps, rows, 1), shift) for taps in (ADM_LOW_PASS, ADM_HIGH_PASS))

    columns = tap_indices(plane.shape[1])

    def across(source: Int64s, taps: tuple[int, ...]) -> Int32Plane:
        total = sum(tap * source[:, column] for tap, column in zip(taps, columns, strict=True))
        result: Int32Plane = _rounded(total, ACROSS_SHIFTS[scale]).astype(np.int32)
        return result

    bands = np.stack([across(high, ADM_LOW_PASS), across(low, ADM_HIGH_PASS), across(high, ADM_HIGH_PASS)])
    return Level(across(low, ADM_LOW_PASS), bands)


class Decoupled(NamedTuple):
    """The bands of the distorted plane, as a part of the reference and an addition. Both add up to the bands."""

    restored: Bands
    additive: Bands


def gains(reference: Bands, distorted: Bands) -> Int64s:
    """Return distorted / reference in units of 1/32768, held to 0 ... 32768; 32768 if the reference is 0.

    The divisor is the 15 leading bits of the reference, rounded, and the quotient is taken by its reciprocal 2^30 // divisor.
    """
    magnitude = np.abs(reference.astype(np.int64))
    shift = np.maximum(np.frexp(magnitude.astype(np.float64))[1].astype(np.int64) - 15, 0)
    divisor = _rounded(magnitude, shift)
    reciprocal = (1 << 30) // np.maximum(divisor, 1)
    quotient = _rounded(np.sign(reference) * reciprocal * distorted, 15 + shift)
    return np.where(reference == 0, _ONE, np.clip(quotient, 0, _ONE))


def nearly_parallel(reference: Bands, distorted: Bands) -> npt.NDArray[np.bool_]:
    """Return (H, W): if the gradients (horizontal, vertical) of both planes differ by less than a degree.

    The three products are below 2^31 at scale 0 and below 2^63 later. They are rounded to float32, and compared in double.
    """
    h1, v1 = reference[:2].astype(np.int64)
    h2, v2 = distorted[:2].astype(np.int64)
    inner, square1, square2 = (
        sums.astype(np.float32).astype(np.float64) / 4096.0
        for sums in (h1 * h2 + v1 * v2, h1 * h1 + v1 * v1, h2 * h2 + v2 * v2)
    )
    parallel: npt.NDArray[np.bool_] = (inner >= 0) & (inner * inner >= COS_SQUARED * square1 * square2)
    return parallel


def decouple(reference: Bands, distorted: Bands, gain_limit: float = GAIN_LIMIT) -> Decoupled:
    """Return the decoupled bands. If the gradients are parallel, contrast may be enhanced by up to `gain_limit`, 1 to 100.

    A restored band has the sign of its reference, or is 0. Without enhancement it is not larger than either band, but for the
    rounding of the divisor.
    """
    gain = gains(reference, distorted)
    restored = _rounded(gain * reference, 15)
    enhanced = restored * gain_limit
    enhanced = np.where(reference > 0, np.minimum(enhanced, distorted), np.maximum(enhanced, distorted))
    enhancing = nearly_parallel(reference, distorted) & (gain > 0) & (reference != 0)
    restored = np.where(enhancing, np.trunc(enhanced).astype(np.int64), restored).astype(np.int32)
    return Decoupled(restored, distorted - restored)


def weigh(bands: Bands, weights: Weights, scale: int) -> Bands:
    """Return bands times their weights: 2^6 times at scale 0, in 16 bits, 2^4 times later. The products need 32 and 63 bits."""
    products = bands.astype(np.int64) * _column(weights.integers)
    if scale:
        rounded: Bands = _rounded(products, 28).astype(np.int32)
        return rounded
    shifted: Bands = ((products + _column((16384, 16384, 65535))) >> _column((15, 15, 17))).astype(np.int16).astype(np.int32)
    return shifted


def threshold(weighted: Bands, scale: int) -> Int32Plane:
    """Return the masking threshold of each place, (H, W) int32: a thirtieth of its eight neighbours and a fifteenth of itself.

    The three bands are added. At scale 0 each term has 16 bits and wraps, which a fifteenth does above 15360. Later a term is
    the high word of a product less 2^31, because libvmaf's half does not fit its int32: so a term of 0 is -1.
    """
    magnitude = np.abs(weighted.astype(np.int64))
    factors = (ADM_THIRTIETH[scale > 0], ADM_FIFTEENTH[scale > 0])
    if scale:
        outer, inner = (((factor * magnitude - (1 << 31)) >> 32).sum(axis=0) for factor in factors)
    else:
        outer, inner = (_rounded(factor * magnitude, 12).astype(np.int16).sum(axis=0, dtype=np.int64) for factor in factors)

    height, width = outer.shape
    padded = np.pad(np.pad(outer, ((1, 0), (1, 0)), mode="reflect"), ((0, 1), (0, 1)), mode="edge")
    lines = padded[:height] + padded[1 : height + 1] + padded[2:]
    squares = lines[:, :width] + lines[:, 1 : width + 1] + lines[:, 2:]
    result: Int32Plane = (squares - outer + inner).astype(np.int32)
    return result


class Window(NamedTuple):
    """The part of a scale that counts: a tenth of each side is left out."""

    rows: slice
    columns: slice
    area: int


def window(height: int, width: int) -> Window:
    """Return the part of the bands that counts."""
    top, left = (int(side * 0.1 - 0.5) for side in (height, width))
    return Window(slice(top, height - top), slice(left, width - left), (height - 2 * top) * (width - 2 * left))


class Shifts(NamedTuple):
    """The powers of two by which cubes of the three bands and sums of rows are divided, and what is left of the unit."""

    cubes: tuple[int, int, int]
    rows: int
    points: tuple[int, int, int]


def mask_shifts(height: int, width: int, scale: int) -> Shifts:
    """Return the shifts of masked bands of this size."""
    rows, cube = (height - 1).bit_length(), (width - 1).bit_length()
    if scale:
        cubes, units = (cube, cube, cube), ((45, 39, 36)[scale - 1],) * 3
    else:
        cubes, units = (cube - 4, cube - 4, cube - 3), (52, 52, 57)
    first, second, third = (unit - cube - rows for unit, cube in zip(units, cubes, strict=True))
    return Shifts(cubes, rows, (first, second, third))


def band_shifts(height: int, width: int, scale: int) -> Shifts:
    """Return the shifts of bands of this size, of which the window counts."""
    inner = window(height, width)
    if scale:
        rows, cube = ((side.stop - side.start - 1).bit_length() for side in (inner.rows, inner.columns))
        unit = (32, 27, 23)[scale - 1]
    else:
        rows, cube, unit = max((inner.area - 1).bit_length() - 20, 0), 0, 18
    point = unit - cube - rows
    return Shifts((cube, cube, cube), rows, (point, point, point))


class Sums(NamedTuple):
    """A sum of each band, (3,) int64, and the powers of two that it must be divided by."""

    values: Int64s
    points: tuple[int, int, int]


def _add_rows(cubes: Int64s, shift: int) -> Int64s:
    """Each row is rounded before the rows are added."""
    sums: Int64s = _rounded(cubes.sum(axis=2), shift).sum(axis=1)
    return sums


def masked_sums(bands: Bands, weights: Weights, thresholds: Int32Plane, scale: int) -> Sums:
    """Return the sums of the cubes of weighted bands above the threshold.

    Weighted bands and shifted squares have 31 bits, squares and cubes 62 bits before their shifts, and a row's sum 62 bits.
    """
    height, width = thresholds.shape
    rows, columns, _ = window(height, width)
    shifts = mask_shifts(height, width, scale)
    weighted = bands[:, rows, columns].astype(np.int64) * _column(weights.integers)
    limits = np.broadcast_to(thresholds[rows, columns].astype(np.int64), weighted.shape)
    if scale:
        weighted = _rounded(weighted, 28)
        shift_of_squares = (30, 30, 30)
    else:
        limits = (limits << _column((10, 10, 12))).astype(np.int32).astype(np.int64)
        shift_of_squares = (29, 29, 30)

    excess = np.maximum((np.abs(weighted) - limits).astype(np.int32), 0).astype(np.int64)
    squares = _rounded(excess * excess, _column(shift_of_squares)).astype(np.int32)
    cubes = _rounded(squares * excess, _column(shifts.cubes))
    return Sums(_add_rows(cubes, shifts.rows), shifts.points)


def band_sums(bands: Bands, scale: int) -> Sums:
    """Return the sums of the cubes of bands, without weights. A sum needs 62 bits."""
    height, width = bands.shape[1:]
    rows, columns, _ = window(height, width)
    shifts = band_shifts(height, width, scale)
    magnitude = np.abs(bands[:, rows, columns].astype(np.int64))
    if scale:
        shift_of_squares = (31, 30, 31)[scale - 1]
        squares = (magnitude * magnitude + (1 << shift_of_squares)) >> shift_of_squares  # libvmaf adds 1 here, not a half
        cubes = _rounded(squares * magnitude, shifts.cubes[0])
    else:
        cubes = magnitude**3
    return Sums(_add_rows(cubes, shifts.rows), shifts.points)


def _cube_roots(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """In double, so that every machine rounds alike: glibc's powf rounds about one root in a thousand the other way."""
    singles = values.astype(np.float32).astype(np.float64)
    roots: npt.NDArray[np.float32] = (singles ** float(np.float32(1) / np.float32(3))).astype(np.float32)
    return roots


def _sum_of_bands(roots: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Add (..., 3) in float32, one after the other."""
    total: npt.NDArray[np.float32] = roots[..., 0] + roots[..., 1] + roots[..., 2]
    return total


def _factors(points: tuple[int, int, int], weights: Weights | None = None) -> npt.NDArray[np.float64]:
    """Return the (3,) factors of sums with these points, which may be weighted. A power of two changes no rounding."""
    cubes = 1.0 if weights is None else np.array(weights.floats) ** 3
    factors: npt.NDArray[np.float64] = cubes / 2.0 ** np.array(points)
    return factors


def adm_terms(
    reference: npt.NDArray[Any],
    distorted: npt.NDArray[Any],
    bits: int,
    *,
    gain_limit: float = GAIN_LIMIT,
    noise_weight: float = NOISE_WEIGHT,
    viewing: Viewing = DEFAULT_VIEWING,
    skip_aim: bool = False,
    skip_scale0: bool = False,
) -> npt.NDArray[np.float32]:
    """Return num, den and num of aim of the four scales, (4, 3) float32, of two (H, W) planes of `bits`, 8 to 16.

    Raises FrameError below 33x33, because libvmaf then reads outside the planes, and OptionError as `band_weights`.
    """
    height, width = reference.shape
    sums = adm_sums(reference, distorted, bits, gain_limit=gain_limit, viewing=viewing, skip_aim=skip_aim)
    terms = terms_of_sums(sums[None], height, width, noise_weight=noise_weight, viewing=viewing)
    if skip_scale0:
        terms[0, 0] = 0.0, 1e-10, 0.0
    of_frame: npt.NDArray[np.float32] = terms[0]
    return of_frame


def adm_sums(
    reference: npt.NDArray[Any],
    distorted: npt.NDArray[Any],
    bits: int,
    *,
    gain_limit: float = GAIN_LIMIT,
    viewing: Viewing = DEFAULT_VIEWING,
    skip_aim: bool = True,
) -> Int64s:
    """Return the sums of masked restored bands and of bands of the reference, (4, 2, 3) int64: all that adm2 depends on.

    Without `skip_aim`, (4, 3, 3): those of masked additive bands too. Raises as `adm_terms`.
    """
    sums = []
    for scale, (first, second) in enumerate(_bands_of_scales(reference, distorted, bits)):
        weights = band_weights(scale, viewing)
        restored, additive = decouple(first, second, gain_limit)
        masked = masked_sums(restored, weights, threshold(weigh(additive, weights, scale), scale), scale)
        of_scale = [masked, band_sums(first, scale)]
        if not skip_aim:
            of_scale.append(masked_sums(additive, weights, threshold(weigh(restored, weights, scale), scale), scale))
        sums.append([part.values for part in of_scale])
    return np.array(sums)


@cache
def _pooling(
    height: int, width: int, noise_weight: float, viewing: Viewing
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float32]]:
    """Return the factors of the sums of frames of this size, (4, 3, 3), and the cube roots of the noise, (4, 3, 1)."""
    factors, noise = np.empty((ADM_SCALES, 3, 3)), np.zeros((ADM_SCALES, 3, 1))
    for scale in range(ADM_SCALES):
        height, width = (height + 1) // 2, (width + 1) // 2
        factors[scale, 0::2] = _factors(mask_shifts(height, width, scale).points)
        factors[scale, 1] = _factors(band_shifts(height, width, scale).points, band_weights(scale, viewing))
        noise[scale, :2] = window(height, width).area * noise_weight
    return factors, _cube_roots(noise)


def terms_of_sums(
    sums: Int64s, height: int, width: int, *, noise_weight: float = NOISE_WEIGHT, viewing: Viewing = DEFAULT_VIEWING
) -> npt.NDArray[np.float32]:
    """Return the terms of frames of this size, (frames, 4, 3), from their (frames, 4, 2 or 3, 3) sums; see `adm_sums`.

    A term is the sum over the bands of the cube roots of a sum and of the noise, which aim lacks. Those of aim are 0 without
    its sums.
    """
    factors, noise = _pooling(height, width, noise_weight, viewing)
    parts = sums.shape[2]
    values = sums.astype(np.float64)
    values[:, 1:, 0::2] = sums[:, 1:, 0::2].astype(np.float32)
    terms = np.zeros((len(sums), ADM_SCALES, 3), np.float32)
    terms[..., :parts] = _sum_of_bands(_cube_roots(values * factors[:, :parts]) + noise[:, :parts])
    return terms


def check_size(width: int, height: int) -> None:
    """Raise FrameError for a plane that is too small."""
    if min(width, height) < ADM_SMALLEST_SIDE:
        raise FrameError(f"adm needs {ADM_SMALLEST_SIDE}x{ADM_SMALLEST_SIDE} at least, got {width}x{height}")


def _bands_of_scales(reference: npt.NDArray[Any], distorted: npt.NDArray[Any], bits: int) -> Iterator[tuple[Bands, Bands]]:
    height, width = reference.shape
    check_size(width, height)
    for scale in range(ADM_SCALES):
        (reference, first), (distorted, second) = (wavelet(plane, scale, bits) for plane in (reference, distorted))
        yield first, second


class Scores(NamedTuple):
    """The scores of frames, as libvmaf names them: (frames,), or single numbers of one frame."""

    adm2: Doubles
    aim: Doubles
    adm3: Doubles
    scales: Doubles
    """adm_scale0 to adm_scale3, (frames, 4)."""


def adm_scores(terms: npt.NDArray[np.float32], pixels: int, *, dlm_weight: float = DLM_WEIGHT, min_val: float = 0.0) -> Scores:
    """Return the scores of (frames, 4, 3) or (4, 3) terms, in double, of frames of `pixels` samples.

    adm2 is num / den. adm3 is the mean of adm2, by `dlm_weight`, and of 1 - aim, at least `min_val`. Without noise, a flat
    reference has adm2 of 1 and aim of 0; libvmaf's aim is undefined there, and its scales are too.
    """
    limit = 1e-10 * pixels / (1920.0 * 1080.0)
    doubles = terms.astype(np.float64)
    sums = doubles.cumsum(axis=-2)[..., -1, :]  # one scale after the other, as libvmaf adds
    num, den = (np.where(value < limit, 0.0, value) for value in (sums[..., 0], sums[..., 1]))
    adm2, aim = _quotient(num, den, 1.0), _quotient(sums[..., 2], den, 0.0)
    adm3 = np.maximum(adm2 * dlm_weight + (1 - aim) * (1 - dlm_weight), min_val)
    return Scores(adm2, aim, adm3, _quotient(doubles[..., 0], doubles[..., 1], math.nan))


def _quotient(num: Doubles, den: Doubles, otherwise: float) -> Doubles:
    """Return num / den, and another number where den is 0."""
    return np.divide(num, den, out=np.full_like(den, otherwise), where=den != 0)
