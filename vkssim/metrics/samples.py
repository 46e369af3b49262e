"""Twins of `ingest.comp`, `deinterleave.comp`, `largest_sample.comp` and `psnr.comp`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..types import FloatPlane, Samples


def ingest(samples: Samples, factor: float) -> FloatPlane:
    """Return samples on the 0..255 scale, float32, as libvmaf's `picture_copy` does.

    `factor` is 2^(8-bits), or 255/range for floats.
    """
    return samples.astype(np.float32) * np.float32(factor)


def deinterleave(chroma: Samples) -> tuple[Samples, Samples]:
    """Return Cb and Cr, (..., H, W) both, of surfaces with Cb and Cr side by side, (..., H, 2 W); not copied."""
    return chroma[..., 0::2], chroma[..., 1::2]


def largest_samples(planes: Samples) -> npt.NDArray[np.uint32]:
    """Return the largest sample of each of (..., H, W) planes of integers, as uint32."""
    largest: npt.NDArray[np.uint32] = planes.max(axis=(-2, -1)).astype(np.uint32)
    return largest


def noise(reference: FloatPlane, distorted: FloatPlane) -> float:
    """Return the mean squared difference of two (H, W) float32 planes.

    Differences and their squares are rounded to float32 and added in double, as in `compute_psnr` of libvmaf's psnr.c.
    """
    difference = reference - distorted
    return float(np.square(difference).sum(dtype=np.float64) / difference.size)
