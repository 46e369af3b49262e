"""Scene cuts, samples, pooled values of samples, and the forecast of sizes."""

from __future__ import annotations

import numpy as np
import pytest

from vkssim.report.results import PERCENTILES, pool
from vkssim.search.encode import Stream
from vkssim.search.encoders import encoder_of
from vkssim.search.pooling import pooled_value
from vkssim.search.recipe import Recipe
from vkssim.search.samples import Sample, Sampling, choose_samples, find_cuts
from vkssim.search.source import Scan
from vkssim.search.trial import forecast_bytes

RECIPE = Recipe(encoder_of("libx264"), encoder_of("libx264").parameter(None), "yuv420p")


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


def scan(shots: list[tuple[int, float]]) -> Scan:
    """Shots of so many frames and so much motion."""
    found = Scan()
    for length, motion in shots:
        for number in range(length):
            found.changes.append(60.0 if number == 0 and found.times else motion)
            found.details.append(30.0)
            found.times.append(len(found.times))
    return found


def test_a_short_clip_is_encoded_whole() -> None:
    sampling = choose_samples(scan([(60, 1.0), (60, 2.0)]), length=20, most=100)
    assert sampling.is_whole
    assert sampling.samples == (Sample(0, 120),)
    assert sampling.cuts == 2


def test_samples_stand_for_all_frames_and_all_kinds_of_shots() -> None:
    clip = scan([(200, 0.2), (300, 5.0), (100, 0.2), (400, 2.0)])
    sampling = choose_samples(clip, length=50, most=250)
    assert len(sampling.samples) == 5
    assert sum(sample.count * sample.weight for sample in sampling.samples) == pytest.approx(clip.count, rel=0.12)
    motions = {clip.changes[sample.first + 1] for sample in sampling.samples}
    assert motions == {0.2, 2.0, 5.0}
    firsts = [sample.first for sample in sampling.samples]
    assert firsts == sorted(firsts)
    assert all(sample.at_cut == (sample.first in find_cuts(clip.changes)) for sample in sampling.samples)


@pytest.mark.parametrize("pooling", ["mean", "harmonic_mean", "min", "max", *(f"p{rank}" for rank in PERCENTILES)])
def test_equal_weights_pool_as_reports_do(pooling: str) -> None:
    scores = np.random.default_rng(2).random(61)
    pieces = [scores[:20], scores[20:37], scores[37:]]
    assert pooled_value(pooling, pieces, [2.0, 2.0, 2.0]) == pytest.approx(pool(scores)[pooling], abs=1e-12)


@pytest.mark.parametrize("pooling", ["mean", "harmonic_mean", "min", "max", "p5", "p50"])
def test_weights_are_repetitions(pooling: str) -> None:
    """A sample of weight 3 counts as three equal ones do, up to the interpolation of a percentile."""
    first, second = np.random.default_rng(4).random((2, 200))
    repeated = pool(np.concatenate([first, first, first, second]))[pooling]
    assert pooled_value(pooling, [first, second], [3.0, 1.0]) == pytest.approx(repeated, abs=0.003)


def test_a_frame_without_a_score_leaves_no_pooled_value() -> None:
    assert np.isnan(pooled_value("p5", [np.array([0.5, np.nan]), np.array([0.7])], [1.0, 2.0]))


def test_mean_db_is_that_of_the_mean() -> None:
    assert pooled_value("mean_db", [np.array([0.9, 0.98]), np.array([0.96])], [1.0, 2.0]) == pytest.approx(
        -10 * np.log10(1 - 0.95)
    )


def test_a_forecast_counts_the_key_frames_of_the_clip() -> None:
    """Ten frames of 100 bytes behind a key frame of 1000, twice; the clip has 400 frames in 4 shots."""
    stream = Stream(key_bytes=1000, other_bytes=900, key_frames=1, frames=10)
    sampling = Sampling((Sample(0, 10, 20.0), Sample(200, 10, 20.0, at_cut=False)), 400, 4)
    assert forecast_bytes([stream, stream], sampling, RECIPE) == 396 * 100 + 4 * 1000


def test_a_forecast_counts_headers_once() -> None:
    stream = Stream(header_bytes=300, key_bytes=1300, other_bytes=900, key_frames=1, frames=10)
    sampling = Sampling((Sample(0, 10, 20.0), Sample(200, 10, 20.0)), 400, 4)
    assert forecast_bytes([stream, stream], sampling, RECIPE) == 300 + 396 * 100 + 4 * 1000


def test_what_is_encoded_whole_has_its_own_size() -> None:
    stream = Stream(key_bytes=1000, other_bytes=900, key_frames=1, frames=10)
    assert forecast_bytes([stream], Sampling((Sample(0, 10),), 10, 1), RECIPE) == 1900
