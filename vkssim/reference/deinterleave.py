"""Twin of `deinterleave.comp`: chroma of surfaces, with Cb and Cr side by side, as two planes."""

from __future__ import annotations

from ..types import Samples


def deinterleave(chroma: Samples) -> tuple[Samples, Samples]:
    """Return Cb and Cr, (..., H, W) both, of (..., H, 2 W) samples, not copied."""
    return chroma[..., 0::2], chroma[..., 1::2]
