"""Clips as files: raw YUV and Y4M, written the plain way, from (frames, H, W) luma."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from .pictures import Picture

CHROMA = {
    "420": (2, 2, 2),
    "422": (2, 1, 2),
    "411": (2, 1, 4),
    "444": (2, 1, 1),
    "444alpha": (3, 1, 1),
    "400": (0, 1, 1),
}
"""Further planes of a pixel format: how many, and every how many rows and columns they have a sample."""


def frame_bytes(luma: Picture, pixel_format: str) -> Iterator[bytes]:
    """Each frame as planar bytes. Chroma is noise, so that reading it as luma gives something else."""
    planes, row_step, column_step = CHROMA[pixel_format]
    rng = np.random.default_rng(7)
    peak = (1 << int(luma.max(initial=1)).bit_length()) - 1  # of the same depth, as far as the luma shows it
    for frame in luma:
        others = rng.integers(0, peak, (planes, *frame[::row_step, ::column_step].shape), luma.dtype)
        yield frame.astype(frame.dtype.newbyteorder("<")).tobytes() + others.astype(others.dtype.newbyteorder("<")).tobytes()


def raw_bytes(luma: Picture, pixel_format: str = "420") -> bytes:
    """A raw clip."""
    return b"".join(frame_bytes(luma, pixel_format))


def y4m_bytes(
    luma: Picture, colour_space: str | None = "420", pixel_format: str = "420", frame_header: bytes = b"FRAME\n"
) -> bytes:
    """A Y4M clip; no colour space writes none in the header."""
    tag = f" C{colour_space}" if colour_space is not None else ""
    header = f"YUV4MPEG2 W{luma.shape[2]} H{luma.shape[1]} F30:1 Ip A1:1{tag}\n".encode()
    return header + b"".join(frame_header + frame for frame in frame_bytes(luma, pixel_format))


def write(path: Path, data: bytes) -> str:
    """Write a file; returns its name as the command line takes it."""
    path.write_bytes(data)
    return str(path)


def raw_flags(luma: Picture, pixel_format: str = "420", bits: int = 8) -> tuple[str, ...]:
    """The flags that describe a raw clip."""
    return ("-w", str(luma.shape[2]), "-h", str(luma.shape[1]), "-p", pixel_format, "-b", str(bits))
