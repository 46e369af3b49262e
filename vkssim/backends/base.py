"""The interface of a backend."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import FrameError
from ..metrics.plane_metrics import PlaneMetrics
from ..metrics.samples import largest_samples
from ..types import BackendInfo, Doubles, ExternalFrame, Samples
from ..utils.thread_pool import Closable


@dataclass(frozen=True)
class OutOfRangeSample:
    """A sample that is larger than its depth allows: its `value`, and `peak`, the largest valid sample.

    `frame` is the number of the frame in its batch. `clip` is 0 for the reference and 1 for the distorted frame. `plane` is the
    name of the plane.
    """

    frame: int
    clip: int
    plane: str
    value: int
    peak: float

    def error(self, number: int) -> FrameError:
        """Return the error for arrays, in which the frame has the given number."""
        return FrameError(
            f"the {('reference', 'distorted')[self.clip]} frame {number} has a sample of {self.value}, and {self.peak:g} is the"
            " largest that its depth or data_range allows"
        )


@dataclass(eq=False)
class Batch:
    """Memory for the frames of one submission.

    `reference` and `distorted` have one (batch, H, W) view for each plane, which the owner writes. Rows may be padded, so the
    views need not be contiguous. `out_of_range` is set when the batch is collected: the first sample that is too large, if any.
    The means of its frame and of all later frames are then invalid.
    """

    reference: tuple[Samples, ...]
    distorted: tuple[Samples, ...]
    external: tuple[Sequence[ExternalFrame], Sequence[ExternalFrame]] | None = None
    """The reference and the distorted frames if their format is `external`; there are no views then."""
    slot: Any = None
    results: list[list[Doubles]] = field(default_factory=list)
    tails: Sequence[Sequence[Samples]] = ()
    """The last references of each plane, if a metric compares frames and the host computes."""
    before: int = 0
    """The number of frames of the clip before the first one."""
    frames: int = 0
    """The number of frames that were submitted."""
    out_of_range: OutOfRangeSample | None = None

    @property
    def size(self) -> int:
        """Return the number of frames for which there is memory."""
        return len(self.reference[0]) if self.external is None else len(self.external[0])


class Backend(Closable, ABC):
    """A device that computes the means of each metric for batches of frames; use with `with`.

    A batch is used again and again: `free` has it, its owner fills the first `frames` frames of its planes, `submit` starts
    them, and `collect` waits for their means and frees the batch. Batches finish in the order of their submission.
    """

    info: BackendInfo
    planes: Sequence[PlaneMetrics]
    """The planes of the frames with their metrics, which compute the means."""
    batches: tuple[Batch, ...]
    warnings: tuple[Warning, ...] = ()
    """Messages for the user about the opening of the backend."""

    @property
    def batch_size(self) -> int:
        """Return the number of frames of a batch."""
        return self.batches[0].size

    def check_process(self) -> None:
        """Raise ForkError if the memory of the batches belongs to another process. Call it before you write to a batch."""
        return

    @abstractmethod
    def submit(self, batch: Batch, frames: int, after: Batch | None = None) -> None:
        """Start the first `frames` frames of a filled batch.

        `after` is the batch that was submitted with the previous frames, and may be the same one. Without it, metrics that
        compare frames take the first frame for the first of a clip.
        """

    @abstractmethod
    def is_done(self, batch: Batch) -> bool:
        """Return True if `collect` would not wait."""

    @abstractmethod
    def collect(self, batch: Batch) -> list[list[Doubles]]:
        """Wait for a submitted batch and return (frames, terms) means for each plane and each of its metrics."""

    def stage_seconds(self) -> Mapping[str, float]:
        """Return the seconds spent in each stage so far, if the backend was opened to measure them."""
        return {}

    @abstractmethod
    def close(self) -> None:
        """Close the device; a second call does nothing."""


LargestSamples = npt.NDArray[np.integer]
"""(frames, 2): the largest sample of each frame, of the reference and of the distorted clip."""


def first_out_of_range(planes: Sequence[PlaneMetrics], largest: Sequence[LargestSamples | None]) -> OutOfRangeSample | None:
    """Return the first sample that is too large, from the largest samples of each plane. None means an unchecked plane."""
    found = []
    for plane, samples in zip(planes, largest, strict=True):
        if samples is not None and (samples > plane.format.peak).any():
            frame, clip = (int(place[0]) for place in np.nonzero(samples > plane.format.peak))
            found.append(OutOfRangeSample(frame, clip, plane.name, int(samples[frame, clip]), plane.format.peak))
    return min(found, key=lambda sample: sample.frame, default=None)


def find_out_of_range(planes: Sequence[PlaneMetrics], batch: Batch, frames: int) -> OutOfRangeSample | None:
    """Return the first sample that is too large in the first `frames` frames of a batch, whose memory the CPU reads quickly."""
    if batch.external is not None:  # the decoder gives no larger ones
        return None
    largest: list[LargestSamples | None] = []
    for plane, *pair in zip(planes, batch.reference, batch.distorted, strict=True):
        exceeded = plane.format.may_be_exceeded
        largest.append(np.stack([largest_samples(clip[:frames]) for clip in pair], axis=1) if exceeded else None)
    return first_out_of_range(planes, largest)
