"""Prepare the tiles at the top of a page: the values that most readers look for first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..report.decibel import decibel
from ..report.results import ScoreReport, without_nan
from .tables import Limit, Pooled, decibel_text, rate_text, score_text


@dataclass(frozen=True)
class Tile:
    """A value with its name and a further remark."""

    name: str
    value: str
    more: str = ""
    clip: int | None = None
    """The number of the clip of the value; None for all clips."""
    frame: int | None = None
    """The number of the frame of the value; None for all frames."""
    state: str = ""
    """``"pass"``, ``"fail"`` or empty."""
    decibels: str = ""
    """The same value in dB; empty if it has none."""


def verdict_tile(limits: Sequence[Sequence[Limit]]) -> Tile | None:
    """Return whether all clips meet their limits; None if there are no limits."""
    count = len(limits)
    if not any(limits):
        return None
    failed = [clip for clip, of_clip in enumerate(limits) if not all(limit.met for limit in of_clip)]
    if count == 1:
        missed = [f"{limit.text}: {limit.value}" if limit.value else limit.text for limit in limits[0] if not limit.met]
        met = f"{len(limits[0])} of {len(limits[0])} limits" if len(limits[0]) > 1 else limits[0][0].text
        return Tile("limits", "fail" if failed else "pass", "; ".join(missed) or met, state="fail" if failed else "pass")
    if failed:
        return Tile("limits", f"{len(failed)} of {count} fail", clip=failed[0] if len(failed) == 1 else None, state="fail")
    return Tile("limits", f"all {count} pass", state="pass")


def rate_tile(rates: Sequence[float | None], codecs: Sequence[str], unit: str) -> Tile | None:
    """Return the range of the bit rates of the clips; None if no rate is known."""
    finite = [rate for rate in rates if rate is not None and math.isfinite(rate)]
    if not finite:
        return None
    low, high = rate_text(min(finite)), rate_text(max(finite))
    named = ", ".join(dict.fromkeys(filter(None, codecs)))
    return Tile(f"bit rate, {unit}", low if low == high else f"{low} – {high}", named)


def metric_tiles(reports: Sequence[ScoreReport], pooled: Sequence[Pooled], metric: str) -> list[Tile]:
    """Return the mean, p5 and lowest score of a metric. With several clips, each tile has the clip with the lowest value."""
    tiles = []
    for pooling in ("mean", "p5", "min"):
        values = {clip: of_clip[metric][pooling] for clip, of_clip in enumerate(pooled) if pooling in of_clip.get(metric, ())}
        if not values:
            continue
        clip = min(values, key=lambda clip: (without_nan(values[clip]), clip))
        more = "5 % of the frames score this or less" if pooling == "p5" and len(reports) == 1 else ""
        frame = None
        if pooling == "min" and reports[clip].frames and not np.isnan(scores := reports[clip].column(metric)).all():
            frame = reports[clip].frames[int(np.nanargmin(scores))].index
        title = pooling if len(reports) == 1 else f"lowest {pooling}"
        decibels = ""
        if metric in reports[clip].similarities:
            decibels = f"{decibel_text(float(decibel(np.array(values[clip]))), 2)} dB"
        tiles.append(Tile(title, score_text(values[clip]), more, None if len(reports) == 1 else clip, frame, decibels=decibels))
    return tiles
