"""What a run gives: scores frame by frame, pooled values, warnings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ..frames.options import PictureOptions, Selection
from ..reference.decibel import decibel
from ..types import Doubles
from ..utils.version import __version__
from .backend_info import BackendInfo
from .frame_scores import FrameScores
from .record import ScoringRecord

PERCENTILES = (1, 5, 10, 50)


@dataclass
class ScoreReport:
    """Scores of a pair of clips.

    `names` are the scores of each frame, `frames` the frames scored, in order; a score that does not exist is NaN and one in
    dB may be infinite. `similarities` are those names that are a metric itself and not in dB already. `notes` say what was done
    to the pictures before they were compared, `rate` how many frames of the reference a second lasts, where that is known.
    `selection`, `sync` and `pictures` are how the clips were read, `version` is that of what scored them; `scoring` is all that
    the scores depend on, None for reports of other tools. `seconds` is the time from the first frame read to the last scored,
    `resumed` how many of the frames were scored by an earlier run and take none of it. `troubles` are devices that failed on
    the way, where others did their work; `unequal` says which clip ended before the other, or has another pace. Neither is in
    any file.
    """

    reference: str
    distorted: str
    width: int
    height: int
    bits: int
    names: tuple[str, ...]
    backend: BackendInfo
    frames: list[FrameScores] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    rate: float | None = None
    selection: Selection = field(default_factory=Selection)
    sync: str = "index"
    pictures: PictureOptions = field(default_factory=PictureOptions)
    version: str = __version__
    scoring: ScoringRecord | None = None
    seconds: float = 0.0
    stage_seconds: Mapping[str, float] = field(default_factory=dict)
    similarities: tuple[str, ...] = ()
    resumed: int = 0
    troubles: list[str] = field(default_factory=list)
    unequal: str | None = None

    @property
    def frame_count(self) -> int:
        """Return how many frames were scored."""
        return len(self.frames)

    @property
    def fps(self) -> float:
        """Return frames scored a second."""
        return (len(self.frames) - self.resumed) / self.seconds if self.seconds > 0 else 0.0

    @property
    def profiled_fps(self) -> float:
        """Return the same where its stages were timed, else 0: files are the same bytes however fast they were made."""
        return self.fps if self.stage_seconds else 0.0

    def column(self, name: str) -> Doubles:
        """Return one score of all frames, (frames,) float64. Raises KeyError for a name that was not scored."""
        return np.array([frame.metrics[name] for frame in self.frames], np.float64)

    def pooled(self) -> dict[str, dict[str, float]]:
        """For each score min, max, mean, harmonic_mean, as libvmaf pools them, stddev and percentiles; mean_db of similarities.

        harmonic_mean = n / sum(1 / (s + 1)) - 1, mean_db = -10 log10(1 - mean), infinite for identical clips. Where one frame
        has no score the pooled values are NaN: a mean over the others would look better than the clip is.
        """
        if not self.frames:
            return {}
        pooled = {name: pool(self.column(name)) for name in self.names}
        for name in self.similarities:
            pooled[name]["mean_db"] = float(decibel(np.array(pooled[name]["mean"])))
        return pooled


@dataclass
class PooledReport(ScoreReport):
    """A report without its frames: `values` are the pooled values of each score, `count` is how many frames they are of."""

    values: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    count: int = 0

    @property
    def frame_count(self) -> int:
        """Return how many frames were scored."""
        return self.count

    def pooled(self) -> dict[str, dict[str, float]]:
        """Return the pooled values; see `ScoreReport.pooled`."""
        return {name: dict(values) for name, values in self.values.items()}


def pool(scores: Doubles) -> dict[str, float]:
    """Return the pooled values of one score over (frames,) frames; see ScoreReport.pooled."""
    with np.errstate(divide="ignore", invalid="ignore"):
        values = {
            "min": scores.min(),
            "max": scores.max(),
            "mean": scores.mean(),
            "harmonic_mean": len(scores) / np.sum(1.0 / (scores + 1.0)) - 1.0,
            "stddev": scores.std(),
        }
        percentiles = np.percentile(scores, PERCENTILES)
    values.update({f"p{rank}": value for rank, value in zip(PERCENTILES, percentiles, strict=True)})
    return {name: float(value) for name, value in values.items()}
