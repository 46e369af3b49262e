"""The samples of decoded frames: where Y, Cb and Cr lie, on the host or in the memory of a GPU, and which colours they mean."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..types import CHROMA_STEPS, ExternalFrame, Planes, Rows, Samples
from ..utils.av_frames import planar_name, plane_samples
from ..utils.choices import BIT_DEPTHS
from .info import VideoInfo

_FLOATS = re.compile(r"f(?:16|32)(?:le|be)?$")
_HIGH = re.compile(r"p[024]1\d(?:le|be)$|.+msb(?:le|be)$")
"""The formats whose samples lie in the upper bits."""

_SHIFTED = 4, 5, 6
"""The depths of R, G and B that libswscale only shifts; to fewer bits it gives a white of its own."""

_CR_FIRST = "nv21", "nv42"

_Place = tuple[int, int, int]  # plane, first sample in a row, step between samples

CHROMA_OF = {steps: chroma for chroma, steps in CHROMA_STEPS.items()}
"""The chroma format of each step between samples of Cb and Cr."""

_PLANAR: tuple[_Place, ...] = (0, 0, 1), (1, 0, 1), (2, 0, 1)
_PAIRED: tuple[_Place, ...] = (0, 0, 1), (1, 0, 2), (1, 1, 2)


@dataclass(frozen=True)
class PixelFormat:
    """A pixel format: the places of the samples of Y, Cb, Cr (R, G, B if `rgb`), which are shifted right by `shift` bits.

    Frames of a format that cannot be read directly are first converted to the format `via` by libswscale, which only rearranges
    samples. It shifts R, G and B of 4 to 6 bits up to 8 bits; `whites` are then their largest samples, such as 248 of 5 bits.
    """

    chroma: str
    bits: int
    order: str = "<"
    shift: int = 0
    places: tuple[_Place, ...] = _PLANAR
    via: str | None = None
    rgb: bool = False
    whites: tuple[int, ...] = ()

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return the type of the samples in a frame."""
        return np.dtype(np.uint8) if self.bits == 8 else np.dtype(f"{self.order}u2")

    def copy(self, frame: Any, target: Planes, copies: SurfaceCopy | None = None) -> None:
        """Copy the requested planes of an av.VideoFrame of this format (after `via`); `copies` reads surfaces."""
        memory: dict[int, npt.NDArray[np.uint8]] = {}  # Cb and Cr may lie in one plane
        for plane, (number, first, step) in zip(target, self.places, strict=False):
            height, width = plane.shape
            if number not in memory:
                memory[number] = plane_rows(frame, number, copies)
            samples = plane_samples(memory[number], self.dtype)[:height, first::step][:, :width]
            if self.shift:
                np.right_shift(samples, self.shift, out=plane)
            else:
                plane[:] = samples


def plane_rows(frame: Any, number: int, copies: SurfaceCopy | None = None) -> npt.NDArray[np.uint8]:
    """Return the memory of a plane of an av.VideoFrame, (rows, bytes with padding) uint8, copied only from a surface."""
    plane = frame.planes[number]
    if copies is None or not is_surface(frame):
        return np.frombuffer(plane, np.uint8).reshape(-1, plane.line_size)
    height = frame.height if number == 0 else -(-frame.height // 2)  # surfaces are 4:2:0
    rows = np.empty((height, plane.line_size), np.uint8)
    source, target = Rows(plane.buffer_ptr, plane.line_size), Rows(rows.ctypes.data, plane.line_size, on_device=False)
    copies(source, target, plane.line_size, height)
    return rows


def pixel_format(path: str, name: str | None) -> PixelFormat:
    """Return the pixel format of a name of FFmpeg. Raises InputError if it has no luma that could be compared."""
    pixels = _described(name) if name else None
    if pixels is None:
        raise InputError(
            f"{path}: the luma of its pixel format {name or '(none)'} cannot be read; convert it, for instance with"
            " `ffmpeg -i IN -pix_fmt yuv420p OUT.y4m`"
        )
    return pixels


def _described(name: str) -> PixelFormat | None:
    from av.video.format import VideoFormat

    side = 16  # any number that all chroma steps divide
    described = VideoFormat(name, side, side)
    planes = [component.plane for component in described.components if not component.is_alpha]
    bits = max((component.bits for component in described.components), default=0)
    if described.is_bayer or name.startswith("xyz") or _FLOATS.search(name) or bits not in (*range(1, 9), *BIT_DEPTHS):
        return None
    rgb = described.is_rgb or described.has_palette
    steps = side // described.chroma_height(side), side // described.chroma_width(side)
    chroma = "400" if len(planes) == 1 else CHROMA_OF.get(steps)
    if chroma is None or len(planes) == 2:
        return None
    readable = partial(PixelFormat, order=">" if described.is_big_endian else "<", shift=16 - bits if _HIGH.match(name) else 0)
    if bits in BIT_DEPTHS and len(set(planes)) == 3:
        return readable("444" if rgb else chroma, bits, places=tuple((plane, 0, 1) for plane in planes), rgb=rgb)
    if bits in BIT_DEPTHS and planes == [0, 1, 1]:  # Cb and Cr in turn
        return readable(chroma, bits, places=((0, 0, 1), (1, 1, 2), (1, 0, 2)) if name in _CR_FIRST else _PAIRED)
    if bits in BIT_DEPTHS and chroma == "400" and not rgb:
        return readable(chroma, bits, places=((0, 0, len(described.components)),))
    bits = max(8, bits)
    if rgb:
        via = "gbrp" if bits == 8 else f"gbrp{bits}le"
        parts = [component.bits for component in described.components if not component.is_alpha]
        whites = tuple((2**part - 1) << (bits - part) for part in parts) if min(parts) in _SHIFTED else ()
        return PixelFormat("444", bits, places=((2, 0, 1), (0, 0, 1), (1, 0, 1)), via=via, rgb=True, whites=whites)
    return PixelFormat(chroma, bits, places=((0, 0, 1),) if chroma == "400" else _PLANAR, via=planar_name(chroma, bits))


# -- surfaces ---------------------------------------------------------------------------------------------------------

SurfaceCopy = Callable[[Rows, Rows, int, int], None]
"""A function that copies rows between the GPU that decodes and the host: source, target, bytes of each row, rows.

Copies of a GPU are done in the order of the calls. A copy from or to the host is complete when the function returns. A copy
within the GPU may still be in progress. Raises DeviceError.
"""


def is_surface(frame: Any) -> bool:
    """Return whether an av.VideoFrame is in the memory of a GPU."""
    return frame.sw_format is not None


def format_name(frame: Any) -> str:
    """Return FFmpeg's name of the pixel format of an av.VideoFrame's samples, on a GPU or on the host."""
    return str((frame.sw_format or frame.format).name)


@dataclass(slots=True)  # making a frozen one takes longer, and there is one for each frame
class DecodedFrame:
    """A frame of a clip that a GPU decodes. It is in a surface, or on the host if the CPU had to continue.

    Several threads may copy it. The decoder gets the surface back when nothing refers to this object any longer.
    """

    frame: Any
    pixels: PixelFormat
    copies: SurfaceCopy

    def write(self, target: ExternalFrame) -> None:
        """Copy it to memory of the GPU. If only luma is scored, chroma has no target."""
        if is_surface(self.frame):
            rows = [Rows(plane.buffer_ptr, plane.line_size) for plane in self.frame.planes[: len(target)]]
        else:
            samples = _as_in_surfaces(self.frame, self.pixels, target)
            rows = [Rows(plane.ctypes.data, plane.strides[0], on_device=False) for plane in samples]
        for source, memory in zip(rows, target, strict=True):
            self.copies(source, memory.rows, memory.row_bytes, memory.height)

    def copy(self, target: Planes) -> None:
        """Copy the requested planes to memory of the host."""
        self.pixels.copy(self.frame, target, self.copies)


def _as_in_surfaces(frame: Any, pixels: PixelFormat, target: ExternalFrame) -> Planes:
    """Return the planes of a frame on the host with the layout of surfaces: chroma in one plane, samples in the upper bits."""
    dtype = np.dtype(np.uint8 if pixels.bits == 8 else np.uint16)
    planes = tuple(np.empty((memory.height, memory.row_bytes // dtype.itemsize), dtype) for memory in target)
    luma, *chroma = planes
    pixels.copy(frame, (luma, *(plane[:, first::2] for plane in chroma for first in range(2))))
    for plane, memory in zip(planes, target, strict=True):
        np.left_shift(plane, memory.shift, out=plane)
    return planes


# -- colours ----------------------------------------------------------------------------------------------------------

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
