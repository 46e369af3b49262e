"""Crop to a rectangle, find the rectangle without black bars, and turn pictures by the display matrix of their stream."""

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


@dataclass(frozen=True)
class Orientation:
    """A step that transposes pictures, then mirrors them top to bottom, then left to right."""

    transposed: bool
    upside_down: bool
    mirrored: bool

    def info(self, before: VideoInfo) -> VideoInfo:
        """Return the facts about the turned stream. Chroma whose turned format has no name (4:1:1) is left out."""
        after = replace(before, notes=(*before.notes, f"turned as its display matrix says: {self}"))
        if not self.transposed:
            return after
        steps = CHROMA_STEPS[before.chroma]
        turned = None if steps is None else (steps[1], steps[0])
        chroma = next((name for name, its_steps in CHROMA_STEPS.items() if its_steps == turned), "400")
        aspect = None if before.sample_aspect is None else 1 / before.sample_aspect
        return replace(after, width=before.height, height=before.width, chroma=chroma, sample_aspect=aspect)

    def __call__(self, planes: Planes) -> Planes:
        """Return the turned planes, as views."""
        rows, columns = (slice(None, None, -1 if flipped else 1) for flipped in (self.upside_down, self.mirrored))
        return tuple((plane.T if self.transposed else plane)[rows, columns] for plane in planes)

    def __str__(self) -> str:
        rotations = {
            (False, True, True): "by 180 degrees",
            (True, True, False): "by 90 degrees counter-clockwise",
            (True, False, True): "by 90 degrees clockwise",
        }
        changes = {"transposed": self.transposed, "upside down": self.upside_down, "mirrored": self.mirrored}
        words = ", ".join(name for name, done in changes.items() if done)
        return rotations.get((self.transposed, self.upside_down, self.mirrored), words)


def by_degrees(rotation: int) -> Orientation | None:
    """Return a counter-clockwise rotation by -180 to 180 degrees; None for 0 and for any other than a multiple of 90."""
    turns = {90: (True, True, False), -90: (True, False, True), 180: (False, True, True), -180: (False, True, True)}
    return Orientation(*turns[rotation]) if rotation in turns else None


def orientation(display_matrix: bytes) -> Orientation | None:
    """Return the orientation of a display matrix (ISO/IEC 14496-12, 9 int32).

    Return None for the identity, and for rotations by other than a multiple of 90 degrees. A decoded point (x, y) is shown at
    (a x + c y, b x + d y), where the matrix begins with a b u c d v.
    """
    a, b, _, c, d, *_ = (int(value) for value in np.frombuffer(display_matrix, np.int32))
    if b == c == 0 and a and d:
        turned = Orientation(False, d < 0, a < 0)
    elif a == d == 0 and b and c:
        turned = Orientation(True, b < 0, c < 0)
    else:
        return None
    return turned if turned != Orientation(False, False, False) else None
