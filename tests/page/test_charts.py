"""Test the charts of a page."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from vkssim.page.charts import HEIGHT, WIDTH, distribution_chart, frame_axis, rate_chart, round_axis, score_chart


@pytest.mark.parametrize(("low", "high"), [(0.9508, 0.9636), (0, 1), (-0.3, 0.999999), (25.1, 61.2), (0.999991, 0.999999)])
def test_an_axis_of_scores_spans_them_between_round_ticks(low: float, high: float) -> None:
    axis = round_axis(low, high)
    assert axis.low <= low
    assert axis.high >= high
    assert 3 <= len(axis.ticks) <= 9
    texts = [text for _, text in axis.labels()]
    assert [float(text) for text in texts] == pytest.approx(axis.ticks, abs=1e-12)
    assert len(set(texts)) == len(texts)


def test_an_axis_of_one_score_has_room() -> None:
    assert round_axis(1.0, 1.0).share(1.0) == pytest.approx(0.5)


@pytest.mark.parametrize(("first", "last"), [(0, 47), (0, 99_999), (1000, 1003), (0, 1), (7, 7)])
def test_ticks_of_frames_are_frames(first: int, last: int) -> None:
    axis = frame_axis(first, last)
    assert all(tick == int(tick) and first <= tick <= last for tick in axis.ticks)
    assert 1 <= len(axis.ticks) <= 9
    assert all(0 <= place <= 100 for place, _ in axis.labels())


def test_a_score_lies_where_the_axes_say() -> None:
    chart = score_chart([(0, np.arange(3.0), np.array([0.2, 0.4, 0.3]))])
    assert chart is not None
    assert (chart.up.low, chart.up.high) == pytest.approx((0.2, 0.4))
    assert chart.lines[0].path == f"M0.0 {HEIGHT}.0L500.0 0.0L{WIDTH}.0 200.0"


def test_charts_of_a_scale_show_all_of_it() -> None:
    scores = np.array([88.0, 93.5])
    charts = score_chart([(0, np.arange(2.0), scores)], (0, 100)), rate_chart([(0, [(500.0, 88.0, 0)])], (0, 100))
    assert [(chart.up.low, chart.up.high) for chart in charts if chart is not None] == [(0, 100)] * 2
    beyond = score_chart([(0, np.arange(2.0), np.array([-20.0, 110.0]))], (0, 100))
    assert beyond is not None
    assert beyond.up.low <= -20 < 110 <= beyond.up.high
    distribution = distribution_chart([(0, scores)], (0, 100))
    assert distribution is not None
    assert (distribution.across.low, distribution.across.high) == (0, 100)


def test_a_line_is_interrupted_where_there_is_no_score() -> None:
    scores = np.array([0.1, 0.2, math.nan, 0.2, math.inf, 0.1, 0.1])
    chart = score_chart([(0, np.arange(7.0), scores)])
    assert chart is not None
    assert re.sub(r"[\d. ]+", "", chart.lines[0].path) == "MLMhML"  # two points, a dot, two points
    assert chart.lines[0].missing == (round(WIDTH * 2 / 6), round(WIDTH * 4 / 6))


def test_no_score_no_chart() -> None:
    nothing = np.array([math.nan, math.nan])
    assert score_chart([(0, np.arange(2.0), nothing)]) is None
    assert distribution_chart([(0, nothing)]) is None


def test_long_clips_keep_every_outlier_and_little_else() -> None:
    frames = 100_000
    rng = np.random.default_rng(5)
    scores = rng.uniform(0.9, 0.91, frames)
    outliers = rng.choice(frames, 20, replace=False)
    scores[outliers] = 0.1 + 0.01 * np.arange(20)
    chart = score_chart([(0, np.arange(float(frames)), scores)])
    assert chart is not None
    points = {(float(x), float(y)) for x, y in re.findall(r"([\d.]+) ([\d.]+)", chart.lines[0].path)}
    assert len(points) <= 1600
    for outlier in outliers:
        height = HEIGHT * (chart.up.high - scores[outlier]) / (chart.up.high - chart.up.low)
        near = [y for x, y in points if abs(x - WIDTH * outlier / (frames - 1)) < 0.1]
        assert any(abs(y - height) < 0.1 for y in near)


def test_the_distribution_rises_to_all_frames() -> None:
    chart = distribution_chart([(0, np.array([0.4, 0.2, math.nan, 0.2, 0.3]))])
    assert chart is not None
    steps = [float(height) for height in re.findall(r"V([\d.]+)", chart.lines[0].path)]
    assert steps == [0.75 * HEIGHT, 0.5 * HEIGHT, 0.25 * HEIGHT, 0]
