"""Pictures for encoders: a real clip, made smaller, moved by a steady pan, with a little noise and one cut."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import av
import numpy as np

from vkssim.types import CHROMA_STEPS, Planes

SOURCE = Path(__file__).resolve().parents[2] / "fixtures" / "bbb_576x324_ref.mp4"

_PAN = 3  # samples a frame
_NOISE = 3  # largest value that is added, in steps of 8 bits
_CUT = 27  # the frame after which the picture is another part of the clip


def picture(number: int, width: int, height: int, chroma: str = "420", bits: int = 8) -> Planes:
    """Return the planes of a frame: (H, W) luma, and chroma if there is any, uint8 or uint16, of limited range.

    Everything is integer arithmetic of NumPy, so that the planes are the same on every machine.
    """
    rng = np.random.default_rng(number)
    pan = _PAN * number + (width if number > _CUT else 0)
    rows = np.arange(height) + number // 4
    columns = np.arange(width) + pan
    steps = CHROMA_STEPS[chroma]
    planes: list[np.ndarray] = []
    for plane, (row_step, column_step) in zip(_source(number), [(1, 1)] + [steps] * 2 if steps else [(1, 1)], strict=False):
        part = plane.take(rows[::row_step], 0, mode="wrap").take(columns[::column_step], 1, mode="wrap")
        if row_step == column_step == 1 and not planes:
            part = np.clip(part + rng.integers(-_NOISE, _NOISE + 1, part.shape), 16, 235)
        deep = (part.astype(np.uint16) << (bits - 8)) + rng.integers(0, 1 << (bits - 8), part.shape, np.uint16)
        planes.append(deep.astype(np.uint8 if bits == 8 else np.uint16))
    return tuple(planes)


def woven(number: int, width: int, height: int, *, bottom_first: bool = False) -> Planes:
    """Return an interlaced 4:2:0 frame of 8 bits: its two fields are of different moments."""
    earlier, later = (picture(2 * number + field, width, height) for field in (0, 1))
    for plane, other in zip(earlier, later, strict=True):
        plane[0 if bottom_first else 1 :: 2] = other[0 if bottom_first else 1 :: 2]
    return earlier


def _source(number: int) -> Planes:
    """Return the planes of a frame of the source, all of the size of its chroma; frames go forth and back."""
    clip = _clip()
    number %= 2 * len(clip) - 2
    return clip[min(number, 2 * len(clip) - 2 - number)]


@cache
def _clip() -> list[Planes]:
    with av.open(str(SOURCE)) as container:
        return [_halved(frame) for frame in container.decode(video=0)]


def _halved(frame: Any) -> Planes:
    luma, *chroma = (
        np.frombuffer(plane, np.uint8).reshape(-1, plane.line_size)[: plane.height, : plane.width] for plane in frame.planes
    )
    rows = luma[::2].astype(np.int16) + luma[1::2]
    return (rows[:, ::2] + rows[:, 1::2] + 2) // 4, *(plane.astype(np.int16) for plane in chroma)
