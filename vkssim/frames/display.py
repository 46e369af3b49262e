"""Frames as pictures to look at."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..formats import CHROMA_STEPS
from ..types import Planes
from .colour import WEIGHTS
from .info import VideoInfo

Rgb = npt.NDArray[np.uint8]
"""(H, W, 3) uint8."""

_HD_HEIGHT = 720


def to_rgb(planes: Planes, info: VideoInfo) -> Rgb:
    """A picture of (y,) or (y, cb, cr): luma alone is grey, chroma repeated to its size.

    By equations 38 to 43 of ITU-T H.273 backwards, with the matrix and range that the stream states, else limited range and
    BT.709 from 720 rows on, BT.601 below, as players take it.
    """
    matrix = info.matrix if info.matrix in WEIGHTS else "BT.709" if info.height >= _HD_HEIGHT else "BT.601"
    step = np.float32(2.0 ** (info.bits - 8))
    black, white, span = (0, 255, 255) if info.range == "full" else (16, 219, 224)
    luma = (planes[0] / step - black) / np.float32(white)
    if len(planes) == 1:
        return _bytes(np.stack([luma] * 3, axis=2))
    rows, columns = CHROMA_STEPS[info.chroma] or (1, 1)
    shape = luma.shape
    blue, red = (
        (plane / step - 128).repeat(rows, 0).repeat(columns, 1)[: shape[0], : shape[1]] / np.float32(span)
        for plane in planes[1:]
    )
    weight_red, weight_blue = WEIGHTS[str(matrix)]
    r = luma + red * np.float32(2 * (1 - weight_red))
    b = luma + blue * np.float32(2 * (1 - weight_blue))
    g = (luma - weight_red * r - weight_blue * b) / np.float32(1 - weight_red - weight_blue)
    return _bytes(np.stack([r, g, b], axis=2))


def _bytes(picture: npt.NDArray[np.floating]) -> Rgb:
    return np.clip(np.rint(picture * 255), 0, 255).astype(np.uint8)
