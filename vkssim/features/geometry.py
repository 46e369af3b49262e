"""How planes are laid out in buffers and cut into strips and workgroups: what the plans of metrics and of losses share."""

from __future__ import annotations

from ..shaders.interface import Shape

ROW_ALIGNMENT = 16
"""Bytes on which each row begins: four floats, which a kernel reads at once."""

DECIMATE_ROWS = {Shape.STRIP: 72, Shape.STAGED: 68}
"""The most rows of a strip of the low-pass, by the shape of the kernels."""

_SMALLEST_STRIP = 16
_ENOUGH_WORKGROUPS = 16  # of a frame or a plane; a batch has many


def strip_rows(longest: int, rows: int, groups_x: int) -> int:
    """Return the rows of a strip: long, since each strip starts with a margin of its own, but many enough to occupy the device.

    A function of the frame's size alone: how the sums are cut decides their last bits, and these must not depend on the batch.
    """
    strips = ceil_div(rows, longest)
    enough = ceil_div(_ENOUGH_WORKGROUPS, groups_x)
    return ceil_div(rows, max(strips, min(enough, ceil_div(rows, _SMALLEST_STRIP))))


def aligned(size: int) -> int:
    """Return a size in bytes, rounded up to whole `ROW_ALIGNMENT`."""
    return ceil_div(size, ROW_ALIGNMENT) * ROW_ALIGNMENT


def ceil_div(value: int, divisor: int) -> int:
    """Return the quotient, rounded up."""
    return -(-value // divisor)
