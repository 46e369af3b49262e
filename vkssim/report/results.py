"""Hold what a run gives: scores frame by frame, pooled values and warnings."""

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
    """Hold the scores of a pair of clips, and how they were scored.

    Parameters
    ----------
    reference, distorted : str
        The clips, by path or URL.
    width, height : int
        Size in samples of the frames that were compared.
    bits : int
        Depth of the frames that were compared, in bits.
    names : tuple of str
        The scores of each frame.
    backend : BackendInfo
        Which backend computed them, on which device, with which driver.
    frames : list of FrameScores
        The frames that were scored, in order. A score that does not exist is NaN, and one in dB may be infinite.
    warnings : list of str
        What may make the scores mean something else than they seem to.
    notes : list of str
        What was done to the pictures before they were compared.
    rate : float, optional
        Frames of the reference a second; None where that is not known.
    selection : Selection
        Which frames were compared.
    sync : {"index", "pts"}
        How frames were paired.
    pictures : PictureOptions
        What was asked for to be done to the pictures.
    version : str
        The version of vkssim that scored the clips.
    scoring : ScoringRecord, optional
        Everything that the scores depend on; None for reports of other tools.
    seconds : float
        Time from the first frame that was read to the last that was scored.
    stage_seconds : mapping of str to float
        Time of each stage in seconds; empty where it was not asked for.
    similarities : tuple of str
        Those of `names` that are a metric itself, 1 for identical frames, and not in dB already.
    resumed : int
        How many of the frames an earlier run had scored; these take no time of `seconds`.
    troubles : list of str
        Devices that failed on the way while others did their work; they are in no file.
    unequal : str, optional
        Which clip ended before the other or has another frame rate; it is in no file.

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
        """Return one score of all frames.

        Parameters
        ----------
        name : str
            One of `names`.

        Returns
        -------
        (frames,) array of float64
            The score of each frame, NaN where there is none.

        Raises
        ------
        KeyError
            No score of that name was computed.

        """
        return np.array([frame.metrics[name] for frame in self.frames], np.float64)

    def pooled(self) -> dict[str, dict[str, float]]:
        """Return the pooled values of each score.

        Returns
        -------
        dict of str to dict of str to float
            For each score ``min``, ``max``, ``mean`` and ``harmonic_mean``, as libvmaf pools them, ``stddev``, the percentiles
            ``p1``, ``p5``, ``p10`` and ``p50``, and for similarities ``mean_db``. Where one frame has no score the values are
            NaN, since a mean over the others would look better than the clip is. Empty where there are no frames.

        Notes
        -----
        harmonic_mean = n / sum(1 / (s + 1)) - 1, and mean_db = -10 log10(1 - mean), which is infinite for identical clips.

        """
        if not self.frames:
            return {}
        pooled = {name: pool(self.column(name)) for name in self.names}
        for name in self.similarities:
            pooled[name]["mean_db"] = float(decibel(np.array(pooled[name]["mean"])))
        return pooled


@dataclass
class PooledReport(ScoreReport):
    """Hold a report without its frames: `values` are the pooled values of each score, `count` is the number of its frames."""

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
        values.update(zip((f"p{rank}" for rank in PERCENTILES), _percentiles(scores), strict=True))
    return {name: float(value) for name, value in values.items()}


def _percentiles(scores: Doubles) -> Doubles:
    """Return the percentiles of PERCENTILES, interpolated between the two nearest scores."""
    percentiles = np.percentile(scores, PERCENTILES)
    if not np.isposinf(scores).any():
        return percentiles
    # Identical frames have an infinite score in dB, with which NumPy's interpolation gives NaN.
    lower, higher = (np.percentile(scores, PERCENTILES, method=method) for method in ("lower", "higher"))
    return np.where((lower == higher) | np.isposinf(higher), higher, percentiles)
