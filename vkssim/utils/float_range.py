"""A check of whether float samples fit their `data_range`, which nothing else states."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy.typing as npt

from ..errors import DataRangeWarning

_ROWS = 128  # a wrong range shows in any of them, and to look at all rows would take as long as the scores on a GPU
_FAR = 0.75  # ranges beyond 0 or data_range. Outputs of networks exceed them a little, and samples of -1 to 1 have a range of 2
_SMALL = 1 / 128  # of data_range: with 255, samples of 0 to 1 with some room
_MIN_RANGE_OF_SMALL = 128  # below it, samples in so small a part of the range are a black picture


def row_step(height: int) -> int:
    """Return the step from one row to the next that the check looks at: all rows of a small picture, some of a large one."""
    return max(1, height // _ROWS)


class Extent(NamedTuple):
    """The smallest and the largest of some samples."""

    low: float
    high: float

    @classmethod
    def of_array(cls, samples: npt.NDArray[Any]) -> Extent:
        """Return the extent of one or more planes, in the rows that the check looks at."""
        rows = samples[..., :: row_step(samples.shape[-2]), :]
        return cls(float(rows.min()), float(rows.max()))

    def is_far_outside(self, data_range: float) -> bool:
        """Return whether samples lie so far outside of the range that float32 loses what differs."""
        return self.low < -_FAR * data_range or self.high > (1 + _FAR) * data_range

    def is_small(self, data_range: float) -> bool:
        """Return whether the samples take a small part of a large range, and are not all 0."""
        return data_range >= _MIN_RANGE_OF_SMALL and 0 < max(-self.low, self.high) <= _SMALL * data_range


def warn_of_range(data_range: float, reference: Extent, distorted: Extent, *, is_loss: bool = False) -> None:
    """Issue a DataRangeWarning if the samples of two pictures do not fit `data_range`.

    They do not fit if both are small, or if one of them lies far outside. For a loss both must lie far outside: the output of a
    network does so at the beginning of its training.
    """
    both = {"reference": reference, "distorted": distorted}
    outside = [name for name, extent in both.items() if extent.is_far_outside(data_range)]
    if len(outside) == 2 or (outside and not is_loss):
        low, high = both[outside[0]]
        text = f"samples of {outside[0]} lie between {low:.3g} and {high:.3g}, far outside of 0 to {data_range:g}"
    elif all(extent.is_small(data_range) for extent in both.values()):
        high = max(extent.high for extent in both.values())
        text = f"the largest sample is about {high:.3g}, a small part of the range of {data_range:g}"
    else:
        return
    warnings.warn(
        f"{text}. The result is wrong if data_range is: give the largest possible sample, such as data_range=1.0 for samples"
        " from 0 to 1",
        DataRangeWarning,
        stacklevel=2,
    )
