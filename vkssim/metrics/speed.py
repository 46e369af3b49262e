"""Twin of speed_chroma, libvmaf's extractor (`speed.c`): how much information the distorted plane of chroma adds or lacks.

The metric is the spatial part of SpEED-QA: C. G. Bampis, P. Gupta, R. Soundararajan, A. C. Bovik, "SpEED-QA: spatial efficient
entropic differencing for image and video quality", IEEE SPL 2017. A plane goes through:

    samples - 128 ──► scale ──► blur, every 16th sample ──► less a local mean ──► blocks of 5x5
                                                                                    │
        covariance of 25 places ──► eigenvalues ──┬──► entropies of blocks ◄────────┤
                  └───────────► solve ────────────┴──► variances of blocks ◄────────┘

Every sum, and every step of the linear algebra, is rounded to float32 in the order of libvmaf's C code: entropies are sums of
about 100 bits, so that one rounding of a weight is 1e-5 of a score.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import FrameError
from ..types import Doubles, FloatPlane, Samples

Floats = npt.NDArray[np.float32]

BLOCK = 5
PLACES = BLOCK * BLOCK
_SCALES = 4
_STEP = 1 << _SCALES  # of the samples that are kept
SMALLEST_SIDE = _STEP * BLOCK
_SMALL = 1e-6  # of eigenvalues, and of subdiagonals relative to their diagonals
_MAX_ITERATIONS = 500
_ENTROPY_OF_GAUSSIAN = math.log2(2 * math.pi * math.e)

_REFERENCE_SHARES = ((1.0, 0.0), (1.0, 1.0), (0.0, 0.0), (0.5, 0.5), (1.0, 0.5), (1.0, 0.75), (1.0, 0.25))
"""The share of the reference's variance in the weights of the reference and of the distorted plane, by mode."""
WEIGHT_MODES = range(len(_REFERENCE_SHARES))


@dataclass(frozen=True)
class SpeedOptions:
    """The options of speed_chroma, by libvmaf's names without `speed_`, and their defaults."""

    kernelscale: float = 1.0
    prescale: float = 1.0
    prescale_method: str = "nearest"
    sigma_nn: float = 0.29
    nn_floor: float = 0.0
    weight_var_mode: int = 0


# -- planes -----------------------------------------------------------------------------------------------------------


def _scaled_side(side: int, prescale: float) -> int:
    return side if abs(prescale - 1) < 1e-3 else int(side * prescale + 0.5)


def check_size(width: int, height: int, prescale: float = 1.0) -> None:
    """Raise FrameError for a plane that has no block of 5x5 samples after it was scaled."""
    if min(_scaled_side(width, prescale), _scaled_side(height, prescale)) < SMALLEST_SIDE:
        scaled = "" if prescale == 1 else f" after speed_prescale={prescale:g}"
        raise FrameError(f"speed_chroma needs chroma of {SMALLEST_SIDE}x{SMALLEST_SIDE} at least{scaled}, got {width}x{height}")


def _mirrored(index: npt.NDArray[Any], last: int) -> npt.NDArray[np.int64]:
    inner = np.where(index > last, 2 * last - index, index)
    return np.where(index < 0, -index, inner).astype(np.int64)


class _Places(NamedTuple):
    """The two samples between which each scaled sample lies, and its distance from the first, of one axis."""

    first: npt.NDArray[np.int64]
    second: npt.NDArray[np.int64]
    distance: Floats


def _places(length: int, options: SpeedOptions) -> _Places:
    scaled = _scaled_side(length, options.prescale)
    ratio = np.float32(length) / np.float32(scaled)
    if scaled == length or options.prescale_method == "nearest":
        nearest = (np.arange(scaled, dtype=np.float32) * ratio).astype(np.int64)
        return _Places(nearest, nearest, np.zeros(scaled, np.float32))
    place = ((np.arange(scaled) + 0.5) * float(ratio) - 0.5).astype(np.float32)
    first, second = (_mirrored(end(place), length - 1) for end in (np.floor, np.ceil))
    return _Places(first, second, place - first.astype(np.float32))


def scale(plane: FloatPlane, options: SpeedOptions) -> FloatPlane:
    """Return an (H, W) plane scaled by `prescale`, without a filter."""
    (y1, y2, dy), (x1, x2, dx) = (_places(side, options) for side in plane.shape)
    if not dy.any() and not dx.any():
        return plane[y1[:, None], x1]
    one = np.float32(1)
    dy = dy[:, None]
    top, bottom = plane[y1], plane[y2]
    scaled: FloatPlane = (
        (one - dy) * (one - dx) * top[:, x1]
        + (one - dy) * dx * top[:, x2]
        + dy * (one - dx) * bottom[:, x1]
        + dy * dx * bottom[:, x2]
    )
    return scaled


def gaussian(size: int, deviation: float) -> Floats:
    """Return the taps of a Gaussian, (size,) float32, which sum to 1 but for roundings."""
    single = float(np.float32(deviation))
    density = np.float32(1 / (single * math.sqrt(2 * math.pi)))
    places = np.arange(size) - size // 2
    taps = np.exp(-0.5 * places / single * places / single).astype(np.float32) / density
    normalized: Floats = taps / _sum(taps)
    return normalized


def _filter_size(octave: int, kernelscale: float) -> int:
    size = math.ceil(np.float32(((1 << (4 - octave)) + 1) * np.float32(kernelscale)))
    return max(size | 1, 3)


def blur(plane: FloatPlane, taps: Floats, step: int = 1) -> FloatPlane:
    """Return every `step`-th sample of every `step`-th row of an (H, W) plane filtered along the columns, then along the rows.

    The borders mirror without the edge sample.
    """
    for axis in (0, 1):
        last = plane.shape[axis] - 1
        places = np.arange(0, last + 1, step)
        total = np.zeros_like(plane.take(places, axis))
        for number, tap in enumerate(taps):
            total += tap * plane.take(_mirrored(places - len(taps) // 2 + number, last), axis)
        plane = total
    return plane


def wide_taps(options: SpeedOptions) -> Floats:
    """Return the taps of the filter that makes the small plane."""
    size = _filter_size(1, options.kernelscale)
    return gaussian(size, math.sqrt(_SCALES) * size / 5)


def small_size(width: int, height: int, options: SpeedOptions) -> tuple[int, int]:
    """Return the columns and the rows of the small plane."""
    columns, rows = (_scaled_side(side, options.prescale) >> _SCALES for side in (width, height))
    return columns, rows


def small_plane(samples: Samples, bits: int, options: SpeedOptions) -> FloatPlane:
    """Return every 16th sample of every 16th row of an (H, W) plane of `bits`, scaled and blurred, float32."""
    plane = scale(samples.astype(np.float32) / np.float32(1 << (bits - 8)) - np.float32(128), options)
    columns, rows = small_size(samples.shape[1], samples.shape[0], options)
    return blur(plane, wide_taps(options), _STEP)[:rows, :columns]


def mean_taps(options: SpeedOptions) -> Floats:
    """Return the taps of the mean of a sample's neighbours in the small plane."""
    size = _filter_size(_SCALES, options.kernelscale)
    return gaussian(size, float(np.float32(size) / np.float32(5)))


def local_contrast(small: FloatPlane, options: SpeedOptions) -> FloatPlane:
    """Return a small plane less a mean of the neighbours of each sample."""
    contrast: FloatPlane = small - blur(small, mean_taps(options))
    return contrast


Entries = npt.NDArray[np.uint32]
"""A tap of a column or of a row for the kernel that blurs, (..., 4): the two samples between which its place lies, the distance
from the first, and the tap, as bits of float32."""


def small_plane_entries(width: int, height: int, options: SpeedOptions) -> Entries:
    """Return the taps of each column of a small plane, then of each row: (columns + rows, taps, 4)."""
    sides = zip((width, height), small_size(width, height, options), strict=True)
    return np.concatenate(
        [_entries(_places(length, options), _STEP * np.arange(count), wide_taps(options)) for length, count in sides]
    )


def mean_entries(columns: int, rows: int, options: SpeedOptions) -> Entries:
    """Return the taps of the means of each column of a small plane, then of each row: (columns + rows, taps, 4)."""
    sides = (_places(length, SpeedOptions()) for length in (columns, rows))
    return np.concatenate([_entries(places, np.arange(len(places.first)), mean_taps(options)) for places in sides])


def _entries(places: _Places, centres: npt.NDArray[np.int64], taps: Floats) -> Entries:
    index = _mirrored(centres[:, None] - len(taps) // 2 + np.arange(len(taps)), len(places.first) - 1)
    samples = np.stack([places.first[index], places.second[index]], axis=-1).astype(np.uint32)
    weights = np.stack([places.distance[index], np.broadcast_to(taps, index.shape)], axis=-1)
    return np.concatenate([samples, weights.view(np.uint32)], axis=-1)


# -- linear algebra ---------------------------------------------------------------------------------------------------


def _sum(values: Floats) -> np.float32:
    """Add in float32, one after the other."""
    total: np.float32 = np.add.accumulate(values.ravel(), dtype=np.float32)[-1]
    return total


def _dot(first: Floats, second: Floats) -> np.float32:
    return _sum(first * second)


def _norm(values: Floats) -> np.float32:
    norm: np.float32 = np.sqrt(_dot(values, values))
    return norm


def _product(first: Floats, second: Floats) -> Floats:
    """Return the product of two matrices, each entry added in the order of the columns of the first."""
    total = np.zeros((first.shape[0], second.shape[1]), np.float32)
    for column, row in zip(first.T, second, strict=True):
        total += column[:, None] * row
    return total


def covariance(plane: FloatPlane) -> Floats:
    """Return the covariances of the 25 places of a block, (25, 25) float32, over all blocks that fit into the (H, W) plane."""
    shape = (plane.shape[0] - BLOCK + 1, plane.shape[1] - BLOCK + 1)
    parts = [plane[y : y + shape[0], x : x + shape[1]] for y in range(BLOCK) for x in range(BLOCK)]
    count = shape[0] * shape[1]
    centred = np.array([part.ravel().astype(np.float64) - float(_sum(part) / np.float32(count)) for part in parts])
    matrix = np.empty((PLACES, PLACES), np.float32)
    for place, samples in enumerate(centred):
        sums = np.add.accumulate(samples * centred[: place + 1], axis=1)[:, -1]
        matrix[place, : place + 1] = matrix[: place + 1, place] = sums / count
    return matrix


def _tridiagonal(matrix: Floats) -> tuple[Floats, Floats]:
    """Return the diagonal and the subdiagonal to which Householder's reflections reduce a symmetric matrix."""
    reduced = matrix.copy()
    size = len(reduced)
    for column in range(size - 2):
        rest = slice(column + 1, size)
        vector = reduced[rest, column].copy()
        norm = _norm(vector[1:])
        if norm == 0:
            continue
        alpha = vector[0]
        beta = np.float32(-1 if alpha >= 0 else 1) * np.sqrt(alpha * alpha + norm * norm)
        tau = (beta - alpha) / beta
        if alpha != beta:
            vector /= alpha - beta
        vector[0] = beta  # the subdiagonal; the vector itself begins with 1
        reduced[rest, column] = vector
        vector[0] = 1
        inner = reduced[rest, rest]
        image = np.add.accumulate(tau * inner * vector, axis=1, dtype=np.float32)[:, -1]
        image = image + np.float32(-0.5 * float(tau) * float(_dot(image, vector))) * vector
        inner -= image[:, None] * vector + vector[:, None] * image
    return np.diagonal(reduced).copy(), np.diagonal(reduced, -1).copy()


def _drop_small(diagonal: Floats, below: Floats) -> None:
    sizes = (np.abs(diagonal[:-1]) + np.abs(diagonal[1:])).astype(np.float64)
    below[np.abs(below) < _SMALL * sizes] = 0


def _rotation(first: np.float32, second: np.float32) -> tuple[np.float32, np.float32]:
    """Return the cosine and the sine of Givens' rotation that makes the second number 0."""
    if second == 0:
        return np.float32(1), np.float32(0)
    swapped = abs(second) > abs(first)
    slope = -first / second if swapped else -second / first
    larger = np.float32(1.0 / math.sqrt(np.float32(1) + slope * slope))
    smaller = larger * slope
    return (smaller, larger) if swapped else (larger, smaller)


def _shift(diagonal: Floats, below: Floats) -> np.float32:
    """Return the eigenvalue of the last 2x2 entries that is closer to the last one: Wilkinson's shift."""
    before, last, side = diagonal[-2], diagonal[-1], below[-1]
    half = np.float32((before - last) / np.float32(2))
    if half == 0:
        return np.float32(last - abs(side))
    root = np.sqrt(half * half + side * side)
    return np.float32(last - side * (side / (half + root)) if half > 0 else last + side * (side / (root - half)))


def _qr_step(diagonal: Floats, below: Floats) -> None:
    """Rotate a tridiagonal matrix once, in place, so that its subdiagonal becomes smaller."""
    size = len(diagonal)
    shift = _shift(diagonal, below)
    if _SMALL * float(abs(shift)) > float(abs(diagonal[0]) + abs(below[0])):
        shift = np.float32(0)
    x, z = diagonal[0] - shift, below[0]
    before = bulge = np.float32(0)
    a, b, after = diagonal[0], below[0], diagonal[1]
    b_after = below[1] if size > 2 else np.float32(0)
    for k in range(size - 1):
        c, s = _rotation(x, z)
        if k > 0:
            below[k - 1] = c * before - s * bulge
        diagonal[k] = c * (c * a - s * b) + s * (s * after - c * b)
        before = c * (s * a + c * b) - s * (s * b + c * after)
        a = s * (s * a + c * b) + c * (s * b + c * after)
        bulge, b = -s * b_after, c * b_after
        if k < size - 2:
            after = diagonal[k + 2]
            below[k + 1] = b
        if k < size - 3:
            b_after = below[k + 2]
        x, z = before, bulge
    diagonal[size - 1] = a
    below[size - 2] = before


def eigenvalues(matrix: Floats) -> Floats:
    """Return the eigenvalues of a symmetric (N, N) matrix, in no order.

    The method is that of G. H. Golub, C. F. Van Loan, "Matrix computations", 8.3.
    """
    diagonal, below = _tridiagonal(matrix)
    _drop_small(diagonal, below)
    last, iterations = len(diagonal) - 1, 0
    while last > 0 and iterations < _MAX_ITERATIONS:
        if below[last - 1] == 0:
            last -= 1
            continue
        zeros = np.flatnonzero(below[: last - 1] == 0)
        first = int(zeros[-1]) + 1 if len(zeros) else 0
        part = diagonal[first : last + 1], below[first:last]
        _qr_step(*part)
        _drop_small(*part)
        iterations += 1
    return diagonal


def solve(matrix: Floats, right: Floats) -> Floats | None:
    """Return X, (N, M), with matrix X = right, by Householder's QR decomposition; None if the matrix is nearly singular."""
    size = len(matrix)
    left = matrix.copy()
    rotation = np.eye(size, dtype=np.float32)
    for k in range(size - 1):
        left[:k] = left[:, :k] = 0
        left[range(k), range(k)] = 1
        vector = left[:, k].copy()
        vector[k] += np.float32(1 if matrix[k, k] >= 0 else -1) * _norm(vector)
        vector /= _norm(vector)
        reflection = np.float32(-2) * vector[:, None] * vector
        reflection[range(size), range(size)] += np.float32(1)
        left, rotation = _product(reflection, left), _product(reflection, rotation)

    upper, target = _product(rotation, matrix), _product(rotation, right)
    for row in range(size - 1, -1, -1):
        if abs(upper[row, row]) < _SMALL:
            return None
        for other in range(row + 1, size):
            target[row] -= target[other] * upper[row, other]
        target[row] /= upper[row, row]
    return target


# -- scores -----------------------------------------------------------------------------------------------------------


class Blocks(NamedTuple):
    """The statistics of the blocks of planes of any shape (...)."""

    eigenvalues: Floats
    """Those of the covariance, (..., 25), in no order."""
    variances: Floats
    """Of each block relative to that of all blocks, (..., blocks); 0 if the covariance is singular."""
    singular: npt.NDArray[np.bool_]
    """Whether the covariance is singular, (...)."""


def blocks(contrast: FloatPlane) -> Blocks:
    """Return the statistics of the blocks of 5x5 samples that fit into a plane beside each other."""
    rows, columns = (side // BLOCK for side in contrast.shape)
    plane = np.ascontiguousarray(contrast[: rows * BLOCK, : columns * BLOCK])
    covariances = covariance(plane)
    values = eigenvalues(covariances)
    samples = plane.reshape(rows, BLOCK, columns, BLOCK).transpose(1, 3, 0, 2).reshape(PLACES, -1)
    solution = None if (values < _SMALL).any() else solve(covariances, samples)

    variances = np.zeros(samples.shape[1], np.float32)
    if solution is not None:
        variances = np.add.accumulate(solution * samples / np.float32(PLACES), axis=0, dtype=np.float32)[-1]
    return Blocks(values, variances, np.array(solution is None))


def entropies(statistics: Blocks, sigma: float) -> Floats:
    """Return the entropies of blocks in bits, (..., blocks)."""
    values = np.moveaxis(np.maximum(statistics.eigenvalues, 0), -1, 0)
    noisy = values[..., None] * statistics.variances
    noisy += np.float32(sigma)
    bits = np.log2(noisy, dtype=np.float64)
    bits += _ENTROPY_OF_GAUSSIAN
    total = np.zeros_like(statistics.variances)
    for of_place in bits:
        np.add(total, of_place, out=total, casting="same_kind")  # in double precision, then rounded
    return total


def _weighted(entropies: Floats, reference: Floats, distorted: Floats, share: float) -> Floats:
    if share in (0, 1):
        sums: npt.NDArray[Any] = np.float32(1) + (reference if share else distorted)
    elif share == 0.5:
        sums = 1 + (reference + distorted).astype(np.float64) / 2
    else:
        sums = 1 + (share * reference.astype(np.float64) + (1 - share) * distorted.astype(np.float64))
    weighted: Floats = (entropies * np.log2(sums.astype(np.float64))).astype(np.float32)
    return weighted


class Speed(NamedTuple):
    """The score of a plane, nearly 0 if both planes are alike, and whether the covariance of a plane is singular."""

    score: float
    singular: bool


def speed(reference: Samples, distorted: Samples, bits: int, options: SpeedOptions | None = None) -> Speed:
    """Return the score of two (H, W) planes of `bits`, 8 to 16.

    It is the mean over the blocks of the difference of entropies, each weighted by log2(1 + variance). Blocks whose entropies
    are both below that of the neural noise count as alike. If one of the covariances is singular, and the other is not, the
    score is 0. Raises FrameError below 80x80, because libvmaf then divides by 0.
    """
    options = options or SpeedOptions()
    check_size(reference.shape[1], reference.shape[0], options.prescale)
    small = (small_plane(plane, bits, options) for plane in (reference, distorted))
    both = (blocks(local_contrast(plane, options)) for plane in small)
    score, singular = speed_of_blocks(Blocks(*map(np.array, zip(*both, strict=True))), options).tolist()
    return Speed(score, bool(singular))


def speed_of_blocks(pairs: Blocks, options: SpeedOptions) -> Doubles:
    """Return (..., 2) scores, and 1 if a covariance is singular; see `speed`.

    The planes are of shape (..., 2), of the reference and of the distorted frame.
    """
    first, second = np.moveaxis(entropies(pairs, options.sigma_nn), -2, 0)
    reference, distorted = np.moveaxis(pairs.variances, -2, 0)
    noise = float((np.float32(1) + np.float32(options.nn_floor)) * np.float32(options.sigma_nn))
    base = np.float32(PLACES * (math.log2(noise) + _ENTROPY_OF_GAUSSIAN))
    weighted = (
        _weighted(part, reference, distorted, share)
        for part, share in zip((first, second), _REFERENCE_SHARES[options.weight_var_mode], strict=True)
    )
    differences = np.abs(np.subtract(*weighted))
    differences[(first < base) & (second < base)] = 0
    means = np.add.accumulate(differences, axis=-1, dtype=np.float32)[..., -1] / np.float32(differences.shape[-1])
    scores = np.where(pairs.singular[..., 0] == pairs.singular[..., 1], means.astype(np.float64), 0.0)
    return np.stack([scores, pairs.singular.any(axis=-1).astype(np.float64)], axis=-1)


def combined(cb: npt.NDArray[np.float64], cr: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return (frames,) scores of both planes from (frames, 2) scores and singularities of Cb and of Cr.

    It is their mean, or the score of the plane that is not singular if the other one is.
    """
    mean = ((cb[:, 0].astype(np.float32) + cr[:, 0].astype(np.float32)) / np.float32(2)).astype(np.float64)
    return np.where(cb[:, 1] > cr[:, 1], cr[:, 0], np.where(cr[:, 1] > cb[:, 1], cb[:, 0], mean))
