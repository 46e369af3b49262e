"""PyAV's frames: their planes as arrays, and their conversion by libswscale."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

_EXACT = 0x40000 | 0x80000  # SWS_ACCURATE_RND, SWS_BITEXACT: the same on every CPU


def planar_name(chroma: str, bits: int) -> str:
    """Return FFmpeg's name of the format that has the planes of `vkssim.types`: Y, Cb and Cr, or grey."""
    return ("gray" if chroma == "400" else f"yuv{chroma}p") + ("" if bits == 8 else f"{bits}le")


def new_picture(width: int, height: int, name: str) -> tuple[Any, tuple[npt.NDArray[Any], ...]]:
    """Return an av.VideoFrame of a format, and its planes as arrays that can be written to."""
    from av import VideoFrame

    frame = VideoFrame(width, height, name)
    return frame, tuple(plane_of(frame, number) for number in range(len(frame.planes)))


def plane_of(frame: Any, number: int) -> npt.NDArray[Any]:
    """Return a plane of an av.VideoFrame of little-endian samples as (rows, columns) uint8 or uint16, not copied."""
    plane = frame.planes[number]
    rows = np.frombuffer(plane, np.uint8).reshape(-1, plane.line_size)
    kind = np.dtype(np.uint8) if frame.format.components[0].bits == 8 else np.dtype("<u2")
    return plane_samples(rows, kind)[: plane.height, : plane.width]


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


def interpolation(resampler: str) -> int:
    """Return libswscale's flags for a resampler, with the same results on every CPU."""
    from av.video.reformatter import Interpolation

    return int(Interpolation[resampler.upper()].value | _EXACT)


def scaled_plane(plane: npt.NDArray[Any], width: int, height: int, bits: int, scale: Callable[..., Any], flags: int) -> Any:
    """Return a plane of samples of `bits` bits, scaled by a function of `new_scaler` with flags of `interpolation`."""
    frame, (grey,) = new_picture(plane.shape[1], plane.shape[0], planar_name("400", bits))
    grey[:] = plane
    return plane_of(scale(frame, width, height, interpolation=flags), 0)


def luma_checksum(frame: Any) -> int:
    """Return the CRC-32 of the luma of an av.VideoFrame, by which a frame is known again."""
    return zlib.crc32(np.ascontiguousarray(plane_of(frame, 0)).data)
