"""What a stream says of its colours: the matrix of its Y'CbCr and the range of its samples."""

from __future__ import annotations

from dataclasses import dataclass

MATRICES = {1: "BT.709", 4: "FCC", 5: "BT.601", 6: "BT.601", 7: "SMPTE 240M", 9: "BT.2020"}
"""By ISO/IEC 23091-2, MatrixCoefficients; 5 and 6 are the same numbers, and the rest cannot be made from R'G'B' by a matrix."""

RANGES = {1: "limited", 2: "full"}
"""By FFmpeg's AVColorRange. Limited luma is 16 to 235 at 8 bits, full 0 to 255."""


@dataclass(frozen=True)
class Colour:
    """Y'CbCr as R'G'B' pictures are converted to it."""

    matrix: str
    range: str


RGB_DEFAULT = Colour("BT.601", "limited")
"""What FFmpeg makes of R'G'B' where nothing else is said, whatever the size: so what an encoder was most likely fed."""
