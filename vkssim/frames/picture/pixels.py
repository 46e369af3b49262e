"""FFmpeg's pixel formats, and the places of Y, Cb and Cr in a decoded frame, on the host or in the memory of a GPU."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import InputError
from ...types import CHROMA_STEPS, ExternalFrame, Planes, Rows
from ...utils.av_frames import planar_name, plane_samples
from ...utils.choices import BIT_DEPTHS

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
