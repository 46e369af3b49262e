"""Compute the charts of a page as data for SVG: axes and marks in per cent, paths in a plot of `WIDTH` by `HEIGHT` units."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TypeVar

import numpy as np

from ..types import Doubles

Number = TypeVar("Number", float, Doubles)

WIDTH, HEIGHT = 1000, 400
_COLUMNS = 800  # columns of a plot; each shows the lowest and the highest score in it
_STEPS = 400  # points of a cumulative distribution
_TICKS = 6

MARKERS = (
    "M-3.8 0a3.8 3.8 0 1 0 7.6 0a3.8 3.8 0 1 0-7.6 0Z",  # a circle
    "M-3.4-3.4h6.8v6.8h-6.8Z",  # a square
    "M0-4.6L4.4 3.2H-4.4Z",  # a triangle
    "M0-5L5 0L0 5L-5 0Z",  # a diamond
    "M0 4.6L4.4-3.2H-4.4Z",  # a triangle on its tip
    "M-3.6-3.6L3.6 3.6M-3.6 3.6L3.6-3.6",  # a cross
)
"""SVG paths around the marked point, in pixels."""

_COLOURS = 6  # colours of page.css: c0 to c5
_DASHES = ("", "7 5", "1 4")
_CHEAP_DASHES = 4  # dashes with a short period; markers change before lines get longer dashes


@dataclass(frozen=True)
class Axis:
    """An axis from `low` to `high`, with round `ticks` between them. If `is_rate`, it is logarithmic."""

    low: float
    high: float
    ticks: tuple[float, ...]
    decimals: int = 0
    is_rate: bool = False

    def share(self, value: Number) -> Number:
        """Return the position of a value, or of each value of an array, on the axis, from 0 to 1."""
        if self.is_rate:
            share: Number = np.log(value / self.low) / math.log(self.high / self.low)
            return share
        return (value - self.low) / (self.high - self.low)

    def labels(self) -> list[tuple[float, str]]:
        """Return (per cent along the axis, text) of each tick."""
        form = "g" if self.is_rate else f".{self.decimals}f"
        return [(round(100 * self.share(tick), 3), f"{tick:{form}}") for tick in self.ticks]


@dataclass(frozen=True)
class Line:
    """A series of a chart: an SVG path, the frames without a score, its marks in per cent across and down, and their clips."""

    series: int
    path: str
    missing: tuple[float, ...] = ()
    marks: tuple[tuple[float, float], ...] = ()
    clips: tuple[int, ...] = ()


@dataclass(frozen=True)
class Chart:
    """The lines and the two axes of a chart."""

    across: Axis
    up: Axis
    lines: tuple[Line, ...]


def round_axis(low: float, high: float) -> Axis:
    """Return an axis of scores that begins and ends on a tick."""
    if high - low < 1e-9:
        low, high = low - 0.01, high + 0.01
    step = _round_step(high - low, 1e-9)
    first, last = math.floor(round(low / step, 6)), math.ceil(round(high / step, 6))
    ticks = tuple(number * step for number in range(first, last + 1))
    return Axis(ticks[0], ticks[-1], ticks, max(0, -math.floor(math.log10(step) + 1e-9)))


def frame_axis(first: int, last: int) -> Axis:
    """Return an axis of frame numbers from the first to the last, with ticks at round numbers."""
    step = int(_round_step(max(1, last - first), 1))
    ticks = tuple(float(number) for number in range(-(-first // step) * step, last + 1, step))
    return Axis(first, last, ticks) if last > first else Axis(first - 1, first + 1, (first,))


def rate_axis(low: float, high: float) -> Axis:
    """Return an axis of bit rates, all over 0, with room on both sides and ticks at 1, 2 and 5 times powers of ten."""
    low, high = low / 1.1, high * 1.1
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    factors = (1,) if high / low > 10_000 else (1, 2, 5)
    ticks = tuple(tick for power in powers for factor in factors if low <= (tick := factor * 10.0**power) <= high)
    return Axis(low, high, ticks or (math.sqrt(low * high),), is_rate=True)


def _round_step(extent: float, min_step: float) -> float:
    """Return 1, 2 or 5 times a power of ten, chosen so that an extent has about `_TICKS` steps."""
    smallest = max(extent / _TICKS, min_step)
    power = 10.0 ** math.floor(math.log10(smallest))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= smallest * (1 - 1e-9))


Scale = tuple[float, float]
"""Two scores that the axis of a metric has between its ends, whatever the scores are."""


def score_chart(series: Sequence[tuple[int, Doubles, Doubles]], scale: Scale | None = None) -> Chart | None:
    """Return the chart of scores over frames, of series (number, frames in order, scores); None without any score."""
    finite = [scores[np.isfinite(scores)] for _, _, scores in series]
    if not any(map(len, finite)):
        return None
    across = frame_axis(int(min(frames[0] for _, frames, _ in series)), int(max(frames[-1] for _, frames, _ in series)))
    up = _scores_axis(finite, scale)
    lines = []
    for number, frames, scores in series:
        places = across.share(frames)
        missing = np.unique(np.round(places[~np.isfinite(scores)] * WIDTH))
        kept = _extremes(places, scores)
        heights = HEIGHT * (1 - up.share(scores[kept]))
        marks = [  # at the last score, to tell the line from the other lines
            (round(float(100 * places[kept][last]), 2), round(float(100 * (heights / HEIGHT)[last]), 2))
            for last in np.flatnonzero(np.isfinite(heights))[-1:]
            if len(series) > 1
        ]
        lines.append(Line(number, _polyline(places[kept] * WIDTH, heights), tuple(missing), tuple(marks)))
    return Chart(across, up, tuple(lines))


def distribution_chart(series: Sequence[tuple[int, Doubles]], scale: Scale | None = None) -> Chart | None:
    """Return the chart of the share of frames at or below each score, of series (number, scores); None without any score."""
    finite = [(number, np.sort(scores[np.isfinite(scores)])) for number, scores in series]
    if not any(len(scores) for _, scores in finite):
        return None
    across = _scores_axis([scores for _, scores in finite], scale)
    up = Axis(0, 100, (0, 25, 50, 75, 100))
    lines = []
    for number, scores in finite:
        if len(scores):
            ranks = np.unique(np.linspace(0, len(scores) - 1, _STEPS).round().astype(int))
            places = WIDTH * (scores[ranks] - across.low) / (across.high - across.low)
            heights = HEIGHT * (1 - (ranks + 1) / len(scores))
            steps = "".join(f"H{place:.1f}V{height:.1f}" for place, height in zip(places, heights, strict=True))
            middle = len(ranks) // 2
            marks = ((round(float(100 * places[middle] / WIDTH), 2), 50.0),) if len(finite) > 1 else ()
            lines.append(Line(number, f"M0 {HEIGHT}{steps}H{WIDTH}", (), marks))
    return Chart(across, up, tuple(lines))


def rate_chart(series: Sequence[tuple[int, Sequence[tuple[float, float, int]]]], scale: Scale | None = None) -> Chart | None:
    """Return the chart of scores over bit rates, of series (number, (rate, score, clip) by rate); None without any score."""
    finite = [(number, [point for point in points if math.isfinite(point[1])]) for number, points in series]
    rates = [rate for _, points in finite for rate, _, _ in points]
    if not rates:
        return None
    across = rate_axis(min(rates), max(rates))
    up = _scores_axis([np.array([score for _, score, _ in points], np.float64) for _, points in finite], scale)
    lines = []
    for number, points in finite:
        places, scores, clips = np.array(points, np.float64).reshape(-1, 3).T
        marks = np.round(100 * np.stack([across.share(places), 1 - up.share(scores)], 1), 2).tolist()
        path = placed_path(across, up, [point[:2] for point in points])
        lines.append(Line(number, path, (), tuple(map(tuple, marks)), tuple(map(int, clips))))
    return Chart(across, up, tuple(lines))


def placed_path(across: Axis, up: Axis, points: Sequence[tuple[float, float]]) -> str:
    """Return the path through points (across, up), in the order in which they are given."""
    places, heights = np.array(points, np.float64).reshape(-1, 2).T
    return _polyline(WIDTH * across.share(places), HEIGHT * (1 - up.share(heights)))


def _scores_axis(scores: Sequence[Doubles], scale: Scale | None) -> Axis:
    joined = np.concatenate([*scores, np.array(scale or (), np.float64)])
    return round_axis(float(joined.min()), float(joined.max()))


def _extremes(places: Doubles, scores: Doubles) -> list[int]:
    """Return the points to draw: all if they are few, else the lowest and highest of each column, so that outliers stay."""
    if len(scores) <= 2 * _COLUMNS:
        return list(range(len(scores)))
    starts = np.searchsorted(places, np.arange(_COLUMNS + 1) / _COLUMNS)
    starts[-1] = len(scores)
    kept: list[int] = []
    for start, stop in pairwise(starts.tolist()):
        column = scores[start:stop]
        if np.isfinite(column).any():
            finite = np.where(np.isfinite(column), column, np.nan)
            kept += sorted({start + int(np.nanargmin(finite)), start + int(np.nanargmax(finite))})
        elif len(column):
            kept.append(start)
    return kept


def _polyline(across: Doubles, down: Doubles) -> str:
    """Return a path through the points, interrupted where a value is not a number; a lone point is a dot."""
    points = [f"{x:.1f} {y:.1f}" if math.isfinite(y) else "" for x, y in zip(across.tolist(), down.tolist(), strict=True)]
    runs = (list(run) for is_known, run in groupby(points, bool) if is_known)
    return "".join("M" + "L".join(run) + ("h0" if len(run) == 1 else "") for run in runs)


# -- the styles of lines ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LineStyle:
    """The class of a line's colour in page.css, its dashes as SVG has them, and its marker by its number in `MARKERS`."""

    classes: str
    dashes: str
    marker: int


def line_style(number: int) -> LineStyle:
    """Return the style of the line with a number. No two are the same, and neighbours differ in colour and in marker."""
    block, colour = divmod(number, _COLOURS)
    round_of_dashes, dash = divmod(block, _CHEAP_DASHES)
    longer, turn = divmod(round_of_dashes, len(MARKERS))
    return LineStyle(f"c{colour}", _dashes(dash + _CHEAP_DASHES * longer), (colour + turn) % len(MARKERS))


def page_styles(count: int, ladders: Sequence[tuple[int, Sequence[int]]]) -> tuple[list[LineStyle], list[LineStyle]]:
    """Return the styles of `count` clips and of ladders, of which each is given by the number of its name and by its clips.

    Ladders of one name, which are of different references, have a colour and dashes, which are those of their clips; each clip
    of a ladder has a marker.
    """
    if not ladders:
        return [line_style(number) for number in range(count)], []
    rungs = {clip: (name, place) for name, clips in ladders for place, clip in enumerate(clips)}
    alone = (clip for clip in range(count) if clip not in rungs)
    names = 1 + max(name for name, _ in ladders)
    rungs |= {clip: (names + number, 0) for number, clip in enumerate(alone)}
    blocks = -(-(max(ladder for ladder, _ in rungs.values()) + 1) // _COLOURS)

    def style(ladder: int, place: int) -> LineStyle:
        again, marker = divmod(place, len(MARKERS))
        return LineStyle(f"c{ladder % _COLOURS}", _dashes(ladder // _COLOURS + blocks * again), marker)

    return [style(*rungs[clip]) for clip in range(count)], [style(name, 0) for name, _ in ladders]


def _dashes(number: int) -> str:
    """Return the lengths of dashes and gaps in pixels: none, dashes, dots, and then a dash with more and more dots."""
    return _DASHES[number] if number < len(_DASHES) else "9 4" + " 1 4" * (number - len(_DASHES) + 1)
