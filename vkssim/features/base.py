"""The interface of a metric, for every backend."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ..host.plan import BufferSpec, Dispatch
from ..types import DoublePlane, Doubles, FloatPlane, FrameFormat
from .options import MetricOption, MetricSettings, OptionValue, declared_options
from .planes import KernelShape, PlanePair


@dataclass(frozen=True)
class FeaturePlan:
    """A metric's share of a plan: buffers, steps, and the buffer of its partial sums.

    Its buffers have names that no other metric uses, because one plan has all metrics of a run.
    `groups` has the number of workgroups that write sums for each scale. The backend needs it to add the sums.
    """

    buffers: tuple[BufferSpec, ...]
    steps: tuple[tuple[Dispatch, ...], ...]
    partials: BufferSpec
    groups: tuple[int, ...]


class FrameScorer(Protocol):
    """A metric with its options, for frames of one format. `Feature.for_frames` makes it."""

    names: tuple[str, ...]
    """The names of its scores, in the order in which they are written; the first one is that of the feature.

    A larger score means a better frame, for whatever compares scores: thresholds, searches, worst frames.
    """
    similarities: tuple[str, ...]
    """The names of the scores that are the metric itself and are 1 for identical frames; empty if the metric is in dB."""
    settings: MetricSettings
    """All options with the values that are used for these frames."""

    def plan(self, shape: KernelShape, planes: PlanePair) -> FeaturePlan:
        """Return the steps that compute the metric's partial sums from a pair of planes."""
        ...

    def means(self, partial_sums: npt.NDArray[np.float32], plan: FeaturePlan) -> Doubles:
        """Return (frames, terms) means from (frames, n) partial sums, added in double precision."""
        ...

    def reference_means(self, reference: FloatPlane, distorted: FloatPlane) -> DoublePlane:
        """Return (terms,) means of one frame from two (H, W) planes on the 0..255 scale, computed by NumPy."""
        ...

    def score(self, means: Doubles) -> Doubles:
        """Return (frames,) numbers from (frames, terms) means, NaN for a frame without a score.

        It can be averaged over planes, as a similarity or a noise can: the number of several planes is the mean of their
        numbers, weighted by area.
        """
        ...

    def as_requested(self, score: Doubles) -> Doubles:
        """Convert the numbers of `score` to the unit in which the metric is written, such as dB."""
        ...

    def finish(self, means: Doubles) -> Mapping[str, Doubles]:
        """Return scores by name from (frames, terms) means. Each is (frames,) float64, with NaN for frames without a score."""
        ...


@dataclass(frozen=True)
class Feature:
    """A metric: its name, the TypedDict that declares its options, and the function that makes it for frames of one format.

    `for_frames` raises OptionError for an unknown option or an invalid value, and FrameError if the frames are too small.
    """

    name: str
    declared: type[Mapping[str, object]]
    for_frames: Callable[[FrameFormat, Mapping[str, OptionValue]], FrameScorer]

    @property
    def options(self) -> Mapping[str, MetricOption]:
        """Return the declared options by name."""
        return declared_options(self.declared)


def sum_groups(partial_sums: npt.NDArray[np.float32], groups: Sequence[int], terms: int) -> Doubles:
    """Add partial sums in double precision: (frames, sum(groups) * terms + padding) float32 to (frames, len(groups), terms)."""
    frames = len(partial_sums)
    total = sum(groups)
    table = partial_sums[:, : total * terms].reshape(frames, total, terms)
    starts = np.concatenate(([0], np.cumsum(groups)[:-1]))
    return np.add.reduceat(table, starts, axis=1, dtype=np.float64)
