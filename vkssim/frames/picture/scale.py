"""Scale and deepen pictures, so that clips of different size or depth can be compared, and compare their shapes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from ...types import Planes, plane_shapes
from ..info import VideoInfo, check_size
from .pixels import new_picture, new_scaler, planar_name, plane_of

_EXACT = 0x40000 | 0x80000  # SWS_ACCURATE_RND, SWS_BITEXACT: the same on every processor


@dataclass(frozen=True)
class Scale:
    """A step that scales each plane separately with libswscale. Samples lie at the centres of their areas.

    `bits` and `chroma` describe the frames before the step, and `sample_aspect` the frames after it.
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
        note = f"scaled from {before.width}x{before.height} to {self.width}x{self.height}, {self.resampler}"
        after = replace(before, width=self.width, height=self.height, sample_aspect=self.sample_aspect)
        warning = stretched(before, after)
        warnings = before.warnings if warning is None else (*before.warnings, warning)
        return replace(after, notes=(*before.notes, note), warnings=warnings, resampler=self.resampler)

    def __call__(self, planes: Planes) -> Planes:
        """Return the scaled planes."""
        flags = interpolation(self.resampler)
        shapes = plane_shapes(self.width, self.height, self.chroma)
        scaled = []
        for plane, (height, width), scale in zip(planes, shapes, self._scalers(), strict=False):
            scaled.append(plane_of(scale(self._frame(plane), width, height, interpolation=flags), 0))
        return tuple(scaled)

    def _scalers(self) -> list[Callable[..., Any]]:
        """Return a scaler for each plane and thread, because each keeps its tables for one size."""
        if not hasattr(self._kept, "scalers"):
            self._kept.scalers = [new_scaler() for _ in range(3)]
        kept: list[Callable[..., Any]] = self._kept.scalers
        return kept

    def _frame(self, plane: np.ndarray) -> Any:
        height, width = plane.shape
        frame, (grey,) = new_picture(width, height, planar_name("400", self.bits))
        grey[:] = plane
        return frame


def interpolation(resampler: str) -> int:
    """Return libswscale's flags for a resampler, with the same results on every processor."""
    from av.video.reformatter import Interpolation

    return int(Interpolation[resampler.upper()].value | _EXACT)


@dataclass(frozen=True)
class ToBitDepth:
    """A step that multiplies samples by a power of two.

    libvmaf divides samples of b bits by 2^(b-8), so scores stay the same to the bit. Only the limit of `clip_db` depends on the
    depth.
    """

    shift: int

    def info(self, before: VideoInfo) -> VideoInfo:
        """Return the facts about the deeper stream."""
        bits = before.bits + self.shift
        return replace(before, bits=bits, notes=(*before.notes, f"brought from {before.bits} to {bits} bits, exactly"))

    def __call__(self, planes: Planes) -> Planes:
        """Return the deeper planes."""
        return tuple(plane.astype(np.uint16) << self.shift for plane in planes)


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
        return f"{are}; they must be alike. `deepen` brings the clip of less depth to the depth of the other, exactly"
    if is_scaled(first, second):
        depth = "" if first.bits == second.bits else ", and the clip of less depth to the depth of the other"
        return f"{are}; they must be alike. `scale=reference` brings both to the size of the reference{depth}"
    depth = "" if first.bits == second.bits else ". `deepen` makes their depth alike"
    return (
        f"{are}; they must be alike, and their shapes differ ({shape(first):.3g}:1 and {shape(second):.3g}:1), as if one was"
        f" cropped. {_crop_cure(first, second)}{depth}"
    )


def _crop_cure(first: VideoInfo, second: VideoInfo) -> str:
    """Return how to crop the clip that shows more. If one side is equal, it is known which clip, and where its middle is."""
    for name, large, small in (("crop_reference", first, second), ("crop_distorted", second, first)):
        across, down = large.width - small.width, large.height - small.height
        if min(across, down) == 0 < max(across, down):
            middle = f"{small.width}x{small.height}+{across // 4 * 2}+{down // 4 * 2}"
            return f"`{name}=auto` removes the black bars of {large.path}, `{name}={middle}` keeps the middle of its pictures"
    return (
        "Crop the clip that shows more: `crop_reference` or `crop_distorted` with auto, which removes black bars, or with"
        " WxH+X+Y"
    )


def stretched(before: VideoInfo, after: VideoInfo) -> str | None:
    """Return the warning on a clip whose shape scaling has changed; None if its shape is the same."""
    if is_scaled(before, after):
        return None
    return (
        f"{before.path} was stretched from {before.width}x{before.height} to {after.width}x{after.height}: its shape changed"
        f" from {shape(before):.3g}:1 to {shape(after):.3g}:1. If one of the clips was cropped, crop the other"
        " (--crop-reference, --crop-distorted) instead of scaling it"
    )
