"""Measure how hard the frames of a clip are to encode, by encoding them small and quickly."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ..frames.picture.pixels import new_scaler

_WIDTH = 480  # the largest width of the small pictures
_LEAST_SIDE = 16
_QUANTISER = "5"
_KEY_FRAMES = "600"  # the most that the encoder takes


class FrameCosts:
    """FFmpeg's own MPEG-4 encoder, which every build has, for small pictures at a constant quantiser."""

    def __init__(self, width: int, height: int) -> None:
        import av

        divisor = max(2, -(-width // _WIDTH))
        self._size = tuple(max(_LEAST_SIDE, side // divisor // 2 * 2) for side in (width, height))
        self._encoder: Any = av.CodecContext.create("mpeg4", "w")
        self._encoder.width, self._encoder.height = self._size
        self._encoder.pix_fmt = "yuv420p"
        self._encoder.time_base = Fraction(1, 25)
        self._encoder.options = {"qmin": _QUANTISER, "qmax": _QUANTISER, "g": _KEY_FRAMES}
        self._scale = new_scaler()
        self._frames = 0

    def cost(self, frame: Any) -> int:
        """Return the bytes of the next frame."""
        width, height = self._size
        small = self._scale(frame, width, height, "yuv420p", interpolation="BILINEAR")
        small.pts, small.time_base, small.pict_type = self._frames, self._encoder.time_base, 0
        self._frames += 1
        return sum(packet.size for packet in self._encoder.encode(small))
