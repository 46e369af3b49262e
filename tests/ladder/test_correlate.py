"""Correlations with opinions that were made up, so that the answer is known."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vkssim.errors import InputError
from vkssim.ladder.correlate import correlate, logistic
from vkssim.ladder.tables import read_table, render_rows
from vkssim.types import Doubles

from ..support.commands import TINY, fail, refuse, succeed, vkssim
from .ladders import ladder, manifest, scored_otherwise

CURVE = (90.0, 10.0, 0.93, 0.02)


def _made_up(pairs: int, noise: float, seed: int = 0) -> tuple[Doubles, Doubles]:
    """Scores, and opinions that follow them by CURVE but for the noise."""
    rng = np.random.default_rng(seed)
    scores = rng.uniform(0.82, 1, pairs)
    return scores, logistic(scores, *CURVE) + rng.normal(0, 1, pairs) * noise


def test_opinions_that_follow_the_logistic() -> None:
    scores, opinions = _made_up(40, 0)
    found = correlate(scores, opinions)
    assert found.fit == pytest.approx(CURVE, rel=1e-4)
    assert found.plcc.value == pytest.approx(1, abs=1e-9)
    assert found.srocc.value == found.krocc.value == pytest.approx(1, abs=1e-12)
    assert found.rmse.value == pytest.approx(0, abs=1e-5)
    assert found.pairs == 40


@pytest.mark.parametrize("exponent", [1, 9])
def test_any_monotonic_relation_has_rank_correlations_of_one(exponent: int) -> None:
    scores, _ = _made_up(30, 0)
    found = correlate(scores, scores**exponent)
    assert (found.srocc.value, found.krocc.value) == pytest.approx((1, 1))
    assert found.plcc.value > 0.999


def test_dmos_falls_as_quality_rises() -> None:
    scores, opinions = _made_up(60, 4)
    rising, falling = correlate(scores, opinions), correlate(scores, 100 - opinions)
    assert falling.srocc.value == pytest.approx(-rising.srocc.value)
    assert falling.krocc.value == pytest.approx(-rising.krocc.value)
    assert falling.plcc_raw.value == pytest.approx(-rising.plcc_raw.value)
    assert abs(rising.plcc_raw.value) < rising.plcc.value, "the fit gains something"
    assert falling.plcc.value == pytest.approx(rising.plcc.value, rel=1e-4)
    assert falling.rmse.value == pytest.approx(rising.rmse.value, rel=1e-3)


@pytest.mark.parametrize("rounding", [1, 20], ids=["few ties", "many ties"])
def test_values_are_those_of_scipy(rounding: int) -> None:
    from scipy import stats  # here: it takes a second, in each process that collects the tests

    scores, opinions = _made_up(50, 8)
    opinions = np.round(opinions / rounding) * rounding
    found = correlate(scores, opinions)
    fitted = logistic(scores, *found.fit)
    assert found.plcc.value == pytest.approx(stats.pearsonr(fitted, opinions).statistic)
    raw = stats.pearsonr(scores, opinions)
    assert found.plcc_raw.value == pytest.approx(raw.statistic)
    interval = raw.confidence_interval(0.95)
    assert (found.plcc_raw.low, found.plcc_raw.high) == pytest.approx((interval.low, interval.high))
    assert found.srocc.value == pytest.approx(stats.spearmanr(scores, opinions).statistic)
    assert found.krocc.value == pytest.approx(stats.kendalltau(scores, opinions).statistic)
    assert found.rmse.value == pytest.approx(np.sqrt(np.sum((fitted - opinions) ** 2) / 46))
    interval = stats.pearsonr(fitted, opinions).confidence_interval(0.95)
    assert (found.plcc.low, found.plcc.high) == pytest.approx((interval.low, interval.high))


def test_noise_and_nothing_else() -> None:
    rng = np.random.default_rng(5)
    found = correlate(rng.uniform(0.8, 1, 400), rng.normal(50, 10, 400))
    for estimate in (found.srocc, found.krocc):
        assert estimate.low < 0 < estimate.high
    assert found.plcc.value < 0.2
    assert found.rmse.value == pytest.approx(10, abs=1)


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """Of normal pairs the truth is known: Spearman's is 6/pi asin(r/2), Kendall's 2/pi asin(r)."""
    truth = 0.8
    expected = {"srocc": 6 / np.pi * np.arcsin(truth / 2), "krocc": 2 / np.pi * np.arcsin(truth), "rmse": np.sqrt(1 - truth**2)}
    held = dict.fromkeys(expected, 0)
    rng = np.random.default_rng(1)
    for _ in range(120):
        scores = rng.normal(0, 1, 60)
        found = correlate(scores, truth * scores + np.sqrt(1 - truth**2) * rng.normal(0, 1, 60))
        for name, value in expected.items():
            estimate = getattr(found, name)
            held[name] += estimate.low <= value <= estimate.high
    assert all(0.89 <= count / 120 < 1 for count in held.values()), held


def test_the_fit_finds_its_way_from_any_place() -> None:
    """Steep, flat, off to one side, few at the top: never worse than a straight line."""
    rng = np.random.default_rng(2)
    for middle in (0.5, 0.9, 0.99):
        for width in (0.001, 0.01, 0.3):
            scores = rng.uniform(0.8, 1, 30)
            opinions = logistic(scores, 5, 1, middle, width) + rng.normal(0, 0.02, 30)
            line = np.polynomial.Polynomial.fit(scores, opinions, 1)
            squares = np.sum((logistic(scores, *correlate(scores, opinions).fit) - opinions) ** 2)
            assert squares <= 1.001 * np.sum((line(scores) - opinions) ** 2)


@pytest.mark.parametrize("changed", range(4))
def test_no_parameters_beside_those_of_the_fit_are_better(changed: int) -> None:
    scores, opinions = _made_up(40, 5)
    fit = correlate(scores, opinions).fit
    least = np.sum((logistic(scores, *fit) - opinions) ** 2)
    for factor in (0.9999, 1.0001):
        beside = [value * factor if number == changed else value for number, value in enumerate(fit)]
        assert np.sum((logistic(scores, *beside) - opinions) ** 2) > least


@pytest.mark.parametrize(
    ("scores", "opinions", "message"),
    [
        (range(5), range(5), "5 pairs; a fit of 4 parameters and its error need 6 or more"),
        ([0.9] * 8, range(8), "all scores are 0.9; equal values cannot be correlated"),
        (range(8), [3] * 8, "all opinions are 3; equal values cannot be correlated"),
    ],
)
def test_too_little(scores: Any, opinions: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        correlate(np.array(scores, np.float64), np.array(opinions, np.float64))


# -- the command ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A manifest of two kinds of clips at six qualities, with opinions that fall with the quantiser, and a kind of two."""
    folder = tmp_path_factory.mktemp("rated")
    rows = []
    for seed, kind in enumerate(("waves", "grain")):
        rungs = ladder(folder, kind, (16, 22, 28, 34, 40, 46), frames=2, seed=seed)
        rows += [{**row, "distortion": kind, "mos": 5 - row["crf"] / 15 + 0.05 * seed} for row in rungs]
    rows += [{**row, "distortion": "rare"} for row in rows[:2]]
    return Path(manifest(folder / "rated.csv", rows))


@pytest.fixture(scope="module")
def results(rated: Path) -> Path:
    """The same, scored."""
    path = rated.with_name("results.csv")
    succeed("batch", str(rated), "-o", str(path), *TINY)
    return path


def test_results_need_no_scoring(results: Path) -> None:
    result = succeed("correlate", str(results), "--json")
    assert result.stderr == "vkssim: warning: distortion rare is left out: 2 pairs, 6 are needed\n"
    answer = json.loads(result.stdout)
    assert (answer["opinion"], answer["by"], answer["confidence"]) == ("mos", "distortion", 0.95)
    assert [(row["score"], row["group"], row["pairs"]) for row in answer["correlations"]] == [
        ("float_ssim", "all", 14),
        ("float_ssim", "waves", 6),
        ("float_ssim", "grain", 6),
    ]
    for row in answer["correlations"][1:]:
        assert row["srocc"] == pytest.approx(1)
        for name in ("plcc", "plcc_raw"):
            assert row[f"{name}_low"] <= row[name] <= row[f"{name}_high"]
        assert len(row["fit"]) == 4


def test_table_and_csv(results: Path) -> None:
    table = vkssim("correlate", str(results)).stdout
    assert "\\n" not in table, "the interval stands under its value"
    for word in ("PLCC", "PLCC raw", "SROCC", "KROCC", "RMSE", "float_ssim", "waves", "mean against mos"):
        assert word in table
    rows = list(csv.DictReader(io.StringIO(vkssim("correlate", str(results), "--csv", "--by", "crf").stdout)))
    assert [(row["group"], row["pairs"]) for row in rows] == [("all", "14")], "no group of a quantiser has enough"
    for name in ("plcc_raw", "rmse"):
        found = {part: float(rows[0][f"{name}{part}"]) for part in ("_low", "", "_high")}
        assert found["_low"] < found[""] < found["_high"]


@pytest.mark.parametrize("form", [".csv", ".parquet"])
def test_rows_without_a_value_are_one_group(results: Path, tmp_path: Path, form: str) -> None:
    table = tmp_path / f"results{form}"
    rows = read_table(results)
    table.write_bytes(render_rows([{**row, "kind": "" if number % 2 else "waves"} for number, row in enumerate(rows)], form))
    answer = json.loads(vkssim("correlate", str(table), "--json", "--by", "kind").stdout)
    assert [(row["group"], row["pairs"]) for row in answer["correlations"]] == [("all", 14), ("waves", 7), ("(none)", 7)]


def test_a_manifest_is_scored_first(rated: Path, results: Path, tmp_path: Path) -> None:
    words = ("correlate", str(rated), "--json", *TINY)
    fail(2, "-o RESULTS.csv scores it first", *words)
    scored = vkssim(*words, "-o", str(tmp_path / "r.parquet"))
    assert scored.stdout == vkssim("correlate", str(results), "--json").stdout
    assert vkssim("correlate", str(tmp_path / "r.parquet"), "--json").stdout == scored.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--score", "dmos"), "has no column 'dmos'. The columns are crf, distortion, mos"),
        (("--by", "codec"), "has no column 'codec'"),
        (("--score", "distortion"), "distortion is 'waves'; it must be a number"),
    ],
)
def test_columns_that_are_not_there(rated: Path, tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    fail(2, message, "correlate", str(rated), "-o", str(tmp_path / "r.csv"), *TINY, *words)
    assert not list(tmp_path.iterdir()), "nothing was scored"


def test_a_manifest_is_scored_as_batch_scores_it(tmp_path: Path) -> None:
    rows = [{**row, "mos": row["crf"]} for row in ladder(tmp_path, crfs=(16, 22, 28, 34, 40, 46), frames=1)]
    words = ("--scale", "48x32", "--sync", "pts", *TINY)
    succeed("correlate", manifest(tmp_path / "rated.csv", rows), "-o", str(tmp_path / "r.csv"), *words)
    scored = list(csv.DictReader((tmp_path / "r.csv").read_text().splitlines()))
    assert {(row["width"], row["height"]) for row in scored} == {("48", "32")}


def test_a_table_without_opinions(tmp_path: Path) -> None:
    path = manifest(tmp_path / "ladder.csv", ladder(tmp_path, crfs=(30,), frames=1))
    fail(2, "no column mos or dmos. The columns are crf.", "correlate", path, "-o", str(tmp_path / "r.csv"), *TINY)


def test_a_failed_pair_is_named(tmp_path: Path) -> None:
    rows = [{**row, "mos": 3} for row in ladder(tmp_path, crfs=(30,), frames=1)]
    path = manifest(tmp_path / "ladder.csv", [*rows, {**rows[0], "distorted": "absent.mp4"}])
    vkssim("batch", path, "-o", str(tmp_path / "r.csv"), *TINY)
    fail(2, "absent.mp4 was not scored (", "correlate", str(tmp_path / "r.csv"))


def test_rows_that_were_not_scored_alike(results: Path, tmp_path: Path) -> None:
    path = scored_otherwise(results, tmp_path / "r.csv", lambda scoring: scoring.update(sync="pts"), slice(3, 4))
    unlike = "waves_16.mp4 and waves_34.mp4 were not scored alike: sync index against pts. --force"
    refuse(unlike, "correlate", path, "--json")
    forced = succeed("correlate", path, "--json", "--force")
    assert forced.stderr.startswith("vkssim: warning: waves_16.mp4 and waves_34.mp4 were not scored alike")
    assert forced.stdout == vkssim("correlate", str(results), "--json").stdout
