"""Convert frames to R'G'B' of eight bits for people to look at; nothing is scored by it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...types import Planes, Samples
from ..info import VideoInfo
from .colour import RGB_DEFAULT, WEIGHTS

_HD_LINES = 720  # from this height on, clips that state no matrix are shown as BT.709, as players do


def to_rgb(planes: Planes, info: VideoInfo) -> npt.NDArray[np.uint8]:
    """Return (H, W, 3) uint8 from (y,) or (y, cb, cr), by equations 38 to 43 of ITU-T H.273 backwards; luma alone is grey.

    A chroma sample is repeated over the luma samples that it belongs to. A range that is not stated counts as limited.
    """
    weight_red, weight_blue = WEIGHTS[info.matrix or ("BT.709" if info.height >= _HD_LINES else RGB_DEFAULT.matrix)]
    step, peak = 1 << (info.bits - 8), (1 << info.bits) - 1
    black, white, span = (0, peak, peak) if info.range == "full" else (16 * step, 219 * step, 224 * step)
    luma = (planes[0] - np.float32(black)) / np.float32(white)
    if len(planes) == 1:
        return _eight_bits(np.repeat(luma[:, :, None], 3, axis=2))
    blue, red = ((_spread(plane, luma.shape) - np.float32(128 * step)) / np.float32(span) for plane in planes[1:])
    red, blue = luma + 2 * (1 - weight_red) * red, luma + 2 * (1 - weight_blue) * blue
    green = (luma - weight_red * red - weight_blue * blue) / (1 - weight_red - weight_blue)
    return _eight_bits(np.stack([red, green, blue], axis=2))


def _spread(chroma: Samples, shape: tuple[int, ...]) -> Samples:
    rows, columns = (np.arange(length) * size // length for length, size in zip(shape, chroma.shape, strict=True))
    spread: Samples = chroma[rows[:, None], columns[None, :]]
    return spread


def _eight_bits(picture: npt.NDArray[np.floating]) -> npt.NDArray[np.uint8]:
    rounded: npt.NDArray[np.uint8] = np.clip(np.rint(255 * picture), 0, 255).astype(np.uint8)
    return rounded
