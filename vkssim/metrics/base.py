"""The interface of a metric, for every backend."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..errors import FrameError
from ..host.plan import BufferSpec, Dispatch
from ..report.results import decibel
from ..shaders.interface import SampleCode
from ..types import DoublePlane, Doubles, FrameFormat
from ..utils.values import Value
from .dispatches import KernelShape, PlanePair
from .options import OptionValue, option_text, parse_options


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


class Metric(ABC):
    """A metric with its options, as a user requests it, for frames of one format.

    A larger score means a better frame, for whatever compares scores: thresholds, searches, worst frames. Raises OptionError
    for an unknown option or an invalid value, and FrameError if the frames are too small.
    """

    name: ClassVar[str]
    options: ClassVar[Mapping[str, Value]]
    """The options that it declares, by name."""
    has_chroma: ClassVar[bool] = True
    """Whether it is defined for planes of chroma too."""
    reads_integers: ClassVar[bool] = False
    """Whether it is computed from integers as they are, in place of samples on the 0..255 scale."""
    names: tuple[str, ...]
    """The names of its scores, in the order in which they are written. The first one is `name`, or libvmaf's name of it."""
    similarities: tuple[str, ...] = ()
    """The names of the scores that are the metric itself and are 1 for identical frames; empty if the metric is in dB."""
    settings: dict[str, OptionValue]
    """All options with the values that are used for these frames."""
    automatic: tuple[str, ...] = ()
    """The options that the size of the frames determined."""
    advice: str = ""
    """How the frames would be scored better, for the user's eyes; empty if there is nothing to say."""
    limit_db: float | None = None
    """The largest dB that a score can have; None if there is no limit."""

    def __init__(self, frame: FrameFormat, options: Mapping[str, OptionValue]) -> None:
        self._options: Any = parse_options(self.name, self.options, options)
        self.settings = {**self._options}
        self.names = (self.name,)

    @property
    def text(self) -> str:
        """Return the request, `name=key=value:key=value` with the options that differ from their defaults."""
        changed = [f"{key}={option_text(value)}" for key, value in self._options.items() if value != self.options[key].default]
        return "=".join([self.name, *([":".join(changed)] if changed else [])])

    @classmethod
    def files(cls, options: Mapping[str, OptionValue]) -> list[str]:
        """Return the paths of the files that its scores depend on with these options."""
        return []

    @classmethod
    def reads_chroma(cls, options: Mapping[str, OptionValue]) -> bool:
        """Return whether its scores depend on Cb and Cr with these options, besides the luma."""
        return False

    @property
    @abstractmethod
    def scorers(self) -> tuple[FrameScorer, ...]:
        """Return the metrics that are computed from pixels for it: itself, or those that it combines."""

    def chroma_scorers(self, chroma: FrameFormat) -> tuple[FrameScorer, ...]:
        """Return the metrics that it combines and that are computed from Cb and from Cr, for planes of this format."""
        return ()

    def combine(self, scores: Mapping[str, Doubles]) -> Mapping[str, Doubles]:
        """Return the scores that it adds to those of `scorers`, each (frames,), by name.

        `scores` has those of `chroma_scorers` too, their names with `_cb` and `_cr`.
        """
        return {}


class FrameScorer(Metric):
    """A metric that is computed from the pixels of a frame."""

    distance: int = 0
    """Its means compare a frame with the one that is so many frames before it; 0 if they depend on the frame alone.

    The means of the first frames of a clip, which have no such frame, are 0.
    """
    frames_before: int = 0
    """The number of frames before a frame on which its scores depend."""
    frames_after: int = 0
    """The same of the frames after it.

    `finish` and the functions that it calls get the means of consecutive frames. Their scores of so many frames at both ends
    are right if the clip begins and ends there.
    """

    @property
    def scorers(self) -> tuple[FrameScorer, ...]:
        """Return the metric itself."""
        return (self,)

    @abstractmethod
    def plan(self, shape: KernelShape, planes: PlanePair) -> FeaturePlan:
        """Return the steps that compute the metric's partial sums from a pair of planes."""

    @abstractmethod
    def means(self, partial_sums: npt.NDArray[np.float32], plan: FeaturePlan) -> Doubles:
        """Return (frames, terms) means from (frames, n) partial sums, added in double precision."""

    @abstractmethod
    def reference_means(self, reference: Any, distorted: Any, before: Any = None) -> DoublePlane:
        """Return (terms,) means of one frame from two (H, W) planes, computed by NumPy; see `reads_integers`.

        `before` is the reference that is `distance` frames before; None if there is none.
        """

    @abstractmethod
    def score(self, means: Doubles) -> Doubles:
        """Return (frames,) numbers from (frames, terms) means, NaN for a frame without a score.

        It can be averaged over planes, as a similarity or a noise can: the number of several planes is the mean of their
        numbers, weighted by area.
        """

    @abstractmethod
    def as_requested(self, score: Doubles) -> Doubles:
        """Convert the numbers of `score` to the unit in which the metric is written, such as dB; NaN stays NaN."""

    def terms(self, means: Doubles) -> Iterable[Doubles]:
        """Return the further scores that the options may request, each (frames,), in the order of `names`."""
        return ()

    def finish(self, means: Doubles) -> Mapping[str, Doubles]:
        """Return scores by name from (frames, terms) means. Each is (frames,) float64, with NaN for frames without a score."""
        return dict(zip(self.names, [self.as_requested(self.score(means)), *self.terms(means)], strict=False))


class IntegerScorer(FrameScorer):
    """A metric that is computed from integers of 8 to 16 bits of the luma, like libvmaf's integer extractors.

    Raises FrameError for other samples.
    """

    reads_integers = True
    has_chroma = False

    def __init__(self, frame: FrameFormat, options: Mapping[str, OptionValue]) -> None:
        if frame.code is SampleCode.FLOAT32 or frame.needs_ingest:
            raise FrameError(
                f"{self.name} is computed from integers of 8 to 16 bits, as libvmaf does; give samples of a bit depth"
            )
        super().__init__(frame, options)
        self._frame = frame
        self._bits = int(frame.peak).bit_length()

    @abstractmethod
    def scores(self, means: Doubles) -> Doubles:
        """Return (frames, scores) scores in the order of `names` from (frames, terms) means."""

    def score(self, means: Doubles) -> Doubles:
        """Return the first score."""
        return self.scores(means)[:, 0]

    def as_requested(self, score: Doubles) -> Doubles:
        """Return the score, which has no other unit."""
        return score

    def finish(self, means: Doubles) -> Mapping[str, Doubles]:
        """Return scores by name from (frames, terms) means."""
        return dict(zip(self.names, self.scores(means).T, strict=True))


class SimilarityScorer(FrameScorer):
    """A metric whose score is a similarity, or in dB if `enable_db` requests it; it has the options of `SimilarityOptions`.

    `terms` are the names of the means that `enable_lcs` adds. In dB, the score is min(-10 log10(1 - score), limit). The limit
    is ceil(10 log10(peak^2 2 w h)) with `clip_db`. Without it there is none, and a perfect score is infinite.
    """

    def __init__(self, frame: FrameFormat, options: Mapping[str, OptionValue], terms: Sequence[str]) -> None:
        super().__init__(frame, options)
        if self._options["enable_lcs"]:
            self.names += tuple(terms)
        if not self._options["enable_db"]:
            self.similarities = (self.name,)
        elif self._options["clip_db"]:
            self.limit_db = float(np.ceil(10 * np.log10(frame.peak**2 * 2 * frame.width * frame.height)))

    def as_requested(self, score: Doubles) -> Doubles:
        """Return a score in the requested unit."""
        if not self._options["enable_db"]:
            return score
        limited: Doubles = np.minimum(decibel(score), np.inf if self.limit_db is None else self.limit_db)
        return limited


def sum_groups(partial_sums: npt.NDArray[np.float32], groups: Sequence[int], terms: int) -> Doubles:
    """Add partial sums in double precision: (frames, sum(groups) * terms + padding) float32 to (frames, len(groups), terms)."""
    frames = len(partial_sums)
    total = sum(groups)
    table = partial_sums[:, : total * terms].reshape(frames, total, terms)
    starts = np.concatenate(([0], np.cumsum(groups)[:-1]))
    return np.add.reduceat(table, starts, axis=1, dtype=np.float64)
