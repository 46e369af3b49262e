"""Twin of cambi, libvmaf's extractor (`cambi.c`): how visible the banding of the distorted plane is; 0 if there is none.

The metric is that of P. Tandon, M. Afonso, J. Sole, L. Krasula, "CAMBI: contrast-aware multiscale banding index", PCS 2021.

    samples ──► 10 bits, without dither ──► flat places ──► five scales:
        half ──► mode of 3x3 ──► contrasts of each flat place with its window ──► mean of the strongest

All numbers are integers, up to the contrasts, which are float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import FrameError, OptionError
from ..shaders.constants import CAMBI_REACH, CAMBI_SCALES
from ..types import Doubles, Samples

Plane = npt.NDArray[np.int32]
"""(H, W) samples of 10 bits."""
Mask = npt.NDArray[np.bool_]

SMALLEST_SIDE = 216
"""One of the sides must be this long."""
SPEEDUPS = {0: math.inf, 1080: 1920 * 1080, 1440: 2560 * 1440, 2160: 3840 * 2160}
"""The samples of a frame from which each cambi_high_res_speedup halves it."""
LARGEST_WINDOW = 2 * CAMBI_REACH + 1

_SCALE_WEIGHTS = (16, 8, 4, 2, 1)
CONTRAST_WEIGHTS = np.array(
    (1, 2, 3, 4, 4, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7, 8, 8, 8, 8, 8, 8, 8, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9), np.int32
)
"""The response of the eye to contrasts of 1 to 32 levels."""
_FLAT_SIDE = 7  # of the window that decides whether a place is flat
_BITS = 10
_FOOT, _HEAD = 64, 940  # of limited range in 10 bits


@dataclass(frozen=True)
class CambiOptions:
    """The options of cambi, by libvmaf's names without `cambi_`, and their defaults."""

    high_res_speedup: int = 0
    max_val: float = 1000.0
    vis_lum_threshold: float = 0.0
    topk: float = 0.6
    eotf: str = "bt1886"
    tvi_threshold: float = 0.019
    max_log_contrast: int = 2
    window_size: int = 65
    enc_width: int = 0
    enc_height: int = 0
    enc_bitdepth: int = 0


# -- luminance --------------------------------------------------------------------------------------------------------


def _bt1886(signal: float) -> float:
    """ITU-R BT.1886 for a display of 0.01 to 300 cd/m2."""
    gamma, white, black = 2.4, 300.0, 0.01
    span = white ** (1 / gamma) - black ** (1 / gamma)
    return float(span**gamma * max(signal + black ** (1 / gamma) / span, 0) ** gamma)


def _pq(signal: float) -> float:
    """SMPTE ST 2084."""
    m1, m2, c1, c2, c3 = 0.1593017578125, 78.84375, 0.8359375, 18.8515625, 18.6875
    root = signal ** (1 / m2)
    return float(10000 * (max(root - c1, 0) / (c2 - c3 * root)) ** (1 / m1))


EOTFS: dict[str, Callable[[float], float]] = {"bt1886": _bt1886, "pq": _pq}


def _luminances(eotf: str) -> npt.NDArray[np.float64]:
    """Return the luminance of each sample of 10 bits and limited range, in cd/m2."""
    signals = (np.clip(np.arange(1 << _BITS), _FOOT, _HEAD) - _FOOT) / (_HEAD - _FOOT)
    return np.array([EOTFS[eotf](signal) for signal in signals])


@cache
def visible_levels(options: CambiOptions) -> tuple[int, tuple[int, ...]]:
    """Return the darkest visible sample, and for each contrast the brightest sample from which it is visible.

    A contrast of d levels is visible if the luminance rises by more than `tvi_threshold` of it. All samples above the last one
    have too little contrast.
    """
    luminances = _luminances(options.eotf)
    darkest = int(np.argmax(luminances[_FOOT:] >= options.vis_lum_threshold)) + _FOOT
    limits = []
    for contrast in range(1, (1 << options.max_log_contrast) + 1):
        last = _HEAD - contrast - 1
        visible = luminances[contrast:] - luminances[:-contrast] > options.tvi_threshold * luminances[:-contrast]
        if not visible[_FOOT]:
            limits.append(0)
        elif visible[last] and visible[last + 1]:
            limits.append((1 << _BITS) - 1)
        else:
            limits.append(_last_visible(visible, last))
    return (0 if darkest == _FOOT else darkest), tuple(limits)


def _last_visible(visible: Mask, last: int) -> int:
    """Return a sample that is visible, and whose next one is not; the search is that of libvmaf if there are several."""
    if not visible[_FOOT + 1]:
        return _FOOT
    if visible[last]:
        return last
    low, high = _FOOT, last
    while True:
        middle = (low + high) // 2
        if not visible[middle]:
            high = middle
        elif visible[middle + 1]:
            low = middle
        else:
            return middle


# -- planes -----------------------------------------------------------------------------------------------------------


def encoded_size(width: int, height: int, options: CambiOptions) -> tuple[int, int]:
    """Return the size at which frames of this size are computed: that of the encoding if it was smaller.

    Raises FrameError if neither side has 216 samples.
    """
    size = width, height
    if 0 < options.enc_width <= width and 0 < options.enc_height <= height:
        size = options.enc_width, options.enc_height
    if max(size) < SMALLEST_SIDE:
        raise FrameError(f"cambi needs a width or a height of {SMALLEST_SIDE} at least, got {size[0]}x{size[1]}")
    return size


def is_halved(width: int, height: int, options: CambiOptions) -> bool:
    """Return whether the first scale is half of the frame already."""
    return width * height >= SPEEDUPS[options.high_res_speedup]


def window_side(width: int, height: int, options: CambiOptions) -> int:
    """Return the side of the window, which is odd: `window_size` for 3840x2160. Raises OptionError if it is larger than 65."""
    side = options.window_size * (width + height) // 375 >> 4
    if is_halved(width, height, options):
        side = (side + 1) >> 1
    if side | 1 > LARGEST_WINDOW:
        raise OptionError(
            f"cambi: window_size={options.window_size} is a window of {side | 1} for {width}x{height}, and {LARGEST_WINDOW} is"
            " the largest; give a smaller window_size"
        )
    return side | 1


def nearest(length: int, scaled: int) -> npt.NDArray[np.int64]:
    """Return the sample nearest to each scaled one, of one axis; places are added up in float32."""
    ratio = np.float32(length) / np.float32(scaled)
    steps = np.full(scaled, ratio)
    steps[0] = np.float32(float(ratio / np.float32(2)) - 0.5)
    return (np.add.accumulate(steps, dtype=np.float32) + 0.5).astype(np.int64)


def ten_bits(samples: Samples, bits: int, options: CambiOptions) -> Plane:
    """Return an (H, W) plane of `bits`, 8 to 16, in 10 bits, of the size of the encoding.

    An encoding of less than 10 bits may have dither, which a mean of 2x2 samples removes.
    """
    height, width = samples.shape
    columns, rows = encoded_size(width, height, options)
    if (columns, rows) != (width, height):
        samples = samples[nearest(height, rows)[:, None], nearest(width, columns)]
    plane = samples.astype(np.int32)
    plane = plane << (_BITS - bits) if bits <= _BITS else (plane + (1 << (bits - _BITS - 1))) >> (bits - _BITS)
    return _without_dither(plane) if may_have_dither(bits, options) else plane


def may_have_dither(bits: int, options: CambiOptions) -> bool:
    """Return whether the encoding has less than 10 bits."""
    return (options.enc_bitdepth or bits) < _BITS


def _without_dither(plane: Plane) -> Plane:
    mean = plane.copy()
    mean[:-1, :-1] = (plane[:-1, :-1] + plane[:-1, 1:] + plane[1:, :-1] + plane[1:, 1:]) >> 2
    mean[:-1, -1] = (plane[:-1, -1] + plane[1:, -1]) >> 1
    mean[-1, :-1] = (plane[-1, :-1] + plane[-1, 1:]) >> 1
    return mean


def flat_places(plane: Plane) -> Mask:
    """Return (H, W): whether most samples around a place equal their right and their lower neighbour.

    In the window of 7x7 a sample beyond the border counts as unlike, and one without a neighbour as equal to it.
    """
    height, width = plane.shape
    equal = np.ones((height, width), np.int32)
    equal[:, :-1] &= plane[:, :-1] == plane[:, 1:]
    equal[:-1] &= plane[:-1] == plane[1:]
    half = _FLAT_SIDE // 2
    sums = np.pad(np.pad(equal, half).cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
    counts = sums[_FLAT_SIDE:, _FLAT_SIDE:] - sums[:-_FLAT_SIDE, _FLAT_SIDE:] - sums[_FLAT_SIDE:, :-_FLAT_SIDE]
    counts += sums[:-_FLAT_SIDE, :-_FLAT_SIDE]
    flat: Mask = counts > needed_equals(width, height)
    return flat


def needed_equals(width: int, height: int) -> int:
    """Return the number of samples of a window that a flat place has more of."""
    octaves = max((width >> 6) * (height >> 6) - 1, 0).bit_length()
    return (_FLAT_SIDE**2 + 3 * (octaves - 11) - 1) >> 1


def _mode(first: Plane, second: Plane, third: Plane) -> Plane:
    """Return the number that two of three have, or the smallest of them."""
    smallest = np.minimum(np.minimum(first, second), third)
    return np.where((first == second) | (first == third), first, np.where(second == third, second, smallest))


def without_specks(plane: Plane) -> Plane:
    """Return the modes of three samples in a row, of three rows. The first and the last row stay as they are."""
    rows = plane.copy()
    rows[:, 1:-1] = _mode(plane[:, :-2], plane[:, 1:-1], plane[:, 2:])
    result = plane.copy()
    result[1:-1] = _mode(rows[:-2], rows[1:-1], rows[2:])
    return result


# -- contrast ---------------------------------------------------------------------------------------------------------


def _columns_of_windows(plane: Plane, flat: Mask, half: int, levels: int) -> Iterator[npt.NDArray[np.uint16]]:
    """Yield the flat places of each level in the columns of a row's windows, (levels, half + W + half), row after row."""
    height, width = plane.shape
    counts = np.zeros((levels, width + 2 * half), np.uint16)
    of_places = counts.ravel()  # a view

    def change(row: int, change_one: np.ufunc) -> None:
        columns = np.flatnonzero(flat[row])
        places = plane[row, columns] * counts.shape[1] + columns + half
        of_places.put(places, change_one(of_places[places], np.uint16(1)))

    for row in range(min(half, height)):
        change(row, np.add)
    for row in range(height):
        if row + half < height:
            change(row + half, np.add)
        if row > half:
            change(row - half - 1, np.subtract)
        yield counts


def _window_sums(columns: npt.NDArray[np.uint16], side: int) -> npt.NDArray[np.uint16]:
    """Return the sums of `side` columns from each one on, (levels, columns - side + 1), from sums of 2, 4, 8 ... columns."""
    count = columns.shape[1] - side + 1
    sums: npt.NDArray[np.uint16] = np.zeros((len(columns), count), np.uint16)
    first, power = 0, 1
    while power <= side:
        if side & power:
            sums += columns[:, first : first + count]
            first += power
        columns = columns[:, :-power] + columns[:, power:]
        power *= 2
    return sums


def _near(levels: npt.NDArray[np.integer], distance: int, count: int) -> npt.NDArray[np.int64]:
    """Return the levels, of `count`, that differ from one of `levels` by a distance at most, in order."""
    marks = np.zeros(count, np.bool_)
    marks[levels] = True
    near = marks.copy()
    for step in range(1, distance + 1):
        near[step:] |= marks[:-step]
        near[:-step] |= marks[step:]
    return np.flatnonzero(near)


def reciprocals(side: int) -> npt.NDArray[np.float32]:
    """Return 0, and 1 / n for every number n of places of a window."""
    return np.append(np.float32(0), np.float32(1) / np.arange(1, side**2 + 1, dtype=np.float32))


def contrasts(plane: Plane, flat: Mask, side: int, options: CambiOptions) -> npt.NDArray[np.float32]:
    """Return the strongest contrast of each place with its window of this side, (H, W) float32; 0 if it is not flat.

    A contrast of d levels is weight(d) p0 p1 / (p0 + p1): p0 places of the window have the level of the place, and p1 have the
    level d above it or d below it, the larger number of both. It is 0 if it is not visible.
    """
    darkest, limits = visible_levels(options)
    steps = np.arange(1, len(limits) + 1)[:, None]
    most = len(steps)
    width = plane.shape[1]
    result = np.zeros(plane.shape, np.float32)
    shifted = plane + most  # so that each level has levels to compare with
    levels = (1 << _BITS) + 1 + 2 * most
    inverse = reciprocals(side)
    brightest = np.array(limits)[:, None]
    for row, columns_of_windows in enumerate(_columns_of_windows(shifted, flat, side // 2, levels)):
        columns = np.flatnonzero(flat[row] & (plane[row] <= brightest[-1]))
        if not columns.size:
            continue
        level = shifted[row, columns]
        near = _near(level, most, levels)
        counts = _window_sums(columns_of_windows[near], side).ravel()

        place = np.searchsorted(near, level) * width + columns  # the levels near it come before it and after it
        own = counts[place].astype(np.int32)
        other = np.maximum(counts[place + steps * width], counts[place - steps * width])
        products = (CONTRAST_WEIGHTS[:most, None] * own * other).astype(np.float32) * inverse[own + other]
        visible = (plane[row, columns] <= brightest) & (level + steps > darkest)
        result[row, columns] = np.where(visible, products, 0).max(axis=0, initial=0)
    return result


def strongest_count(places: int, share: float) -> int:
    """Return the number of the strongest contrasts that count."""
    return min(max(int(share * places), 1), places)


def _mean_of_strongest(values: npt.NDArray[np.float32], share: float) -> float:
    count = strongest_count(values.size, share)
    strongest = np.partition(values.ravel(), values.size - count)[values.size - count :]
    return float(strongest.sum(dtype=np.float64)) / count


def cambi_means(samples: npt.NDArray[Any], bits: int, options: CambiOptions) -> Doubles:
    """Return the mean of the strongest contrasts of each scale, (5,), of an (H, W) plane of `bits`, 8 to 16.

    Raises FrameError and OptionError as `encoded_size` and `window_side`.
    """
    plane = ten_bits(samples, bits, options)
    height, width = plane.shape
    side = window_side(width, height, options)
    flat = flat_places(plane)
    means = []
    for scale in range(CAMBI_SCALES):
        if scale > 0 or is_halved(width, height, options):
            plane, flat = plane[::2, ::2], flat[::2, ::2]
        plane = without_specks(plane)
        means.append(_mean_of_strongest(contrasts(plane, flat, side, options), options.topk))
    return np.array(means)


def cambi_of_means(means: Doubles, side: int, options: CambiOptions) -> Doubles:
    """Return (...) scores from the means of `cambi_means`, (..., 5), for a window of this side.

    A score is the weighted sum of the means, relative to the samples of a window.
    """
    total = (means * _SCALE_WEIGHTS).sum(axis=-1)
    scores: Doubles = np.minimum(total / side**2, options.max_val)
    return scores


def cambi(samples: npt.NDArray[Any], bits: int, options: CambiOptions | None = None) -> float:
    """Return the score of an (H, W) plane of `bits`, 8 to 16. Raises as `cambi_means`."""
    options = options or CambiOptions()
    height, width = samples.shape
    side = window_side(*encoded_size(width, height, options), options)
    return float(cambi_of_means(cambi_means(samples, bits, options), side, options))
