"""Scene cuts, samples, pooled values of samples, and the forecast of sizes."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from vkssim.clips import VideoFacts
from vkssim.report.results import pool
from vkssim.search.encode import EncodedSample
from vkssim.search.encoders import encoder_of
from vkssim.search.recipe import Recipe
from vkssim.search.source import GROUP, LEAD, TAIL, Sample, Sampling, Scan, choose_samples, corrected_weights, find_cuts
from vkssim.search.trial import forecast_bytes, pooled_values

FACTS = cast(VideoFacts, SimpleNamespace(rate=25))
RECIPE = Recipe(encoder_of("libx264"), encoder_of("libx264").parameter(None), FACTS, "yuv420p")


def changes(count: int, cuts: dict[int, float], motion: float = 1.0) -> list[float]:
    return [0.0 if not place else cuts.get(place, motion) for place in range(count)]


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (changes(60, {20: 30.0, 40: 15.0}), [0, 20, 40]),
        (changes(60, {20: 4.0}), [0]),  # too little
        (changes(60, {20: 30.0, 21: 30.0}), [0]),  # a flash
        (changes(60, {}, motion=20.0), [0]),  # fast motion
        (changes(60, {5: 40.0, 30: 40.0, 55: 40.0}), [0, 30]),  # shots that are too short
        ([], [0]),
    ],
)
def test_cuts(made: list[float], expected: list[int]) -> None:
    assert find_cuts(made) == expected


def scan(shots: list[tuple[int, int]]) -> Scan:
    """Shots of so many frames and so many bytes a frame."""
    found = Scan()
    for length, cost in shots:
        for number in range(length):
            found.changes.append(60.0 if number == 0 and found.times else 1.0)
            found.costs.append(cost)
            found.times.append(len(found.times))
    return found


def test_a_short_clip_is_encoded_whole() -> None:
    sampling = choose_samples(scan([(60, 1), (60, 2)]), length=32, most=100)
    assert sampling.is_whole
    assert sampling.samples == (Sample(0, 120),)
    assert sampling.cuts == (0, 60)


def test_samples_stand_for_all_frames_and_for_how_hard_they_are() -> None:
    clip = scan([(200, 100), (300, 900), (100, 120), (400, 300)])
    sampling = choose_samples(clip, length=32, most=256)
    assert len(sampling.samples) == 8
    costs = [sum(clip.costs[sample.first : sample.first + sample.count]) for sample in sampling.samples]
    assert sum(sample.count * sample.weight for sample in sampling.samples) == pytest.approx(clip.count)
    assert sum(cost * sample.weight for cost, sample in zip(costs, sampling.samples, strict=True)) == pytest.approx(
        sum(clip.costs)
    )
    firsts = [sample.first for sample in sampling.samples]
    assert firsts == sorted(firsts)
    assert sampling.cuts == tuple(find_cuts(clip.changes)) == (0, 200, 500, 600)


def test_samples_begin_where_encoders_begin_a_group_and_have_frames_around_them() -> None:
    sampling = choose_samples(scan([(1000, 5)]), length=64, most=256)
    for sample in sampling.samples:
        assert sample.first == 0 or sample.first % GROUP == 1
        assert sample.lead == min(LEAD, sample.first)
        assert sample.tail == min(TAIL, 1000 - sample.first - sample.count)
    assert max(sample.lead for sample in sampling.samples) == LEAD


def test_weights_are_left_alone_where_too_few_samples_cannot_have_the_totals() -> None:
    columns = np.array([[10.0, 10.0, 10.0, 10.0], [1.0, 1.0, 1.0, 500.0]])
    weights = corrected_weights(np.array([4 / 3] * 3), columns, np.array([0, 1, 2]))
    assert weights == pytest.approx([4 / 3] * 3)


@pytest.mark.parametrize("pooling", ["mean", "harmonic_mean", "min", "max", "p5", "p50"])
def test_weights_are_repetitions(pooling: str) -> None:
    """A sample of weight 3 counts as three equal ones do, up to the interpolation of a percentile."""
    first, second = np.random.default_rng(4).random((2, 200))
    repeated = pool(np.concatenate([first, first, first, second]))[pooling]
    assert pooled_values([first, second], [3.0, 1.0], similarity=False)[pooling] == pytest.approx(repeated, abs=0.003)


def test_missing_scores_and_decibels() -> None:
    """A frame without a score leaves no pooled value; the mean in dB is that of the mean."""
    assert np.isnan(pooled_values([np.array([0.5, np.nan]), np.array([0.7])], [1.0, 2.0], similarity=False)["p5"])
    pooled = pooled_values([np.array([0.9, 0.98]), np.array([0.96])], [1.0, 2.0], similarity=True)
    assert pooled["mean_db"] == pytest.approx(-10 * np.log10(1 - 0.95))


def test_a_forecast_adds_the_key_frames_that_samples_are_too_short_for() -> None:
    """Frames of 100 bytes and key frames of 1000; the clip has a shot of 400 and one of 600 frames, a key frame every 250."""
    first = EncodedSample(first_bytes=1000, bytes=4100, other_bytes=3100, key_frames=1, frames=32)
    other = EncodedSample(first_bytes=1000, bytes=3200, other_bytes=3200, key_frames=0, frames=32)
    weight = (1000 - 32) / 64
    sampling = Sampling((Sample(0, 32, weight), Sample(193, 32, weight, 33, 16), Sample(385, 32, 1.0, 33, 16)), 1000, (0, 400))
    assert forecast_bytes([first, other, first], sampling, RECIPE) == 995 * 100 + 5 * 1000


def test_a_forecast_counts_headers_once() -> None:
    first = EncodedSample(header_bytes=300, first_bytes=1300, bytes=4400, other_bytes=3100, key_frames=1, frames=32)
    other = EncodedSample(header_bytes=300, first_bytes=1300, bytes=3200, other_bytes=3200, key_frames=0, frames=32)
    sampling = Sampling((Sample(0, 32, 3.125), Sample(97, 32, 3.125, 33, 16)), 200)
    assert forecast_bytes([first, other], sampling, RECIPE) == 300 + 199 * 100 + 1000


def test_a_forecast_counts_key_frames_that_samples_have_already() -> None:
    recipe = replace(RECIPE, options={"g": "16"})
    sample = EncodedSample(first_bytes=1000, bytes=5000, other_bytes=3000, key_frames=2, frames=32)
    sampling = Sampling((Sample(33, 32, 5.0, 33, 16), Sample(129, 32, 5.0, 33, 16)), 320)
    assert forecast_bytes([sample, sample], sampling, recipe) == 300 * 100 + 20 * 1000


def test_what_is_encoded_whole_has_its_own_size() -> None:
    stream = EncodedSample(bytes=1900, other_bytes=900, key_frames=1, frames=10)
    assert forecast_bytes([stream], Sampling.whole(10), RECIPE) == 1900
