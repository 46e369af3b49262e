"""Hold what is known of a stream when it is opened."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ..types import Planes, plane_shapes

FIELD_ORDERS = ("progressive", "top field first", "bottom field first", "interlaced")
"""How the lines of a frame belong together; the last where it is not known which field comes first."""


@dataclass(frozen=True)
class VideoInfo:
    """Hold what is known of a stream when it is opened.

    `frames` is None where only reading to the end can tell, `fps` where the stream has no constant rate of its own, `matrix`,
    `range` ("full" or "limited"), `transfer` and `field_order` (see `FIELD_ORDERS`) where it does not state them. `notes` say
    what was done to its pictures, `warnings` what of that is to be warned of. `crop` is the rectangle that both clips were
    cropped to because somebody asked for it, `own_crop` the one that this clip alone was cropped to before that, and
    `resampler` what scaled them. `sample_aspect` is the width of a sample as it is shown, divided by its height; None where
    the stream does not state it.
    """

    path: str
    kind: str
    width: int
    height: int
    bits: int
    frames: int | None = None
    fps: Fraction | None = None
    chroma: str = "400"
    matrix: str | None = None
    range: str | None = None
    notes: tuple[str, ...] = ()
    crop: str | None = None
    resampler: str | None = None
    transfer: str | None = None
    field_order: str | None = None
    sample_aspect: Fraction | None = None
    warnings: tuple[str, ...] = ()
    own_crop: str | None = None

    def new_planes(self, count: int) -> Planes:
        """Return memory for the first `count` planes of a frame, uint8 for 8 bits and uint16 for more."""
        dtype = np.uint8 if self.bits == 8 else np.uint16
        return tuple(np.empty(shape, dtype) for shape in plane_shapes(self.width, self.height, self.chroma)[:count])
