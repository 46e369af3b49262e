"""The layout of planes in buffers, and their division into strips and workgroups, for the plans of metrics and of losses."""

from __future__ import annotations

from ..shaders.interface import Shape

ROW_ALIGNMENT = 16
"""Each row begins at a multiple of these bytes: four floats, which a kernel reads at once."""

DECIMATE_ROWS = {Shape.STRIP: 72, Shape.STAGED: 68}
"""The largest number of rows of a strip of the low-pass, by the shape of the kernels."""

_SMALLEST_STRIP = 16
_ENOUGH_WORKGROUPS = 16  # for one frame or plane; a batch has many frames


def strip_rows(longest: int, rows: int, groups_x: int) -> int:
    """Return the rows of a strip.

    Long strips are better, because each strip first reads a margin, but there must be enough strips to occupy the device. The
    result depends only on the size of the frame: the division changes the last bits of sums, which must not depend on the
    batch.
    """
    strips = ceil_div(rows, longest)
    enough = ceil_div(_ENOUGH_WORKGROUPS, groups_x)
    return ceil_div(rows, max(strips, min(enough, ceil_div(rows, _SMALLEST_STRIP))))


def aligned(size: int) -> int:
    """Return a size in bytes, rounded up to a multiple of `ROW_ALIGNMENT`."""
    return ceil_div(size, ROW_ALIGNMENT) * ROW_ALIGNMENT


def ceil_div(value: int, divisor: int) -> int:
    """Return the quotient, rounded up."""
    return -(-value // divisor)
