"""Reads and writes the pictures of the examples with PyAV, as (C, H, W) tensors of float32 in 0..1."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - as everyone calls it
from torch import Tensor

from vkssim.errors import InputError

CLIP = Path(__file__).resolve().parent.parent / "fixtures" / "bbb_576x324_ref.mp4"
"""The clip that the examples take their pictures from by default."""

_GAP = 4


def read_picture(path: Path, height: int | None = None, *, first: bool = False) -> Tensor:
    """Return the picture of an image file, or the last or first one of a clip: (3, H, W) RGB, scaled to `height` if given."""
    try:
        with av.open(str(path)) as container:
            frames = container.decode(video=0)
            (frame,) = [next(frames)] if first else deque(frames, maxlen=1)
    except (av.FFmpegError, IndexError, StopIteration, ValueError) as error:  # not a medium, no video stream, no frame in it
        raise InputError(f"{path}: no picture that FFmpeg can read ({error})") from None
    if height is not None:
        frame = frame.reformat(width=round(frame.width * height / frame.height), height=height, interpolation="AREA")
    return torch.from_numpy(frame.to_ndarray(format="rgb24").copy()).permute(2, 0, 1) / 255


def write_picture(path: Path, picture: Tensor) -> None:
    """Write a (3, H, W) RGB picture as PNG, clipped to 0..1."""
    samples = (255 * picture.clamp(0, 1)).round().to(torch.uint8).permute(1, 2, 0)
    frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(samples.numpy()), format="rgb24")
    encoder = av.CodecContext.create("png", "w")
    encoder.width, encoder.height, encoder.pix_fmt, encoder.framerate = frame.width, frame.height, "rgb24", Fraction(1)
    path.write_bytes(b"".join(bytes(packet) for packet in [*encoder.encode(frame), *encoder.encode(None)]))


def psnr(pictures: Tensor, references: Tensor) -> float:
    """Return the PSNR in dB of pictures, clipped to 0..1."""
    return float(-10 * (pictures.clamp(0, 1) - references).square().mean().log10())


def gaussian_blur(pictures: Tensor, deviation: float) -> Tensor:
    """Return (N, C, H, W) pictures blurred by a Gaussian, borders mirrored."""
    radius = math.ceil(3 * deviation)
    taps = torch.exp(-(torch.arange(-radius, radius + 1) ** 2) / (2 * deviation**2))
    taps = (taps / taps.sum()).repeat(pictures.shape[1], 1, 1, 1)
    padded = F.pad(pictures, (radius,) * 4, "reflect")
    return F.conv2d(F.conv2d(padded, taps, groups=len(taps)), taps.mT, groups=len(taps))


def sheet(rows: Sequence[Sequence[Tensor]]) -> Tensor:
    """Return rows of (3, H, W) pictures of one size as one picture, with white gaps between them."""
    framed = [torch.cat([F.pad(picture, (0, _GAP, 0, _GAP), value=1.0) for picture in row], dim=2) for row in rows]
    return torch.cat(framed, dim=1)[:, :-_GAP, :-_GAP]
