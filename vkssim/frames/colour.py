"""What a stream says of its colours: the matrix of its Y'CbCr and the range of its samples."""

from __future__ import annotations

from dataclasses import dataclass

MATRICES = {1: "BT.709", 4: "FCC", 5: "BT.601", 6: "BT.601", 7: "SMPTE 240M", 9: "BT.2020"}
"""By ISO/IEC 23091-2, MatrixCoefficients; 5 and 6 are the same numbers, and the rest cannot be made from R'G'B' by a matrix."""

RANGES = {1: "limited", 2: "full"}
"""By FFmpeg's AVColorRange. Limited luma is 16 to 235 at 8 bits, full 0 to 255."""


@dataclass(frozen=True)
class Colour:
    """Y'CbCr as R'G'B' pictures are converted to it.

    White of full range is 2^bits - 1 in samples of that many bits, so that it is 255 at 8 bits and 65280, not 65535, once
    those are brought to 16; limited range has no such difference.
    """

    matrix: str
    range: str
    bits: int = 16

    @property
    def full_scale(self) -> float:
        """What a full range of 16 bits is multiplied by so that it agrees with one of `bits`."""
        return ((2**self.bits - 1) << (16 - self.bits)) / (2**16 - 1) if self.range == "full" else 1.0


RGB_DEFAULT = Colour("BT.601", "limited")
"""What FFmpeg makes of R'G'B' where nothing else is said, whatever the size: so what an encoder was most likely fed."""
