"""Pictures for the examples: read and written by PyAV, (C, H, W) tensors of float32 in 0..1 in between."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import torch
from torch import Tensor

from vkssim.errors import InputError

CLIP = Path(__file__).resolve().parent.parent / "fixtures" / "bbb_576x324_ref.mp4"
"""The picture that the examples take by default is the last of this clip."""

_GAP = 4


def read_picture(path: Path, height: int | None = None) -> Tensor:
    """The picture of an image file, or the last one of a clip: (3, H, W) RGB, scaled to `height` where that is given."""
    try:
        with av.open(str(path)) as container:
            (frame,) = deque(container.decode(video=0), maxlen=1)
    except (av.FFmpegError, IndexError, ValueError) as error:  # not a medium, no video stream, no frame in it
        raise InputError(f"{path}: no picture that FFmpeg can read ({error})") from None
    if height is not None:
        frame = frame.reformat(width=round(frame.width * height / frame.height), height=height, interpolation="AREA")
    return torch.from_numpy(frame.to_ndarray(format="rgb24").copy()).permute(2, 0, 1) / 255


def write_picture(path: Path, picture: Tensor) -> None:
    """Write a (3, H, W) RGB picture as PNG; what lies outside 0..1 is clipped."""
    samples = (255 * picture.clamp(0, 1)).round().to(torch.uint8).permute(1, 2, 0)
    frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(samples.numpy()), format="rgb24")
    encoder = av.CodecContext.create("png", "w")
    encoder.width, encoder.height, encoder.pix_fmt, encoder.framerate = frame.width, frame.height, "rgb24", Fraction(1)
    path.write_bytes(b"".join(bytes(packet) for packet in [*encoder.encode(frame), *encoder.encode(None)]))


def sheet(rows: Sequence[Sequence[Tensor]]) -> Tensor:
    """Rows of (3, H, W) pictures of one size as one, white gaps between them."""
    height, width = rows[0][0].shape[1:]
    columns = len(rows[0])
    whole = torch.ones(3, len(rows) * (height + _GAP) - _GAP, columns * (width + _GAP) - _GAP)
    for row, pictures in enumerate(rows):
        for column, picture in enumerate(pictures):
            top, left = row * (height + _GAP), column * (width + _GAP)
            whole[:, top : top + height, left : left + width] = picture
    return whole
