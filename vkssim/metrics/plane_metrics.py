"""The planes of a frame that are scored, their metrics, and the names of the scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..errors import FrameError, OptionError
from ..types import CHROMA_STEPS, Doubles, FrameFormat, plane_shapes
from ..utils.choices import PLANE_CHOICE
from ..utils.limits import MAX_FEATURES
from . import make_metric, reads_chroma
from .base import FrameScorer, Metric

PLANES = ("y", "cb", "cr")
TOTAL = "all"


def plane_formats(luma: FrameFormat, planes: str, chroma: str = "420") -> tuple[FrameFormat, ...]:
    """Return the formats of the planes to score. The size of chroma is rounded up if a side is odd.

    Raises OptionError for an unknown choice, and FrameError if there is no chroma.
    """
    PLANE_CHOICE.check(planes)
    if planes == "y":
        return (luma,)
    if CHROMA_STEPS.get(chroma) is None:
        raise FrameError(f"planes is {planes!r}, but the pixel format {chroma} has no chroma; planes=y scores its luma")
    shapes = plane_shapes(luma.width, luma.height, chroma)
    return tuple(replace(luma, width=width, height=height) for height, width in shapes)


@dataclass(frozen=True)
class PlaneMetrics:
    """One plane and its metrics."""

    name: str
    format: FrameFormat
    metrics: tuple[Metric, ...]
    """The metrics that were requested, in this order; none if the plane is only read for those of the luma."""
    read_by: tuple[Metric, ...] = ()
    """The metrics of the luma that read this plane of chroma."""

    @cached_property
    def scorers(self) -> tuple[FrameScorer, ...]:
        """Return the metrics that are computed from pixels for them, equal ones once."""
        found = [scorer for metric in self.metrics for scorer in metric.scorers]
        found += [scorer for metric in self.read_by for scorer in metric.chroma_scorers(self.format)]
        return tuple({scorer.text: scorer for scorer in found}.values())


class FrameMetrics:
    """The metrics of a frame, the same for each of its planes.

    `features` are metrics with their options, such as ``"float_ms_ssim=enable_lcs=true"``. `formats` are those of the luma, or
    of Y, Cb and Cr. `total` adds one score of all planes, from the mean of their numbers weighted by area, as FFmpeg's All; see
    `FrameScorer.score`. If the luma alone is scored, a metric may read Cb and Cr too: of frames with the subsampling `chroma`.
    Raises OptionError if there is no metric, a metric is named twice, or its options are invalid, and
    FrameError if a plane is too small for a metric.
    """

    def __init__(
        self, features: Sequence[str] | str, formats: Sequence[FrameFormat], *, total: bool = False, chroma: str = "420"
    ) -> None:
        texts = feature_texts(features)
        if not texts:
            raise OptionError("no feature asked for")
        if len(texts) > MAX_FEATURES:
            raise OptionError(f"{len(texts)} features were given; the limit is {MAX_FEATURES}")
        self._total = total
        self._scored = len(formats)
        self.planes = tuple(
            PlaneMetrics(name, plane, _metrics(texts, plane, name)) for name, plane in zip(PLANES, formats, strict=False)
        )
        of_luma = [metric.name for metric in self.planes[0].metrics if not metric.has_chroma]
        if of_luma and len(formats) > 1:
            raise OptionError(f"{of_luma[0]} is a metric of the luma, as in libvmaf; planes=y scores the luma alone")
        names = [name for metric in self.planes[0].metrics for name in metric.names]
        for metric in self.planes[0].metrics:
            if names.count(metric.names[0]) > 1:
                cure = "; its option `name` gives each score a name of its own" if "name" in metric.options else ""
                raise OptionError(f"feature {metric.name} is asked for twice{cure}")
        if len(formats) == 1 and reads_chroma(texts):
            self.planes += _planes_to_read(self.planes[0], chroma)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the scores of a frame.

        Plain names are those of the luma. With chroma, there are also names with `_y`, `_cb` and `_cr`.
        """
        names: list[str] = []
        for metric in self.planes[0].metrics:
            names += metric.names
            if self._scored > 1:
                names += [f"{name}_{plane.name}" for plane in self.planes for name in metric.names]
            if self._total:
                names.append(f"{metric.name}_{TOTAL}")
        return tuple(names)

    @property
    def similarities(self) -> tuple[str, ...]:
        """Return the names of scores that are a metric itself and not in dB."""
        plain = [name for metric in self.planes[0].metrics for name in metric.similarities]
        of_planes = [f"{name}_{end}" for name in plain for end in (*PLANES, TOTAL)] if self._scored > 1 else []
        printed = {*plain, *of_planes}
        return tuple(name for name in self.names if name in printed)

    @property
    def frames_before(self) -> int:
        """Return the number of frames before a frame on which its scores depend."""
        return max(scorer.frames_before for plane in self.planes for scorer in plane.scorers)

    @property
    def frames_after(self) -> int:
        """Return the number of frames after a frame on which its scores depend."""
        return max(scorer.frames_after for plane in self.planes for scorer in plane.scorers)

    def finish(self, means: Means) -> dict[str, Doubles]:
        """Return scores by name, each (frames,), from the (frames, terms) means of each plane's metrics."""
        columns: dict[str, Doubles] = {}
        read: dict[str, Doubles] = {}
        for plane, terms in zip(self.planes[self._scored :], means[self._scored :], strict=True):
            read |= {f"{name}_{plane.name}": column for name, column in _finished(plane, terms).items()}
        for plane, terms in zip(self.planes[: self._scored], means[: self._scored], strict=True):
            computed = _finished(plane, terms)
            scores = {**computed}
            for metric in plane.metrics:
                scores |= metric.combine({**computed, **read})
            if plane.name == PLANES[0]:
                columns |= scores
            if self._scored > 1:
                columns |= {f"{name}_{plane.name}": column for name, column in scores.items()}
        if self._total:
            areas = [plane.format.width * plane.format.height for plane in self.planes]
            for number, scorer in enumerate(self.planes[0].scorers):
                scores_of_planes = [scorer.score(terms[number]) for terms in means]
                total = np.average(scores_of_planes, axis=0, weights=areas)
                columns[f"{scorer.name}_{TOTAL}"] = scorer.as_requested(total)
        return {name: columns[name] for name in self.names}


def _finished(plane: PlaneMetrics, terms: Sequence[Doubles]) -> dict[str, Doubles]:
    scores: dict[str, Doubles] = {}
    for scorer, mean in zip(plane.scorers, terms, strict=True):
        scores |= scorer.finish(mean)
    return scores


def _planes_to_read(luma: PlaneMetrics, chroma: str) -> tuple[PlaneMetrics, ...]:
    """Return Cb and Cr without metrics of their own."""
    if CHROMA_STEPS.get(chroma) is None:
        texts = ", ".join(metric.text for metric in luma.metrics if reads_chroma([metric.text]))
        cure = "leave it out, or predict vmaf by a model of version 0, which reads the luma alone"
        raise FrameError(f"{texts} reads Cb and Cr, and the pixel format {chroma} has none; {cure}")
    _, *formats = plane_formats(luma.format, "yuv", chroma)
    planes = tuple(PlaneMetrics(name, plane, (), luma.metrics) for name, plane in zip(PLANES[1:], formats, strict=True))
    for plane in planes:
        _ = plane.scorers  # which raise if the plane is too small
    return planes


Means = Sequence[Sequence[Doubles]]
"""The (frames, terms) means of some frames, of each metric of each plane."""


class FrameSequence:
    """The scores of consecutive frames, from the means of batches in their order.

    If a metric compares frames, the scores of the last frames wait for the means of the next ones, or for the end of the clip.
    """

    def __init__(self, metrics: FrameMetrics, *, lead: int = 0) -> None:
        """Begin a sequence. Its first `lead` frames are before those whose scores are wanted."""
        self._metrics = metrics
        self._kept: Means | None = None
        """The means of the last frames, which wait, and of those before them on which their scores depend."""
        self._given = lead
        """The number of the kept frames whose scores were given, or are not wanted."""

    def add(self, means: Means) -> dict[str, Doubles]:
        """Add frames, and return the scores by name of all frames that have become settled."""
        before, after = self._metrics.frames_before, self._metrics.frames_after
        if not after:
            return self._metrics.finish(means)
        known = means if self._kept is None else _joined(self._kept, means)
        count = len(known[0][0])
        settled = max(self._given, count - after)
        scores = _between(self._metrics.finish(known), self._given, settled)
        self._kept = _last(known, before + after)
        self._given = settled - max(count - before - after, 0)
        return scores

    def end(self) -> dict[str, Doubles]:
        """Return the scores of the frames that waited: the last frame has none after it. The next one begins another clip."""
        known, self._kept = self._kept, None
        given, self._given = self._given, 0
        return {} if known is None else _between(self._metrics.finish(known), given, None)


def _joined(first: Means, second: Means) -> Means:
    return [[np.concatenate(parts) for parts in zip(*planes, strict=True)] for planes in zip(first, second, strict=True)]


def _last(means: Means, count: int) -> Means:
    return [[terms[-count:] for terms in plane] for plane in means]


def _between(scores: Mapping[str, Doubles], first: int, stop: int | None) -> dict[str, Doubles]:
    return {name: column[first:stop] for name, column in scores.items()}


def feature_texts(features: Sequence[str] | str) -> tuple[str, ...]:
    """Return features as a tuple of texts; a single text is one feature."""
    return (features,) if isinstance(features, str) else tuple(features)


def _metrics(features: Sequence[str], plane: FrameFormat, name: str) -> tuple[Metric, ...]:
    try:
        return tuple(make_metric(text, plane) for text in features)
    except FrameError as error:
        if name == PLANES[0]:
            raise
        raise FrameError(f"the {name} plane: {error}; planes=y scores the luma alone") from None
