"""Where the luma lies within a planar frame."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import InputError
from ..formats import BIT_DEPTHS, LARGEST_SIDE

PIXEL_FORMATS = ("420", "422", "444", "411", "444alpha", "400")


@dataclass(frozen=True)
class PlanarLayout:
    """A planar frame, luma first. Samples of more than 8 bits take two bytes, little-endian; odd sizes round chroma up."""

    width: int
    height: int
    pixel_format: str
    bits: int

    def __post_init__(self) -> None:
        if not (1 <= self.width <= LARGEST_SIDE and 1 <= self.height <= LARGEST_SIDE):
            raise InputError(f"a frame of {self.width}x{self.height}; each side must be 1 to {LARGEST_SIDE}")
        if self.pixel_format not in PIXEL_FORMATS:
            raise InputError(f"pixel format {self.pixel_format!r}; {', '.join(PIXEL_FORMATS)} are possible")
        if self.bits not in BIT_DEPTHS:
            raise InputError(f"{self.bits} bits a sample; {', '.join(map(str, BIT_DEPTHS))} are possible")

    @property
    def sample_bytes(self) -> int:
        """Bytes of a sample."""
        return 1 if self.bits == 8 else 2

    @property
    def luma_bytes(self) -> int:
        """Bytes of the luma plane."""
        return self.width * self.height * self.sample_bytes

    @property
    def frame_bytes(self) -> int:
        """Bytes of all planes."""
        half_width, half_height = (self.width + 1) // 2, (self.height + 1) // 2
        others = {
            "400": 0,
            "420": 2 * half_width * half_height,
            "422": 2 * half_width * self.height,
            "411": 2 * ((self.width + 3) // 4) * self.height,
            "444": 2 * self.width * self.height,
            "444alpha": 3 * self.width * self.height,
        }[self.pixel_format]
        return self.luma_bytes + others * self.sample_bytes
