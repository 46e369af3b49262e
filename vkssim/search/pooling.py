"""Pool scores of samples that stand for different numbers of frames."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..reference.samples import decibel
from ..report.results import pool
from ..report.thresholds import POOLINGS
from ..types import Doubles


def pooled_value(pooling: str, scores: Sequence[Doubles], weights: Sequence[float]) -> float:
    """Return a pooled value of one score.

    Parameters
    ----------
    pooling : str
        One of `vkssim.report.thresholds.POOLINGS`.
    scores : sequence of (frames,) arrays
        The score of each frame of each sample, NaN for a frame without a score.
    weights : sequence of float
        The number of frames of the clip for which each frame of a sample stands.

    Returns
    -------
    float
        The value that `ScoreReport.pooled` has for equal weights; NaN if a frame has no score.

    """
    values = np.concatenate(scores)
    if len(set(weights)) == 1:
        pooled = pool(values)
        return float(decibel(np.array(pooled["mean"]))) if pooling == "mean_db" else pooled[pooling]
    if np.isnan(values).any():
        return float("nan")
    share = np.repeat(np.asarray(weights, np.float64), [len(one) for one in scores])
    if pooling == "min":
        return float(values.min())
    if pooling == "max":
        return float(values.max())
    if pooling.startswith("p"):
        return _percentile(values, share, float(pooling[1:]))
    if pooling == "harmonic_mean":
        return float(share.sum() / np.sum(share / (values + 1.0)) - 1.0)
    mean = float(np.average(values, weights=share))
    return float(decibel(np.array(mean))) if pooling == "mean_db" else mean


def pooled_values(scores: Sequence[Doubles], weights: Sequence[float], *, similarity: bool) -> dict[str, float]:
    """Return every pooled value of one score, ``mean_db`` of a similarity alone; arguments as those of `pooled_value`."""
    names = [name for name in POOLINGS if similarity or name != "mean_db"]
    return {name: pooled_value(name, scores, weights) for name in names}


def _percentile(values: Doubles, share: Doubles, rank: float) -> float:
    """Return a percentile, interpolated between the two nearest scores: NumPy's, if all shares are equal."""
    order = np.argsort(values)
    sorted_share = share[order]
    places = np.cumsum(sorted_share) - sorted_share / 2
    places -= places[0]
    return float(np.interp(rank / 100, places / max(float(places[-1]), 1e-12), values[order]))
