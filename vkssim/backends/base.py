"""What a backend offers to whoever feeds it frames."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ..errors import FrameError
from ..features.plane_metrics import PlaneMetrics
from ..reference.largest_sample import largest_samples
from ..report.backend_info import BackendInfo
from ..types import Doubles, Samples


@dataclass(frozen=True)
class Beyond:
    """A sample that is larger than its depth allows: `value`, where `peak` is the largest there can be.

    It is in frame number `frame` of its batch, in the reference for `clip` 0 and in the distorted frame for 1, and in the plane
    of that name.
    """

    frame: int
    clip: int
    plane: str
    value: int
    peak: float

    def error(self, number: int) -> FrameError:
        """Return the error for arrays, of which that frame has the given number."""
        return FrameError(
            f"the {('reference', 'distorted')[self.clip]} frame {number} has a sample of {self.value}, and {self.peak:g} is the"
            " largest that its depth or data_range allows"
        )


@dataclass(eq=False)
class Batch:
    """Memory for some frames on their way to the device.

    `reference` and `distorted` have a (batch, H, W) view to be written for each plane; rows may be padded, so that they need
    not be contiguous. `beyond` is known when the batch is collected: its first sample that is too large, if there is one. The
    means of that frame, and of those behind it, are worth nothing.
    """

    reference: tuple[Samples, ...]
    distorted: tuple[Samples, ...]
    slot: Any = None
    results: list[list[Doubles]] = field(default_factory=list)
    beyond: Beyond | None = None


class Backend(ABC):
    """Takes batches of frames and gives the means of each metric; use with `with`.

    A batch goes round: `free` gives it, its owner fills the first `frames` of its planes, `submit` starts them, `collect`
    waits for their means and frees it. Batches finish in the order of their submission.
    """

    info: BackendInfo
    batches: tuple[Batch, ...]
    warnings: tuple[str, ...] = ()
    """What the user should know of how it was opened."""

    @property
    def batch_size(self) -> int:
        """Return frames of a batch."""
        return len(self.batches[0].reference[0])

    def check_process(self) -> None:
        """Raise ForkError where the batches' memory is that of another process; called before they are written to."""
        return

    @abstractmethod
    def submit(self, batch: Batch, frames: int) -> None:
        """Start the first `frames` frames of a filled batch."""

    @abstractmethod
    def is_done(self, batch: Batch) -> bool:
        """Return True where `collect` would not wait."""

    @abstractmethod
    def collect(self, batch: Batch) -> list[list[Doubles]]:
        """Wait for a submitted batch: for each plane, for each of its metrics, (frames, terms) means."""

    def stage_seconds(self) -> Mapping[str, float]:
        """Return seconds spent in each stage so far, where the backend was asked to take them."""
        return {}

    @abstractmethod
    def close(self) -> None:
        """Let go of the device; a second call does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


LargestSamples = npt.NDArray[np.integer]
"""(frames, 2): the largest sample of each frame, of the reference and of the distorted clip."""


def first_beyond(planes: Sequence[PlaneMetrics], largest: Sequence[LargestSamples | None]) -> Beyond | None:
    """Return the first sample that is too large, by the largest samples of each plane; None for a plane was not looked at."""
    found = []
    for plane, samples in zip(planes, largest, strict=True):
        if samples is not None and (samples > plane.format.peak).any():
            frame, clip = (int(place[0]) for place in np.nonzero(samples > plane.format.peak))
            found.append(Beyond(frame, clip, plane.name, int(samples[frame, clip]), plane.format.peak))
    return min(found, key=lambda beyond: beyond.frame, default=None)


def find_beyond(planes: Sequence[PlaneMetrics], batch: Batch, frames: int) -> Beyond | None:
    """Return the same by looking at the first `frames` frames of a batch, whose memory is the processor's own."""
    largest: list[LargestSamples | None] = []
    for plane, *pair in zip(planes, batch.reference, batch.distorted, strict=True):
        exceeded = plane.format.may_be_exceeded
        largest.append(np.stack([largest_samples(clip[:frames]) for clip in pair], axis=1) if exceeded else None)
    return first_beyond(planes, largest)


def empty_planes(frames: int, height: int, width: int, dtype: np.dtype[Any]) -> Samples:
    """(frames, height, width) samples in ordinary memory."""
    return np.empty((frames, height, width), dtype)
