"""FFmpeg's pixel formats, and the places of Y, Cb and Cr in a decoded frame, on the host or in the memory of a GPU."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ...errors import InputError
from ...types import CHROMA_STEPS, ExternalFrame, ExternalPlane, Planes
from ...utils.choices import BIT_DEPTHS

_PLANAR = re.compile(r"(?:yuv[ja]?(?P<chroma>4\d\d)|gbra?)p(?P<bits>\d+)?(?P<high>msb)?(?P<order>le|be)?$")
_GREY = re.compile(r"(?P<kind>gray|ya)(?P<bits>\d+)?(?P<order>le|be)?$")
_PAIRED = re.compile(r"nv(?P<kind>12|21|16|20|24|42)(?P<order>le|be)?$")
_PAIRED_HIGH = re.compile(r"p(?P<kind>[024])(?P<bits>1\d)(?P<order>le|be)$")
_FLOATS = re.compile(r"f(?:16|32)(?:le|be)?$")
_PAIRED_CHROMA = {"12": "420", "21": "420", "16": "422", "20": "422", "24": "444", "42": "444"}
_CR_FIRST = ("21", "42")
_HIGH_CHROMA = {"0": "420", "2": "422", "4": "444"}

_Place = tuple[int, int, int]  # plane, first sample in a row, step between samples

_YCBCR: tuple[_Place, ...] = (0, 0, 1), (1, 0, 1), (2, 0, 1)
_GBR: tuple[_Place, ...] = (2, 0, 1), (0, 0, 1), (1, 0, 1)

RowsOf = Callable[[Any, int], npt.NDArray[np.uint8]]
"""A function that returns the memory of a plane of an av.VideoFrame by its number, (rows, bytes with padding) uint8."""


def plane_rows(frame: Any, number: int) -> npt.NDArray[np.uint8]:
    """Return the memory of a plane of an av.VideoFrame, (rows, bytes with padding) uint8, not copied."""
    plane = frame.planes[number]
    return np.frombuffer(plane, np.uint8).reshape(-1, plane.line_size)


@dataclass(frozen=True)
class PixelFormat:
    """A pixel format: the places of the samples of Y, Cb, Cr (R, G, B if `rgb`), which are shifted right by `shift` bits.

    Frames of a format that cannot be read directly are first converted to the format `via` by libswscale, which only rearranges
    samples.
    """

    chroma: str
    bits: int
    order: str = "<"
    shift: int = 0
    places: tuple[_Place, ...] = _YCBCR
    via: str | None = None
    rgb: bool = False

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return the type of the samples in a frame."""
        return np.dtype(np.uint8) if self.bits == 8 else np.dtype(f"{self.order}u2")

    def copy(self, frame: Any, target: Planes, rows_of: RowsOf = plane_rows) -> None:
        """Copy the requested planes of an av.VideoFrame of this format (after `via`)."""
        memory: dict[int, npt.NDArray[np.uint8]] = {}  # Cb and Cr may lie in one plane
        for plane, (number, first, step) in zip(target, self.places, strict=False):
            height, width = plane.shape
            if number not in memory:
                memory[number] = rows_of(frame, number)
            samples = plane_samples(memory[number], self.dtype)[:height, first::step][:, :width]
            if self.shift:
                np.right_shift(samples, self.shift, out=plane)
            else:
                plane[:] = samples


def plane_samples(rows: npt.NDArray[np.uint8], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return the memory of a plane as samples, (rows, samples with padding), not copied."""
    return rows[:, : rows.shape[1] // dtype.itemsize * dtype.itemsize].view(dtype)


def new_scaler() -> Callable[..., Any]:
    """Return a function that converts and scales av.VideoFrames by libswscale, with the arguments of `VideoFrame.reformat`.

    It keeps the tables that libswscale made for its last frame. It has one thread: with more, some slices stay empty, and the
    slice before may overwrite the first samples of a slice.
    """
    from av.video.reformatter import VideoReformatter

    return partial(VideoReformatter().reformat, threads=1)


def planar_name(chroma: str, bits: int) -> str:
    """Return FFmpeg's name of the format that has the planes of `vkssim.types`: Y, Cb and Cr, or grey."""
    return ("gray" if chroma == "400" else f"yuv{chroma}p") + ("" if bits == 8 else f"{bits}le")


def new_picture(width: int, height: int, name: str) -> tuple[Any, Planes]:
    """Return an av.VideoFrame of a format, and its planes as arrays that can be written to."""
    from av import VideoFrame

    frame = VideoFrame(width, height, name)
    return frame, tuple(plane_of(frame, number) for number in range(len(frame.planes)))


def plane_of(frame: Any, number: int) -> npt.NDArray[Any]:
    """Return a plane of an av.VideoFrame as (rows, columns) uint8, or uint16 for more than 8 bits, not copied.

    All planes of the frame's format have one type of samples, little-endian.
    """
    plane = frame.planes[number]
    kind = np.dtype(np.uint8) if frame.format.components[0].bits == 8 else np.dtype("<u2")
    return plane_samples(plane_rows(frame, number), kind)[: plane.height, : plane.width]


def pixel_format(path: str, name: str | None) -> PixelFormat:
    """Return the pixel format of a name of FFmpeg. Raises InputError if it has no luma that could be compared."""
    own = _own_planes(name or "")
    if own is not None:
        return own
    converted = _converted(name) if name else None
    if converted is None:
        raise InputError(
            f"{path}: the luma of its pixel format {name or '(none)'} cannot be read; convert it, for instance with"
            " `ffmpeg -i IN -pix_fmt yuv420p OUT.y4m`"
        )
    return converted


def _own_planes(name: str) -> PixelFormat | None:
    """Return a format whose planes or rows can be read directly; None for other formats."""
    if match := _PLANAR.match(name):
        bits, rgb = int(match["bits"] or 8), match["chroma"] is None
        shift = 16 - bits if match["high"] else 0
        return _of(match["chroma"] or "444", bits, match["order"], shift=shift, places=_GBR if rgb else _YCBCR, rgb=rgb)
    if match := _GREY.match(name):
        step = 1 if match["kind"] == "gray" else 2
        return _of("400", int(match["bits"] or 8), match["order"], places=((0, 0, step),))
    if match := _PAIRED.match(name):
        blue, red = (1, 0) if match["kind"] in _CR_FIRST else (0, 1)
        places = (0, 0, 1), (1, blue, 2), (1, red, 2)
        return _of(_PAIRED_CHROMA[match["kind"]], 10 if match["kind"] == "20" else 8, match["order"], places=places)
    if match := _PAIRED_HIGH.match(name):
        bits, places = int(match["bits"]), ((0, 0, 1), (1, 0, 2), (1, 1, 2))
        return _of(_HIGH_CHROMA.get(match["kind"], ""), bits, match["order"], shift=16 - bits, places=places)
    return None


def _of(chroma: str, bits: int, order: str | None, **rest: Any) -> PixelFormat | None:
    if chroma not in CHROMA_STEPS or bits not in BIT_DEPTHS:
        return None
    return PixelFormat(chroma, bits, ">" if order == "be" else "<", **rest)


def _converted(name: str) -> PixelFormat | None:
    from av.video.format import VideoFormat

    side = 16  # any number that all chroma steps divide
    described = VideoFormat(name, side, side)
    bits = max((component.bits for component in described.components), default=0)
    if described.is_bayer or name.startswith("xyz") or _FLOATS.search(name) or bits not in (*range(1, 9), *BIT_DEPTHS):
        return None
    if described.is_rgb or described.has_palette:
        bits = max(8, bits)
        via = "gbrp" if bits == 8 else f"gbrp{bits}le"
        return PixelFormat("444", bits, places=_GBR, via=via, rgb=True)
    if name in ("monow", "monob"):
        return PixelFormat("400", 8, places=((0, 0, 1),), via="gray")
    steps = side // described.chroma_height(side), side // described.chroma_width(side)
    chroma = next((chroma for chroma, its_steps in CHROMA_STEPS.items() if its_steps == steps), None)
    if chroma is None or len(described.components) < 3:
        return None
    return PixelFormat(chroma, bits, via=f"yuv{chroma}p" + ("" if bits == 8 else f"{bits}le"))


# -- surfaces ---------------------------------------------------------------------------------------------------------

_SURFACE = "cuda"
"""FFmpeg's name of the pixel format of frames in surfaces."""


class Rows(NamedTuple):
    """Rows of samples in memory: the address of the first row, and the bytes from one row to the next."""

    address: int
    pitch: int
    on_device: bool


class SurfaceCopy(Protocol):
    """A method to copy rows between the GPU that decodes and the host.

    Copies of a GPU are done in the order of the calls. A copy from or to the host is complete when the method returns. A copy
    within the GPU may still be in progress.
    """

    def copy(self, source: Rows, target: Rows, row_bytes: int, rows: int) -> None:
        """Copy `row_bytes` bytes of each row. Raises DeviceError."""
        ...


def is_surface(frame: Any) -> bool:
    """Return whether an av.VideoFrame is in the memory of a GPU."""
    return bool(frame.format.name == _SURFACE)


def format_name(frame: Any) -> str:
    """Return FFmpeg's name of the pixel format of an av.VideoFrame's samples, on a GPU or on the host."""
    return str(frame.sw_format.name if is_surface(frame) else frame.format.name)


class SurfaceReader:
    """A reader of frames in surfaces, which also writes frames to memory of the GPU."""

    def __init__(self, copies: SurfaceCopy) -> None:
        self._copies = copies

    def rows(self, frame: Any, number: int) -> npt.NDArray[np.uint8]:
        """Return the memory of a plane of a frame on the host, (rows, bytes with padding) uint8. Surfaces are copied."""
        if not is_surface(frame):
            return plane_rows(frame, number)
        height = frame.height if number == 0 else -(-frame.height // 2)  # they are 4:2:0
        pitch = frame.planes[number].line_size
        rows = np.empty((height, pitch), np.uint8)
        source = Rows(frame.planes[number].buffer_ptr, pitch, on_device=True)
        self._copies.copy(source, Rows(rows.ctypes.data, pitch, on_device=False), pitch, height)
        return rows

    def write(self, frame: Any, pixels: PixelFormat, target: ExternalFrame) -> None:
        """Copy a frame of a pixel format to memory of the GPU, from a surface or from the host."""
        if is_surface(frame):
            planes = frame.planes[: len(target)]  # if luma alone is scored, chroma has no target
            for plane, memory in zip(planes, target, strict=True):
                self._copy(Rows(plane.buffer_ptr, plane.line_size, on_device=True), memory)
            return
        for samples, memory in zip(_as_in_surfaces(frame, pixels, target), target, strict=True):
            self._copy(Rows(samples.ctypes.data, samples.strides[0], on_device=False), memory)

    def _copy(self, source: Rows, target: ExternalPlane) -> None:
        self._copies.copy(source, Rows(target.address, target.pitch, on_device=True), target.row_bytes, target.height)


@dataclass(slots=True)  # making a frozen one takes longer, and there is one for each frame
class DecodedFrame:
    """A frame of a clip that a GPU decodes. It is in a surface, or on the host if the processor had to continue.

    Several threads may copy it. The decoder gets the surface back when nothing refers to this object any longer.
    """

    frame: Any
    pixels: PixelFormat
    reader: SurfaceReader

    def write(self, target: ExternalFrame) -> None:
        """Copy it to memory of the GPU."""
        self.reader.write(self.frame, self.pixels, target)

    def copy(self, target: Planes) -> None:
        """Copy the requested planes to memory of the host."""
        self.pixels.copy(self.frame, target, self.reader.rows)


def _as_in_surfaces(frame: Any, pixels: PixelFormat, target: ExternalFrame) -> Planes:
    """Return the planes of a frame on the host with the layout of surfaces: chroma in one plane, samples in the upper bits."""
    dtype = np.dtype(np.uint8 if pixels.bits == 8 else np.uint16)
    planes = tuple(np.empty((memory.height, memory.row_bytes // dtype.itemsize), dtype) for memory in target)
    luma, *chroma = planes
    pixels.copy(frame, (luma, *(plane[:, first::2] for plane in chroma for first in range(2))))
    for plane, memory in zip(planes, target, strict=True):
        np.left_shift(plane, memory.shift, out=plane)
    return planes
