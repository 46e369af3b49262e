"""Describe where the planes lie within a planar frame."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from ..errors import InputError
from ..types import CHROMA_STEPS, plane_shapes, size_problem
from ..utils.choices import BIT_DEPTHS

PIXEL_FORMATS = (*CHROMA_STEPS, "444alpha")


def check_size(width: int, height: int) -> None:
    """Raise InputError where no frame can be of that size; asked before anything is allocated."""
    if problem := size_problem(width, height):
        raise InputError(problem)


@dataclass(frozen=True)
class PlanarLayout:
    """Describe a planar frame, luma first. Samples over 8 bits take two bytes, little-endian; odd sizes round chroma up."""

    width: int
    height: int
    pixel_format: str
    bits: int

    def __post_init__(self) -> None:
        check_size(self.width, self.height)
        if self.pixel_format not in PIXEL_FORMATS:
            raise InputError(f"pixel format {self.pixel_format!r}; {', '.join(PIXEL_FORMATS)} are possible")
        if self.bits not in BIT_DEPTHS:
            raise InputError(f"{self.bits} bits a sample; {', '.join(map(str, BIT_DEPTHS))} are possible")

    @property
    def chroma(self) -> str:
        """Return the chroma format, whether or not there is an alpha plane as well."""
        return self.pixel_format.removesuffix("alpha")

    @property
    def sample_bytes(self) -> int:
        """Return bytes of a sample."""
        return 1 if self.bits == 8 else 2

    @property
    def plane_bytes(self) -> list[int]:
        """Return bytes of each plane, alpha included."""
        shapes = plane_shapes(self.width, self.height, self.chroma)
        alpha = shapes[:1] if self.pixel_format.endswith("alpha") else []
        return [height * width * self.sample_bytes for height, width in shapes + alpha]

    @property
    def plane_offsets(self) -> list[int]:
        """Return where each plane begins, in bytes from the start of the frame."""
        return [0, *accumulate(self.plane_bytes)][:-1]

    @property
    def frame_bytes(self) -> int:
        """Return bytes of all planes."""
        return sum(self.plane_bytes)
