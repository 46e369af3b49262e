"""Crop to a rectangle, and find the rectangle without black bars."""

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
    """A step that crops to a rectangle of luma samples and its chroma.

    `note` is added to the note of the step. `from_clip` is True if the clip states the rectangle itself, and `own` if one clip
    alone is cropped.
    """

    width: int
    height: int
    left: int = 0
    top: int = 0
    note: str = ""
    from_clip: bool = False
    own: bool = False

    @classmethod
    def parse(cls, text: str, *, own: bool = False) -> Crop:
        """Return the rectangle of WxH+X+Y, or of WxH at the upper left. Raises OptionError."""
        match = _RECTANGLE.fullmatch(text)
        if match is None:
            raise OptionError(f"crop is {text!r}; auto or WxH+X+Y is possible, such as 1920x800+0+140")
        width, height, left, top = (int(number or 0) for number in match.groups())
        return cls(width, height, left, top, own=own)

    def info(self, before: VideoInfo) -> VideoInfo:
        """Return the facts about the cropped stream. Raises InputError if the rectangle does not lie within the frames."""
        if not (
            self.width and self.height and self.left + self.width <= before.width and self.top + self.height <= before.height
        ):
            alone = "" if self.own or self.from_clip else "; `crop_reference` and `crop_distorted` crop one clip alone"
            size = f"{before.width}x{before.height}"
            raise InputError(f"crop to {self} does not lie within {before.path}, which is {size}{alone}")
        chroma = before.chroma if self._aligned(before) else "400"  # luma alone can be cropped to any rectangle
        notes = (*before.notes, f"cropped to {self}{self.note}")
        after = replace(before, width=self.width, height=self.height, chroma=chroma, notes=notes)
        if self.from_clip:
            return after
        return replace(after, own_crop=str(self)) if self.own else replace(after, crop=str(self))

    def check_aligned(self, before: VideoInfo) -> None:
        """Raise InputError if chroma has no sample at the upper left of the rectangle."""
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
    """Return the smallest rectangle, on even samples, that contains the pictures of all frames without their black bars.

    Return None if there are no bars, or if all is black. `own` is True if this clip alone is cropped; otherwise the frames are
    from the reference.
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
    source = "" if own else " of the reference"
    return Crop(right - left, below - top, left, top, f" (black bars off, found in {count} frames{source})", own=own)


def _extent(lit: np.ndarray, grid: int) -> tuple[int, int]:
    """Return the range from the first lit row or column to the end of the last one, widened to a grid."""
    (indices,) = lit.nonzero()
    return int(indices[0]) // grid * grid, min(len(lit), -(-int(indices[-1] + 1) // grid) * grid)
