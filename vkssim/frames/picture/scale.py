"""Scale and deepen pictures, so that clips of different size or depth can be compared."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from ...types import Planes, plane_shapes
from ..info import VideoInfo
from ..layout import check_size
from .pixels import new_picture, new_scaler, planar_name, plane_of
from .shape import stretched

_EXACT = 0x40000 | 0x80000  # SWS_ACCURATE_RND, SWS_BITEXACT: the same on every processor


@dataclass(frozen=True)
class Scale:
    """Scale every plane by itself with libswscale; samples lie at the centres of their areas.

    `bits` and `chroma` are those of the frames that come in, `sample_aspect` is that of the frames that go out.
    """

    width: int
    height: int
    resampler: str
    bits: int
    chroma: str
    sample_aspect: Fraction | None = None
    _kept: threading.local = field(default_factory=threading.local, repr=False, compare=False)

    def info(self, before: VideoInfo) -> VideoInfo:
        """Return what is known of the scaled stream, with a warning where it is stretched."""
        check_size(self.width, self.height)
        note = f"scaled from {before.width}x{before.height} to {self.width}x{self.height}, {self.resampler}"
        after = replace(before, width=self.width, height=self.height, sample_aspect=self.sample_aspect)
        warning = stretched(before, after)
        warnings = before.warnings if warning is None else (*before.warnings, warning)
        return replace(after, notes=(*before.notes, note), warnings=warnings, resampler=self.resampler)

    def __call__(self, planes: Planes) -> Planes:
        """Return the scaled planes."""
        how = interpolation(self.resampler)
        shapes = plane_shapes(self.width, self.height, self.chroma)
        scaled = []
        for plane, (height, width), scale in zip(planes, shapes, self._scalers(), strict=False):
            scaled.append(plane_of(scale(self._frame(plane), width, height, interpolation=how), 0))
        return tuple(scaled)

    def _scalers(self) -> list[Callable[..., Any]]:
        """Return a scaler for each plane and thread, since each keeps what was worked out for one size."""
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
    """Multiply samples by a power of two. libvmaf divides those of b bits by 2^(b-8), so scores stay the same to the bit.

    Only the limit of `clip_db` depends on the depth.
    """

    shift: int

    def info(self, before: VideoInfo) -> VideoInfo:
        """Return what is known of the deeper stream."""
        bits = before.bits + self.shift
        return replace(before, bits=bits, notes=(*before.notes, f"brought from {before.bits} to {bits} bits, exactly"))

    def __call__(self, planes: Planes) -> Planes:
        """Return the deeper planes."""
        return tuple(plane.astype(np.uint16) << self.shift for plane in planes)
