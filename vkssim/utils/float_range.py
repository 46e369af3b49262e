"""A check of whether float samples fit their `data_range`, which nothing else states."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, Self

from ..errors import DataRangeWarning

_ROWS = 128  # a wrong range shows in any of them, and to look at all rows would take as long as the scores on a GPU
_FAR = 0.75  # ranges beyond 0 or data_range. Outputs of networks exceed them a little, and samples of -1 to 1 have a range of 2
_NEAR, _FEW = 1 / 8, 1 / 50  # ranges beyond 0 or data_range, and the share of samples that may lie there: lamps and reflections
_SMALL = 1 / 128  # of data_range: with 255, samples of 0 to 1 with some room
_MIN_RANGE_OF_SMALL = 128  # below it, samples in so small a part of the range are a black picture


@dataclass(frozen=True, eq=False)
class SampleRows:
    """The rows of pictures that the check looks at, an array or a tensor, with their smallest and their largest sample."""

    samples: Any
    low: float
    high: float

    @classmethod
    def of(cls, pictures: Any) -> Self:
        """Return all rows of small pictures, (..., H, W), and some rows of large ones."""
        samples = pictures[..., :: max(1, pictures.shape[-2] // _ROWS), :]
        return cls(samples, float(samples.min()), float(samples.max()))

    @property
    def are_black(self) -> bool:
        """Return whether all samples are 0."""
        return not (self.low or self.high)

    def are_far_outside(self, data_range: float) -> bool:
        """Return whether a sample lies far outside of the range, and more than a few of them outside."""
        if self.low >= -_FAR * data_range and self.high <= (1 + _FAR) * data_range:
            return False
        outside = (self.samples < -_NEAR * data_range) | (self.samples > (1 + _NEAR) * data_range)
        return bool(outside.sum() > _FEW * math.prod(self.samples.shape))

    def are_small(self, data_range: float) -> bool:
        """Return whether the samples take a small part of a large range, and are not all 0."""
        return data_range >= _MIN_RANGE_OF_SMALL and 0 < max(-self.low, self.high) <= _SMALL * data_range


def warn_of_range(data_range: float, reference: SampleRows, distorted: SampleRows, *, is_loss: bool = False) -> None:
    """Issue a DataRangeWarning if the samples of both pictures are small, or if those of one lie far outside of `data_range`.

    For a loss, both must lie far outside: the output of a network does so at the beginning of its training.
    """
    both = {"reference": reference, "distorted": distorted}
    outside = [name for name, rows in both.items() if rows.are_far_outside(data_range)]
    # No text has numbers of the samples: Python shows equal warnings once, so a call for each frame of a video gives one line.
    if len(outside) == 2 or (outside and not is_loss):
        low, high = -_FAR * data_range, (1 + _FAR) * data_range
        text = f"samples of {outside[0]} lie below {low:g} or above {high:g}, far outside of 0 to {data_range:g}"
    elif all(rows.are_small(data_range) for rows in both.values()):
        text = f"no sample exceeds {_SMALL * data_range:.3g}, a small part of the range of {data_range:g}"
    else:
        return
    warnings.warn(
        f"{text}. The result is wrong if data_range is: give the largest possible sample, such as data_range=1.0 for samples"
        " from 0 to 1",
        DataRangeWarning,
        stacklevel=2,
    )
