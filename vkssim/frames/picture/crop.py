"""Crop to a rectangle, or to what is left when black bars are taken off."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from ...errors import InputError, OptionError
from ...types import CHROMA_STEPS, Planes
from ..info import VideoInfo

_RECTANGLE = re.compile(r"(\d{1,6})x(\d{1,6})(?:\+(\d{1,6})\+(\d{1,6}))?")
_BLACK = 24  # of 255; rows and columns with a mean up to this are a bar, as in FFmpeg's cropdetect
_GRID = 2


@dataclass(frozen=True)
class Crop:
    """Crop to a rectangle of luma samples and the chroma that belongs to it.

    `asked` is False where the clip states the rectangle itself. `own` is True where one clip alone is cropped to it.
    """

    width: int
    height: int
    left: int = 0
    top: int = 0
    found: str = ""
    asked: bool = True
    own: bool = False

    @classmethod
    def parse(cls, text: str, *, own: bool = False) -> Crop:
        """Return the rectangle that WxH+X+Y says, or WxH at the upper left. Raises OptionError."""
        match = _RECTANGLE.fullmatch(text)
        if match is None:
            raise OptionError(f"crop is {text!r}; auto or WxH+X+Y is possible, such as 1920x800+0+140")
        width, height, left, top = (int(number or 0) for number in match.groups())
        return cls(width, height, left, top, own=own)

    def info(self, before: VideoInfo) -> VideoInfo:
        """Return what is known of the cropped stream. Raises InputError where the rectangle does not fit into it."""
        if not (
            self.width and self.height and self.left + self.width <= before.width and self.top + self.height <= before.height
        ):
            alone = "" if self.own else "; `crop_reference` and `crop_distorted` crop one of the clips alone"
            size = f"{before.width}x{before.height}"
            raise InputError(f"crop to {self} does not lie within {before.path}, which is {size}{alone if self.asked else ''}")
        chroma = before.chroma if self._aligned(before) else "400"  # luma alone can be cropped to any rectangle
        notes = (*before.notes, f"cropped to {self}{self.found}")
        after = replace(before, width=self.width, height=self.height, chroma=chroma, notes=notes)
        if not self.asked:
            return after
        return replace(after, own_crop=str(self)) if self.own else replace(after, crop=str(self))

    def check_aligned(self, before: VideoInfo) -> None:
        """Raise InputError where chroma has no samples at the upper left of the rectangle."""
        if not self._aligned(before):
            rows, columns = CHROMA_STEPS[before.chroma] or (1, 1)
            raise InputError(
                f"crop to {self} begins between samples of chroma of {before.path}, which is {before.chroma}: X must be a"
                f" multiple of {columns}, Y of {rows}"
            )

    def _aligned(self, info: VideoInfo) -> bool:
        rows, columns = CHROMA_STEPS[info.chroma] or (1, 1)
        return self.top % rows == 0 and self.left % columns == 0

    def __call__(self, planes: Planes) -> Planes:
        """Return the rectangle of each plane, as views."""
        height, width = planes[0].shape
        cropped = []
        for plane in planes:
            rows, columns = -(-height // plane.shape[0]), -(-width // plane.shape[1])
            top, left = self.top // rows, self.left // columns
            below, right = -(-(self.top + self.height) // rows), -(-(self.left + self.width) // columns)
            cropped.append(plane[top:below, left:right])
        return tuple(cropped)

    def __str__(self) -> str:
        return f"{self.width}x{self.height}+{self.left}+{self.top}"


def without_bars(frames: Iterable[Planes], info: VideoInfo, *, own: bool = False) -> Crop | None:
    """Return the smallest rectangle, on even samples, that has all that is not black bars in any of these frames.

    Return None where there is no bar, or nothing but black. `own` says that `info` is of the only clip to be cropped; otherwise
    it is the reference.
    """
    limit = _BLACK * 2.0 ** (info.bits - 8)
    rows, columns = np.zeros(info.height, bool), np.zeros(info.width, bool)
    count = 0
    for luma, *_ in frames:
        rows |= luma.mean(axis=1) > limit
        columns |= luma.mean(axis=0) > limit
        count += 1
    if not (rows.any() and columns.any()):
        return None
    steps = CHROMA_STEPS[info.chroma] or (1, 1)
    (top, below), (left, right) = (_extent(lit, max(_GRID, step)) for lit, step in zip((rows, columns), steps, strict=True))
    if (right - left, below - top) == (info.width, info.height):
        return None
    where = "" if own else " of the reference"
    return Crop(right - left, below - top, left, top, f" (black bars off, found in {count} frames{where})", own=own)


def _extent(lit: np.ndarray, grid: int) -> tuple[int, int]:
    """Return the range from the first to behind the last that is lit, widened to a grid."""
    (where,) = lit.nonzero()
    return int(where[0]) // grid * grid, min(len(lit), -(-int(where[-1] + 1) // grid) * grid)
