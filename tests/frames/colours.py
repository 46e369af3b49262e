"""Clips whose Cb and Cr have pictures of their own, so that a metric of chroma notices samples of another plane."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import av
import numpy as np

from vkssim.frames.picture.pixels import plane_rows, plane_samples

from ..support.pictures import Picture, clip
from .encoding import encode_frames


def encode_colours(
    path: Path, size: tuple[int, int], frames: int, pixel_format: str = "yuv420p", codec: str = "libx264", **options: str
) -> None:
    """Encode 4:2:0 of 8 or 10 bits, 25 frames a second; `size` is width and height, which need not be even for VP9."""
    noise, frames_of = np.random.default_rng(3), [av.VideoFrame(*size, pixel_format) for _ in range(frames)]
    for frame, luma in zip(frames_of, clip(frames, *size[::-1]), strict=True):
        fill(frame, luma, noise)
    encode_frames(path, frames_of, codec, options=options)


def fill(frame: Any, luma: Picture, noise: np.random.Generator) -> None:
    """Fill a planar frame of 4:2:0: its Y from 8 bits of luma, Cb from them too, and Cr from their negative, with noise."""
    high = frame.format.components[0].bits > 8
    half = luma[::2, ::2].astype(np.int16)
    grain = noise.integers(-9, 10, (2, *half.shape))
    for number, samples in enumerate((luma, np.clip(half + grain[0], 0, 255), np.clip(255 - half + grain[1], 0, 255))):
        plane = frame.planes[number]
        plane.update(bytes(plane.buffer_size))
        rows = plane_samples(plane_rows(frame, number), np.dtype(np.uint16 if high else np.uint8))
        height, width = samples.shape
        rows[:height, :width] = samples.astype(rows.dtype) << (2 if high else 0)
