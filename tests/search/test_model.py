"""The model of score against setting, on made-up curves: it finds the answer of a table with few looks into it."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from vkssim.errors import EncodeError
from vkssim.search.encoders import ENCODERS, encoder_of
from vkssim.search.model import Prior, SettingCurve, SettingsModel

COUNT = 52
PRIOR = Prior(middle=26, level=18, level_deviation=4.5, slope=-0.5, slope_deviation=0.18, bend=0.05, noise=0.05)


def searched(table: np.ndarray, limit: float, highest: float = math.inf, first: int | None = None) -> SettingsModel:
    """Try the settings that the model asks for, after the `first` one, until it asks for none."""
    settings = SettingsModel(len(table), [SettingCurve(PRIOR, limit, highest)])
    place = settings.next() if first is None else first
    while place is not None:
        settings.add(place, [float(table[place])], meets=bool(table[place] >= limit))
        assert len(settings.tried) <= len(table)
        place = settings.next()
    return settings


def answer(table: np.ndarray, limit: float) -> int | None:
    return max((place for place, score in enumerate(table) if score >= limit), default=None)


def line(place: np.ndarray) -> np.ndarray:
    return 30.0 - 0.45 * place


def bent(place: np.ndarray) -> np.ndarray:
    return 36.0 * np.exp(-place / 30)


def steps(place: np.ndarray) -> np.ndarray:
    return 28.0 - 0.5 * (place // 4 * 4)


@pytest.mark.parametrize("limit", [10.0, 14.5, 18.2, 22.0])
@pytest.mark.parametrize(("curve", "off", "most"), [(line, 0, 4), (bent, 0, 5), (steps, 1, 8)])
def test_the_answer_is_that_of_the_table(curve: Callable[[np.ndarray], np.ndarray], off: int, most: int, limit: float) -> None:
    """Stairs are what the model does not expect: there it may be off by a setting."""
    table = curve(np.arange(COUNT))
    settings, expected = searched(table, limit), answer(table, limit)
    assert settings.best is not None
    assert expected is not None
    assert abs(settings.best - expected) <= off
    assert len(settings.tried) <= most
    assert settings.certainty() >= (0.95 if curve is not steps else 0.7)


@pytest.mark.parametrize("limit", [30.0, 40.0, 49.0])
def test_scores_too_high_for_a_curve_lead_on(limit: float) -> None:
    """An easy clip is nearly lossless over many settings; they all have the score above which nothing is told apart."""
    table = np.minimum(60.0 - 0.5 * np.arange(COUNT) - 0.02 * np.maximum(np.arange(COUNT) - 35, 0) ** 2, 50.0)
    settings = searched(table, limit, highest=50.0)
    assert settings.best == answer(table, limit)
    assert len(settings.tried) <= 9


@pytest.mark.parametrize(
    ("table", "limit", "best", "most", "certainty"),
    [
        (np.full(COUNT, 15.0), 14.0, COUNT - 1, 3, 0.99),
        (np.full(COUNT, 15.0), 16.0, None, COUNT, 0.95),
        (line(np.arange(COUNT)), 2.0, COUNT - 1, 3, 0.99),
        (line(np.arange(COUNT)), 45.0, None, 4, 0.99),
    ],
    ids=["flat and met", "flat and missed", "always met", "never met"],
)
def test_a_target_that_every_setting_or_none_meets(
    table: np.ndarray, limit: float, best: int | None, most: int, certainty: float
) -> None:
    """A search ends at the cheapest setting, or at the best quality."""
    settings = searched(table, limit)
    assert settings.best == best
    assert (0 if best is None else best) in settings.tried
    assert len(settings.tried) <= most
    assert settings.certainty() >= certainty


@pytest.mark.parametrize("noise", [0.05, 0.3])
def test_answers_are_as_often_right_as_they_are_said_to_be(noise: float) -> None:
    """Also where scores jump six times as far as the prior has it, so that a setting beyond one that failed may meet."""
    rng = np.random.default_rng(5)
    said, off, trials = [], [], []
    for _ in range(300):
        table = line(np.arange(COUNT)) + rng.normal(0, noise, COUNT)
        limit = rng.uniform(10, 25)
        settings, expected = searched(table, limit), answer(table, limit)
        assert settings.best is not None
        assert expected is not None
        said.append(settings.certainty())
        off.append(abs(settings.best - expected))
        trials.append(len(settings.tried))
    right = np.array(off) == 0
    assert np.mean(right[np.array(said) >= 0.9]) >= 0.9
    assert abs(np.mean(said) - np.mean(right)) <= 0.05
    assert noise > 0.05 or (max(off) <= 1 and np.median(trials) <= 4)


@pytest.mark.parametrize(
    ("limit", "damaged", "most"),
    [(29.1, {1: 1.2}, 5), (29.1, {0: 2.0, 1: 1.2}, 5), (18.0, {26: 3.0}, 5), (45.0, {0: 1.2}, 4)],
    ids=["beside the best quality", "at the best quality too", "in the middle", "no setting meets"],
)
def test_a_damaged_stream_says_nothing_of_other_settings(limit: float, damaged: dict[int, float], most: int) -> None:
    """Neither as the first trial, nor after a cheaper one, which has a better score."""
    table = line(np.arange(COUNT))
    table[list(damaged)] = list(damaged.values())
    for first in (None, 40, *damaged):
        settings = searched(table, limit, first=first)
        assert settings.best == answer(table, limit)
        assert set(settings.damaged) == {place for place in damaged if place in settings.tried}
        assert len(settings.tried) <= most


CURVE = SettingCurve(PRIOR, 18.0)
FLAT = SettingCurve(replace(PRIOR, slope=-0.3, noise=0.04), 18.1)
JUMPY = ((20, 21.0), (24, 19.0), (39, 18.05), (41, 15.0), (43, 14.0), (46, 12.5))


@pytest.mark.parametrize(
    ("curve", "unusable", "trials", "damaged", "following"),
    [
        # All settings better than one that failed narrowly are as good as certain: the cheapest of them teaches something.
        (CURVE, (), ((30, 17.0), (28, 17.95)), [], 27),
        # The only setting between one that met and one that failed, however improbable the trials around it make it.
        (CURVE, (), JUMPY, [], 40),
        (CURVE, (), (*JUMPY, (40, 17.0)), [], None),
        # The setting beside damaged ones may have suffered as well: SVT-AV1 with preset 12, a test picture, and CRF 1 to 4.
        (FLAT, (0,), ((23, 16.0), (15, 16.5), (1, 5.6), (2, 17.95)), [1], 3),
        # A clip far harder than usual: the first trial is doubted, and one that is not its neighbour confirms it.
        (CURVE, (), ((26, 4.0),), [26], 29),
        (CURVE, (), ((26, 4.0), (29, 2.8)), [], 0),
        # The streams of neighbours may both be damaged, as of SVT-AV1 with preset 12 and CRF 1 and 2.
        (CURVE, (), ((26, 4.0), (27, 3.6)), [26, 27], 30),
    ],
)
def test_the_next_setting(
    curve: SettingCurve,
    unusable: tuple[int, ...],
    trials: tuple[tuple[int, float], ...],
    damaged: list[int],
    following: int | None,
) -> None:
    settings = SettingsModel(COUNT, [replace(curve, trials=[], damaged=set())])
    for place in unusable:
        settings.drop(place, EncodeError("no frame"))
    for place, score in trials:
        settings.add(place, [score], meets=score >= 18.0)
    assert settings.damaged == damaged
    assert set(settings.failed).isdisjoint(damaged)
    assert settings.next() == following


def test_without_a_trial_that_meets_the_next_one_of_a_check_is_the_cheapest_likely_one() -> None:
    settings = SettingsModel(COUNT, [CURVE.around(26, 0.5, 0.15)])
    settings.add(26, [17.6], meets=False)
    assert settings.likely() == 25


@pytest.mark.parametrize("limit", [10.0, 18.2, 26.0])
@pytest.mark.parametrize("score", [None, 1.2, 2.9], ids=["unusable", "far too low", "too low"])
def test_two_neighbours_that_are_damaged_hide_no_answer(limit: float, score: float | None) -> None:
    """Wherever they are, the first trials among them."""
    for first in range(COUNT - 1):
        table = line(np.arange(COUNT))
        damaged = {first: score, first + 1: score}
        table[list(damaged)] = -math.inf if score is None else score
        settings = SettingsModel(COUNT, [SettingCurve(PRIOR, limit)])
        while (place := settings.next()) is not None:
            if place in damaged and score is None:
                settings.drop(place, EncodeError("no frame"))
            else:
                settings.add(place, [float(table[place])], meets=bool(table[place] >= limit))
        assert settings.best == answer(table, limit)
        assert set(settings.failed).isdisjoint(damaged)
        assert len(settings.tried) + len(settings.unusable) <= 9


def test_a_cheaper_setting_is_tried_where_the_best_quality_fails_narrowly() -> None:
    """SVT-AV1 with preset 12: the best settings are no better than the next ones, or damaged."""
    table = np.concatenate([[2.0, 6.2, 17.955, 18.25, 18.1], 17.7 - 0.085 * np.arange(COUNT - 5)])
    settings = searched(table, 17.96)
    assert settings.best == 4
    assert settings.damaged == [place for place in (0, 1) if place in settings.tried]
    assert len(settings.tried) <= 10


def test_a_prediction_takes_memory_in_proportion_to_the_settings() -> None:
    curve = SettingCurve(PRIOR, 18.0)
    for place in (1000, 2000, 3000):
        curve.add(place, 18.0)
    tracemalloc.start()
    curve.predict(range(5001))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10e6


def test_a_score_that_does_not_exist_teaches_nothing() -> None:
    settings = SettingsModel(COUNT, [SettingCurve(PRIOR, 18.0)])
    before = settings.probabilities()
    settings.add(51, [math.nan], meets=False)
    assert settings.probabilities()[:51] == pytest.approx(before[:51])


@pytest.mark.parametrize("name", ENCODERS)
def test_each_encoder_has_priors_for_each_parameter(name: str) -> None:
    encoder = encoder_of(name)
    for parameter in [*encoder.parameters, "bitrate"]:
        chosen = encoder.parameter(parameter)
        prior = encoder.prior(chosen, "float_ms_ssim", "p5", decibels=True)
        assert 0 <= prior.middle < len(chosen.values)
        assert prior.slope < 0
        assert min(prior.noise, prior.bend, prior.level_deviation) > 0
