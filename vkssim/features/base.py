"""What a metric has to offer, whatever computes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from ..host.plan import BufferSpec, Dispatch
from ..types import DoublePlane, Doubles, FloatPlane, FrameFormat
from .planes import KernelShape, PlanePair

if TYPE_CHECKING:
    from .options import Settings


@dataclass(frozen=True)
class FeaturePlan:
    """A metric's part of a plan: buffers, steps, and the buffer that its partial sums are read from.

    `groups` says how many workgroups leave sums there, scale after scale: it is all that adding them needs.
    """

    buffers: tuple[BufferSpec, ...]
    steps: tuple[tuple[Dispatch, ...], ...]
    partials: BufferSpec
    groups: tuple[int, ...]


class FrameScorer(Protocol):
    """A metric with its options, for frames of one format. Made by `Feature.for_frames`, which refuses what is too small."""

    names: tuple[str, ...]
    """The scores that it gives, in the order in which they are written."""
    similarities: tuple[str, ...]
    """Those of them that are the metric itself on a scale that ends at 1, identical frames: none where it is given in dB."""
    settings: Settings
    """All of its options, as they are used for these frames."""

    def plan(self, shape: KernelShape, planes: PlanePair) -> FeaturePlan:
        """Return the steps that compute the metric's partial sums from a pair of planes."""
        ...

    def means(self, partial_sums: npt.NDArray[np.float32], plan: FeaturePlan) -> Doubles:
        """(frames, terms) means from (frames, n) partial sums, added in double."""
        ...

    def reference_means(self, reference: FloatPlane, distorted: FloatPlane) -> DoublePlane:
        """(terms,) means of one frame from two (H, W) planes on the 0..255 scale, by NumPy."""
        ...

    def score(self, means: Doubles) -> Doubles:
        """Return (frames,) numbers from (frames, terms) means, NaN where there is none.

        The number of several planes is the mean of theirs, weighted by area: the similarity of float_ssim and float_ms_ssim,
        the noise of float_psnr.
        """
        ...

    def as_requested(self, score: Doubles) -> Doubles:
        """Convert the numbers of `score` to the unit in which they are given: a similarity as it is or in dB, noise in dB."""
        ...

    def finish(self, means: Doubles) -> Mapping[str, Doubles]:
        """Return scores by name, each (frames,) float64, NaN where there is none, from (frames, terms) means."""
        ...


class Feature(Protocol):
    """A metric and what can be asked of it."""

    name: str
    options: Mapping[str, object]

    def for_frames(self, frame: FrameFormat, options: Mapping[str, str | float | bool]) -> FrameScorer:
        """Return the metric for frames of one format. Raises OptionError or FrameError."""
        ...


def sum_groups(partial_sums: npt.NDArray[np.float32], groups: Sequence[int], terms: int) -> Doubles:
    """Add partial sums in double: (frames, sum(groups) * terms, and padding) float32 to (frames, len(groups), terms)."""
    frames = len(partial_sums)
    total = sum(groups)
    table = partial_sums[:, : total * terms].reshape(frames, total, terms)
    starts = np.concatenate(([0], np.cumsum(groups)[:-1]))
    return np.add.reduceat(table, starts, axis=1, dtype=np.float64)
