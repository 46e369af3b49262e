"""The colours of a stream: its matrix, range and transfer, and conversions between R'G'B' and Y'CbCr."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...types import Planes, Samples
from ..info import VideoInfo

MATRICES = {
    0: "identity",
    1: "BT.709",
    4: "FCC",
    5: "BT.601",
    6: "BT.601",
    7: "SMPTE 240M",
    8: "YCgCo",
    9: "BT.2020",
    10: "BT.2020 constant luminance",
    11: "SMPTE 2085",
    12: "chromaticity-derived",
    13: "chromaticity-derived constant luminance",
    14: "ICtCp",
    15: "IPT-C2",
    16: "YCgCo-Re",
    17: "YCgCo-Ro",
}
"""Matrices by ITU-T H.273, MatrixCoefficients; 5 and 6 are equal."""

TRANSFERS = {
    1: "BT.709",
    4: "gamma 2.2",
    5: "gamma 2.8",
    6: "BT.709",
    7: "SMPTE 240M",
    8: "linear",
    9: "logarithmic",
    10: "logarithmic",
    11: "IEC 61966-2-4",
    12: "BT.1361",
    13: "sRGB",
    14: "BT.709",
    15: "BT.709",
    16: "PQ",
    17: "SMPTE 428",
    18: "HLG",
}
"""Transfers by H.273, TransferCharacteristics; 1, 6, 14 and 15 are one function."""

UNLIKE_SDR = ("PQ", "HLG", "linear", "logarithmic", "SMPTE 428")
"""Transfers whose samples differ in meaning from all other transfers and from streams that state none."""

RANGES = {1: "limited", 2: "full"}
"""Ranges by FFmpeg's AVColorRange. Limited luma is 16 to 235 at 8 bits, full luma 0 to 255."""

WEIGHTS = {
    "BT.709": (0.2126, 0.0722),
    "FCC": (0.30, 0.11),
    "BT.601": (0.299, 0.114),
    "SMPTE 240M": (0.212, 0.087),
    "BT.2020": (0.2627, 0.0593),
}
"""Kr and Kb of each matrix in H.273."""

YCBCR_BITS = 16
"""Depth of Y'CbCr from R'G'B': 256 times as fine as 8 bits, so that rounding has no effect on a score."""


_GREY = "gray", "ya", "mono"
"""The beginnings of FFmpeg's names of formats without colour."""


def stated_colours(frame: Any) -> dict[str, str | None]:
    """Return range, matrix and transfer that a frame states; None for each that it does not state.

    R'G'B' and grey that state no range are full, as FFmpeg takes them: most formats of still pictures cannot state it.
    """
    form = frame.format
    usual = "full" if form.is_rgb or form.has_palette or form.name.startswith(_GREY) else None
    return {
        "range": "full" if form.name.startswith("yuvj") else RANGES.get(frame.color_range, usual),
        "matrix": MATRICES.get(frame.colorspace),
        "transfer": TRANSFERS.get(frame.color_trc),
    }


@dataclass(frozen=True)
class Colour:
    """The Y'CbCr that R'G'B' pictures are converted to."""

    matrix: str
    range: str

    def convert(self, rgb: Planes, rgb_bits: int, rgb_range: str | None, target: Planes, whites: Sequence[int] = ()) -> None:
        """Write (y,) or (y, cb, cr) of `YCBCR_BITS`, by equations 38 to 43 of H.273, from (r, g, b).

        `whites` are given if those of r, g and b are not the largest of their bits, see `PixelFormat`.
        Grey becomes the same integers as by `ToBitDepth`: its differences from green are 0, and float64 is rounded right.
        """
        weight_red, weight_blue = (np.float32(weight) for weight in WEIGHTS[self.matrix])
        red, green, blue = (plane.astype(np.float32) for plane in rgb)
        for plane, white in zip((red, green, blue), whites, strict=False):
            plane *= np.float32((2**rgb_bits - 1) / white)
        red -= green
        blue -= green
        luma_less_green = weight_red * red + weight_blue * blue
        green += luma_less_green
        black_before, span_before, _ = _levels(rgb_range, rgb_bits)
        black, span, chroma_span = _levels(self.range, YCBCR_BITS)
        factor = span / span_before
        _store(green * np.float64(factor) + (black - black_before * factor), target[0])
        for plane, colour, weight in zip(target[1:], (blue, red), (weight_blue, weight_red), strict=False):
            colour -= luma_less_green
            colour *= np.float32(chroma_span / (2 * (1 - weight) * span_before))
            _store(colour + np.float32(1 << (YCBCR_BITS - 1)), plane)


def _levels(range_: str | None, bits: int) -> tuple[int, int, int]:
    """Return black, white less black, and the span of chroma; a range that is not stated counts as limited."""
    step, peak = 1 << (bits - 8), (1 << bits) - 1
    return (0, peak, peak) if range_ == "full" else (16 * step, 219 * step, 224 * step)


def _store(exact: np.ndarray, plane: np.ndarray) -> None:
    np.rint(exact, out=exact)
    plane[:] = np.clip(exact, 0, 2**YCBCR_BITS - 1, out=exact)


RGB_DEFAULT = Colour("BT.601", "limited")
"""The Y'CbCr that FFmpeg makes of R'G'B' by default, for any size. An encoder most likely got it as its input."""


_HD_LINES = 720  # clips of this height or more that state no matrix are shown as BT.709, as players do


def to_rgb(planes: Planes, info: VideoInfo) -> npt.NDArray[np.uint8]:
    """Return (H, W, 3) uint8 for people to look at, from (y,) or (y, cb, cr); luma alone is grey. No score depends on it.

    This inverts equations 38 to 43 of ITU-T H.273. A chroma sample is repeated over its luma samples. A range that is not
    stated counts as limited.
    """
    weight_red, weight_blue = WEIGHTS[info.matrix or ("BT.709" if info.height >= _HD_LINES else RGB_DEFAULT.matrix)]
    black, white, span = _levels(info.range, info.bits)
    luma = (planes[0] - np.float32(black)) / np.float32(white)
    if len(planes) == 1:
        return _eight_bits(np.repeat(luma[:, :, None], 3, axis=2))
    middle = np.float32(1 << (info.bits - 1))
    blue, red = ((_spread(plane, luma.shape) - middle) / np.float32(span) for plane in planes[1:])
    red, blue = luma + 2 * (1 - weight_red) * red, luma + 2 * (1 - weight_blue) * blue
    green = (luma - weight_red * red - weight_blue * blue) / (1 - weight_red - weight_blue)
    return _eight_bits(np.stack([red, green, blue], axis=2))


def _spread(chroma: Samples, shape: tuple[int, ...]) -> Samples:
    rows, columns = (np.arange(length) * size // length for length, size in zip(shape, chroma.shape, strict=True))
    spread: Samples = chroma[rows[:, None], columns[None, :]]
    return spread


def _eight_bits(picture: npt.NDArray[np.floating]) -> npt.NDArray[np.uint8]:
    rounded: npt.NDArray[np.uint8] = np.clip(np.rint(255 * picture), 0, 255).astype(np.uint8)
    return rounded
