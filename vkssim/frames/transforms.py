"""The steps that change pictures: crop, turn, scale and deepen; and how the shapes of two clips compare."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from ..errors import InputError, OptionError
from ..types import CHROMA_STEPS, Planes, Samples, plane_shapes
from ..utils.av_frames import interpolation, new_scaler, scaled_plane
from .info import VideoInfo, check_size
from .pixels import CHROMA_OF

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
        right, below = self.left + self.width, self.top + self.height
        if not (self.width and self.height and right <= before.width and below <= before.height):
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
    indices = np.flatnonzero(lit)
    return int(indices[0]) // grid * grid, min(len(lit), -(-int(indices[-1] + 1) // grid) * grid)


_ROTATIONS = {90: "by 90 degrees clockwise", 180: "by 180 degrees", 270: "by 90 degrees counter-clockwise"}
_TURNS = {90: (True, False, True), 180: (False, True, True), 270: (True, True, False)}
"""The fields of `Orientation` for each clockwise rotation."""


@dataclass(frozen=True)
class Orientation:
    """A step that transposes pictures, then mirrors them top to bottom, then left to right.

    `requested` is True if the user asked for it, and False if the clip states it.
    """

    transposed: bool
    upside_down: bool
    mirrored: bool
    requested: bool = False

    @property
    def rotation(self) -> int:
        """Return the rotation in degrees, clockwise; 0 if pictures are mirrored as well."""
        fields = self.transposed, self.upside_down, self.mirrored
        return next((degrees for degrees, turn in _TURNS.items() if turn == fields), 0)

    def info(self, before: VideoInfo) -> VideoInfo:
        """Return the facts about the turned stream. Chroma whose turned format has no name (4:1:1) is left out."""
        note = f"turned {self}" if self.requested else f"turned as its display matrix says: {self}"
        after = replace(before, notes=(*before.notes, note))
        if not self.requested:
            after = replace(after, rotation=self.rotation)
        if not self.transposed:
            return after
        steps = CHROMA_STEPS[before.chroma]
        chroma = "400" if steps is None else CHROMA_OF.get(steps[::-1], "400")
        return replace(swapped(after), chroma=chroma)

    def __call__(self, planes: Planes) -> Planes:
        """Return the turned planes, as views."""
        rows, columns = (slice(None, None, -1 if flipped else 1) for flipped in (self.upside_down, self.mirrored))
        return tuple((plane.T if self.transposed else plane)[rows, columns] for plane in planes)

    def __str__(self) -> str:
        if self.rotation:
            return _ROTATIONS[self.rotation]
        changes = {"transposed": self.transposed, "upside down": self.upside_down, "mirrored": self.mirrored}
        return ", ".join(name for name, done in changes.items() if done)


def swapped(info: VideoInfo) -> VideoInfo:
    """Return the facts with width and height swapped."""
    aspect = None if info.sample_aspect is None else 1 / info.sample_aspect
    return replace(info, width=info.height, height=info.width, sample_aspect=aspect)


def requested_turn(clockwise: int) -> Orientation | None:
    """Return the clockwise rotation by 90, 180 or 270 degrees that the user requests; None for 0 degrees."""
    return Orientation(*_TURNS[clockwise], requested=True) if clockwise else None


def orientation(display_matrix: bytes) -> Orientation | None:
    """Return the orientation of a display matrix (ISO/IEC 14496-12, 9 int32).

    Return None for the identity, and for rotations by an angle that is no multiple of 90 degrees. A decoded point (x, y) is
    shown at (a x + c y, b x + d y), where the matrix begins with a b u c d v.
    """
    a, b, _, c, d, *_ = (int(value) for value in np.frombuffer(display_matrix, np.int32))
    if b == c == 0 and a and d:
        turned = Orientation(False, d < 0, a < 0)
    elif a == d == 0 and b and c:
        turned = Orientation(True, b < 0, c < 0)
    else:
        return None
    return turned if turned != Orientation(False, False, False) else None


@dataclass(frozen=True)
class Scale:
    """A step that scales each plane separately with libswscale. Samples lie at the centres of their areas.

    Frames may differ in size; those that have the new size already stay as they are. `bits` and `chroma` describe the frames
    before the step, and `sample_aspect` the frames after it.
    """

    width: int
    height: int
    resampler: str
    bits: int
    chroma: str
    sample_aspect: Fraction | None = None
    _kept: threading.local = field(default_factory=threading.local, repr=False, compare=False)

    def info(self, before: VideoInfo) -> VideoInfo:
        """Return the facts about the scaled stream, with a warning if it is stretched."""
        check_size(self.width, self.height)
        if (self.width, self.height) == (before.width, before.height):
            return before
        note = f"scaled from {before.width}x{before.height} to {self.width}x{self.height}, {self.resampler}"
        scaling = Fraction(self.width, before.width), Fraction(self.height, before.height)
        after = replace(before, width=self.width, height=self.height, sample_aspect=self.sample_aspect, scaling=scaling)
        warning = stretched(before, after)
        warnings = before.warnings if warning is None else (*before.warnings, warning)
        return replace(after, notes=(*before.notes, note), warnings=warnings, resampler=self.resampler)

    def __call__(self, planes: Planes) -> Planes:
        """Return the scaled planes."""
        if not hasattr(self._kept, "scalers"):  # one for each plane and thread, because each keeps its tables for one size
            self._kept.scalers = [new_scaler() for _ in range(3)]
        flags = interpolation(self.resampler)
        shapes = plane_shapes(self.width, self.height, self.chroma)
        return tuple(
            plane if plane.shape == (height, width) else scaled_plane(plane, width, height, self.bits, scale, flags)
            for plane, (height, width), scale in zip(planes, shapes, self._kept.scalers, strict=False)
        )


@dataclass(frozen=True)
class ToBitDepth:
    """A step that raises samples from one depth to another.

    libvmaf divides samples of b bits by 2^(b-8), so a multiplication by a power of two changes no score by a bit; only the
    limit of `clip_db` depends on the depth. But white of full range is 2^b - 1, so such samples are multiplied by the quotient
    of both whites, chroma from its middle on, as ITU-T H.273 defines them. They are rounded to integers of the new depth,
    because an encoder of that depth gets such integers as well.
    """

    before: int
    after: int
    is_full_range: bool

    def info(self, before: VideoInfo) -> VideoInfo:
        """Return the facts about the deeper stream."""
        white, new_white = self._whites
        how = f" of full range, times {new_white}/{white}" if self.is_full_range else ", exactly"
        note = f"brought from {self.before} to {self.after} bits{how}"
        return replace(before, bits=self.after, own_bits=self.before, notes=(*before.notes, note))

    def __call__(self, planes: Planes) -> Planes:
        """Return the deeper planes."""
        if not self.is_full_range:
            return tuple(plane.astype(np.uint16) << (self.after - self.before) for plane in planes)
        white, new_white = self._whites
        less = (new_white << (self.before - 1)) - (white << (self.after - 1))  # so the middle of chroma becomes the new middle
        luma, *chroma = planes
        return self._to_new_white(luma), *(self._to_new_white(plane, less) for plane in chroma)

    def _to_new_white(self, plane: Samples, less: int = 0) -> Samples:
        """Return (samples * new white - less) / white, rounded, and 0 for results below 0."""
        white, new_white = self._whites
        products = np.multiply(plane, new_white, dtype=np.uint32)
        products += white // 2  # white is odd, so no result lies in the middle between two integers
        np.maximum(products, less, out=products)
        products -= less
        products //= white
        return products.astype(np.uint16)

    @property
    def _whites(self) -> tuple[int, int]:
        """Return white of full range before and after the step."""
        return (1 << self.before) - 1, (1 << self.after) - 1


_ROUNDING = 2  # samples: many encoders need even sides


def shape(info: VideoInfo) -> float:
    """Return the displayed width of the pictures, divided by their height."""
    return float(Fraction(info.width, info.height) * (info.sample_aspect or 1))


def is_scaled(first: VideoInfo, second: VideoInfo) -> bool:
    """Return whether the pictures of one clip can be scaled pictures of the other, with rounded sides.

    The samples may be other than square (576 lines of 720 samples for 1024x576), even if the clip does not state that.
    """
    sizes = [(Fraction(info.width), Fraction(info.height)) for info in (first, second)]
    displayed = [(info.width * (info.sample_aspect or 1), Fraction(info.height)) for info in (first, second)]
    return any(_is_proportional(*pair) for pair in (sizes, displayed))


def _is_proportional(first: tuple[Fraction, Fraction], second: tuple[Fraction, Fraction]) -> bool:
    small, large = sorted((first, second))
    if small[0] == large[0] or small[1] == large[1]:  # with one equal side, a different other side was cropped, not rounded
        return small == large
    across, down = large[0] / small[0], large[1] / small[1]
    return abs(small[1] - large[1] / across) <= _ROUNDING or abs(small[0] - large[0] / down) <= _ROUNDING


def unlike(first: VideoInfo, second: VideoInfo) -> str:
    """Return the message about two clips, reference first, that differ in size or depth, and the cure."""
    are = ", ".join(f"{info.path} is {info.width}x{info.height} with {info.bits} bits" for info in (first, second))
    if (first.width, first.height) == (second.width, second.height):
        return f"{are}; they must be alike. `deepen` brings the clip of less depth to the depth of the other"
    deeper = "" if first.bits == second.bits else ", and the clip of less depth to the depth of the other"
    if is_scaled(first, second):
        return f"{are}; they must be alike. `scale=reference` brings both to the size of the reference{deeper}"
    if is_scaled(first, swapped(second)):
        alike = (first.width, first.height, first.bits) == (second.height, second.width, second.bits)
        scale = "" if alike else f". `scale=reference` then brings both to the size of the reference{deeper}"
        return f"{are}; they must be alike, and one of them seems to be turned: {_turn_cure(first, second)}{scale}"
    depth = "" if first.bits == second.bits else ". `deepen` makes their depth alike"
    return (
        f"{are}; they must be alike, and their shapes differ ({shape(first):.3g}:1 and {shape(second):.3g}:1), as if one was"
        " cropped. Crop the clip that shows more: `crop_reference` or `crop_distorted` with auto, which removes black bars, or"
        f" with WxH+X+Y{depth}"
    )


def _turn_cure(first: VideoInfo, second: VideoInfo) -> str:
    """Return which of two clips with swapped sizes is turned, if one alone states it, and how to turn the other."""
    for name, clip, turned in (("turn_distorted", second, first), ("turn_reference", first, second)):
        if turned.rotation and not clip.rotation:
            return (
                f"the display matrix of {turned.path} turns it {_ROTATIONS[turned.rotation]}, and {clip.path} has none."
                f" `{name}={turned.rotation}` turns {clip.path} as well"
            )
    return "`turn_distorted=90` turns the distorted clip clockwise, `turn_distorted=270` counter-clockwise"


def stretched(before: VideoInfo, after: VideoInfo) -> str | None:
    """Return the warning on a clip whose shape scaling has changed; None if its shape is the same."""
    if is_scaled(before, after):
        return None
    return (
        f"{before.path} was stretched from {before.width}x{before.height} to {after.width}x{after.height}: its shape changed"
        f" from {shape(before):.3g}:1 to {shape(after):.3g}:1. If one of the clips was cropped or turned, crop or turn the"
        " other as well (--crop-distorted, --turn-distorted) instead of scaling it"
    )
