"""Frames in surfaces: they lie in the memory of the GPU that decoded them, and FFmpeg does not copy them to the host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ...types import ExternalFrame, ExternalPlane, Planes
from .pixels import PixelFormat, plane_rows

_SURFACE = "cuda"
"""What FFmpeg calls the pixel format of frames in surfaces."""


class Rows(NamedTuple):
    """The place of rows of samples: the address of the first one, and the bytes from one to the next."""

    address: int
    pitch: int
    on_device: bool


class SurfaceCopy(Protocol):
    """Copy rows between the GPU that decodes and the host.

    All copies of a GPU are done in the order in which they were asked for. A copy from or to the host is done when the method
    returns. A copy on the GPU may still be under way.
    """

    def copy(self, source: Rows, target: Rows, row_bytes: int, rows: int) -> None:
        """Copy `row_bytes` bytes of each row. Raises DeviceError."""
        ...


def is_surface(frame: Any) -> bool:
    """Return whether an av.VideoFrame lies in the memory of a GPU."""
    return bool(frame.format.name == _SURFACE)


def format_name(frame: Any) -> str:
    """Return FFmpeg's name of the pixel format of an av.VideoFrame's samples, wherever they lie."""
    return str(frame.sw_format.name if is_surface(frame) else frame.format.name)


class SurfaceReader:
    """Read frames from surfaces, and write frames to memory of the GPU."""

    def __init__(self, copies: SurfaceCopy) -> None:
        self._copies = copies

    def rows(self, frame: Any, number: int) -> npt.NDArray[np.uint8]:
        """Return the memory of a plane of a frame on the host, (rows, bytes with padding) uint8. Surfaces are copied."""
        if not is_surface(frame):
            return plane_rows(frame, number)
        height, pitch = _height(frame, number), frame.planes[number].line_size
        rows = np.empty((height, pitch), np.uint8)
        source = Rows(frame.planes[number].buffer_ptr, pitch, on_device=True)
        self._copies.copy(source, Rows(rows.ctypes.data, pitch, on_device=False), pitch, height)
        return rows

    def write(self, frame: Any, pixels: PixelFormat, target: ExternalFrame) -> None:
        """Copy a frame of a pixel format to memory of the GPU, from a surface or from the host."""
        if is_surface(frame):
            planes = frame.planes[: len(target)]  # where luma alone is scored, chroma has no place
            for plane, place in zip(planes, target, strict=True):
                self._copy(Rows(plane.buffer_ptr, plane.line_size, on_device=True), place)
            return
        for samples, place in zip(_as_in_surfaces(frame, pixels, target), target, strict=True):
            self._copy(Rows(samples.ctypes.data, samples.strides[0], on_device=False), place)

    def _copy(self, source: Rows, target: ExternalPlane) -> None:
        self._copies.copy(source, Rows(target.address, target.pitch, on_device=True), target.row_bytes, target.height)


@dataclass(slots=True)  # making a frozen one takes longer, and there is one for each frame
class DecodedFrame:
    """A frame of a clip that a GPU decodes, in a surface, or on the host where the processor had to go on.

    Several threads may copy it. The decoder gets the surface back when nothing refers to this object any more.
    """

    frame: Any
    pixels: PixelFormat
    reader: SurfaceReader

    def write(self, target: ExternalFrame) -> None:
        """Copy it to memory of the GPU."""
        self.reader.write(self.frame, self.pixels, target)

    def copy(self, target: Planes) -> None:
        """Copy the planes that are asked for to memory of the host."""
        self.pixels.copy(self.frame, target, self.reader.rows)


def _as_in_surfaces(frame: Any, pixels: PixelFormat, target: ExternalFrame) -> Planes:
    """Return the planes of a frame of the host as they lie in surfaces: chroma in one plane, and samples in the upper bits."""
    dtype = np.dtype(np.uint8 if pixels.bits == 8 else np.uint16)
    planes = tuple(np.empty((place.height, place.row_bytes // dtype.itemsize), dtype) for place in target)
    luma, *chroma = planes
    pixels.copy(frame, (luma, *(plane[:, first::2] for plane in chroma for first in range(2))))
    for plane, place in zip(planes, target, strict=True):
        np.left_shift(plane, place.shift, out=plane)
    return planes


def _height(frame: Any, number: int) -> int:
    """Return the rows of a plane of 4:2:0."""
    return int(frame.height if number == 0 else -(-frame.height // 2))
