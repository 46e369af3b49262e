"""Frames in surfaces: the memory of the GPU that decoded them. FFmpeg does not copy them to the host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ...types import ExternalFrame, ExternalPlane, Planes
from .pixels import PixelFormat, plane_rows

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
        height, pitch = _height(frame, number), frame.planes[number].line_size
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


def _height(frame: Any, number: int) -> int:
    """Return the number of rows of a plane of 4:2:0."""
    return int(frame.height if number == 0 else -(-frame.height // 2))
