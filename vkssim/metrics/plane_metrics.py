"""The planes of a frame that are scored, their metrics, and the names of the scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..errors import FrameError, OptionError
from ..types import CHROMA_STEPS, Doubles, FrameFormat, plane_shapes
from ..utils.choices import PLANE_CHOICE
from ..utils.limits import MAX_FEATURES
from . import make_scorer
from .base import FrameScorer

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
    scorers: tuple[FrameScorer, ...]


class FrameMetrics:
    """The metrics of a frame, the same for each of its planes.

    `features` are metrics with their options, such as ``"float_ms_ssim=enable_lcs=true"``. `formats` are those of the luma, or
    of Y, Cb and Cr. `total` adds one score of all planes, from the mean of their numbers weighted by area, as FFmpeg's All; see
    `FrameScorer.score`. Raises OptionError if there is no metric, a metric is named twice, or its options are invalid, and
    FrameError if a plane is too small for a metric.
    """

    def __init__(self, features: Sequence[str] | str, formats: Sequence[FrameFormat], *, total: bool = False) -> None:
        texts = feature_texts(features)
        if not texts:
            raise OptionError("no feature asked for")
        if len(texts) > MAX_FEATURES:
            raise OptionError(f"{len(texts)} features were given; the limit is {MAX_FEATURES}")
        self._total = total
        self.planes = tuple(
            PlaneMetrics(name, plane, _scorers(texts, plane, name)) for name, plane in zip(PLANES, formats, strict=False)
        )
        of_luma = [scorer.name for scorer in self.planes[0].scorers if not scorer.has_chroma]
        if of_luma and len(formats) > 1:
            raise OptionError(f"{of_luma[0]} is a metric of the luma, as in libvmaf; planes=y scores the luma alone")
        metrics = [scorer.name for scorer in self.planes[0].scorers]
        for metric in metrics:
            if metrics.count(metric) > 1:
                raise OptionError(f"feature {metric} is asked for twice")

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the scores of a frame.

        Plain names are those of the luma. With chroma, there are also names with `_y`, `_cb` and `_cr`.
        """
        names: list[str] = []
        for scorer in self.planes[0].scorers:
            names += scorer.names
            if len(self.planes) > 1:
                names += [f"{name}_{plane.name}" for plane in self.planes for name in scorer.names]
            if self._total:
                names.append(f"{scorer.name}_{TOTAL}")
        return tuple(names)

    @property
    def similarities(self) -> tuple[str, ...]:
        """Return the names of scores that are a metric itself and not in dB."""
        plain = [name for scorer in self.planes[0].scorers for name in scorer.similarities]
        printed = {*plain, *(f"{name}_{end}" for name in plain for end in (*PLANES, TOTAL))}
        return tuple(name for name in self.names if name in printed)

    def finish(self, means: Sequence[Sequence[Doubles]]) -> dict[str, Doubles]:
        """Return scores by name, each (frames,), from the (frames, terms) means of each plane's metrics."""
        columns: dict[str, Doubles] = {}
        for plane, terms in zip(self.planes, means, strict=True):
            for scorer, mean in zip(plane.scorers, terms, strict=True):
                scores = scorer.finish(mean)
                if plane.name == PLANES[0]:
                    columns.update(scores)
                columns.update({f"{name}_{plane.name}": column for name, column in scores.items()})
        if self._total:
            areas = [plane.format.width * plane.format.height for plane in self.planes]
            for number, scorer in enumerate(self.planes[0].scorers):
                scores_of_planes = [scorer.score(terms[number]) for terms in means]
                total = np.average(scores_of_planes, axis=0, weights=areas)
                columns[f"{scorer.name}_{TOTAL}"] = scorer.as_requested(total)
        return {name: columns[name] for name in self.names}


def feature_texts(features: Sequence[str] | str) -> tuple[str, ...]:
    """Return features as a tuple of texts; a single text is one feature."""
    return (features,) if isinstance(features, str) else tuple(features)


def _scorers(features: Sequence[str], plane: FrameFormat, name: str) -> tuple[FrameScorer, ...]:
    try:
        return tuple(make_scorer(text, plane) for text in features)
    except FrameError as error:
        if name == PLANES[0]:
            raise
        raise FrameError(f"the {name} plane: {error}; planes=y scores the luma alone") from None
