"""Bjøntegaard deltas, held to published numbers and to integrals of our own."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.polynomial import Polynomial

from vkssim.errors import InputError
from vkssim.ladder import tables
from vkssim.report.bd_rate import RateCurve, bjontegaard_deltas, in_decibels

from ..support.commands import TINY, fail, refuse, succeed, vkssim
from ..support.pictures import clip
from .ladders import encode, ladder, lossless, manifest, scored_otherwise

ANCHOR = RateCurve.of("anchor", [(300, 0.90), (700, 0.945), (1500, 0.972), (3200, 0.988)])
TEST = RateCurve.of("test", [(3000, 0.990), (260, 0.905), (640, 0.951), (1300, 0.974), (2000, 0.983)])

INTERPOLATIONS = ("akima", "pchip", "cubic")


def _mean_difference(method: str, anchor: tuple[Any, Any], test: tuple[Any, Any]) -> float:
    """By numerical integration of test less anchor over the range of x that both have."""
    from scipy.integrate import quad  # here: SciPy takes a second, in each process that collects the tests
    from scipy.interpolate import Akima1DInterpolator, PchipInterpolator

    interpolations = {
        "akima": Akima1DInterpolator,
        "pchip": PchipInterpolator,
        "cubic": lambda x, y: Polynomial.fit(x, y, 3),
    }
    low, high = max(anchor[0].min(), test[0].min()), min(anchor[0].max(), test[0].max())
    one, other = (interpolations[method](*curve) for curve in (anchor, test))
    area, _ = quad(lambda x: float(other(x) - one(x)), low, high, limit=500)
    return float(area / (high - low))


@pytest.mark.parametrize("method", INTERPOLATIONS)
def test_both_deltas_are_the_integrals(method: str) -> None:
    deltas = bjontegaard_deltas(ANCHOR, TEST, method)
    by_score = [(curve.scores, np.log10(curve.rates)) for curve in (ANCHOR, TEST)]
    by_rate = [(rates, scores) for scores, rates in by_score]
    assert deltas.bd_rate == pytest.approx(100 * (10 ** _mean_difference(method, *by_score) - 1), rel=1e-5)
    assert deltas.bd_score == pytest.approx(_mean_difference(method, *by_rate), rel=1e-5)
    assert deltas.bd_rate < 0 < deltas.bd_score
    assert deltas.points == (4, 5)
    assert deltas.warnings == []


def test_the_same_quality_at_a_fixed_share_of_the_rate() -> None:
    """Known without any interpolation: 20 % less is 20 % less."""
    for method in INTERPOLATIONS:
        cheaper = RateCurve("test", ANCHOR.rates * 0.8, ANCHOR.scores)
        assert bjontegaard_deltas(ANCHOR, cheaper, method).bd_rate == pytest.approx(-20)
        same = bjontegaard_deltas(ANCHOR, ANCHOR, method)
        assert (same.bd_rate, same.bd_score) == pytest.approx((0, 0))


def test_a_fold_is_warned_of() -> None:
    folded = RateCurve.of("folded", [(300, 0.90), (700, 0.955), (1500, 0.95), (3200, 0.988)])
    (warning,) = bjontegaard_deltas(ANCHOR, folded).warnings
    assert warning.startswith("folded: the score does not always rise with the bit rate")


@pytest.mark.parametrize("count", [2, 3])
def test_few_points_have_the_method_that_suits_them(count: int) -> None:
    """Two are a straight line, whatever was asked for; the deltas say so."""
    few = [
        RateCurve(curve.name, curve.rates[:count] * share, curve.scores[:count])
        for curve, share in ((ANCHOR, 1), (ANCHOR, 0.8))
    ]
    deltas = bjontegaard_deltas(few[0], few[1], "cubic")
    assert (deltas.method, deltas.points) == ("pchip", (count, count))
    assert deltas.bd_rate == pytest.approx(-20)
    assert any(f"{ANCHOR.name} has {count} points" in warning and "pchip" in warning for warning in deltas.warnings)
    assert bjontegaard_deltas(ANCHOR, few[1]).method == "pchip"


def test_little_overlap_is_warned_of_and_none_refused() -> None:
    high = RateCurve.of("high", [(1600, 0.975), (2500, 0.985), (5000, 0.992), (9000, 0.996)])
    warnings = bjontegaard_deltas(ANCHOR, high).warnings
    assert ["their scores" in text or "their bit rates" in text for text in warnings] == [True] * 2
    for beyond, what in (([0.99, 0.993, 0.995, 0.997], "scores"), ([0.90, 0.95, 0.97, 0.99], "bit rates")):
        rates = [400, 900, 1700, 3000] if what == "scores" else [4000, 9000, 17000, 30000]
        with pytest.raises(InputError, match=f"the {what} of anchor, .*, and of far, .* do not overlap"):
            bjontegaard_deltas(ANCHOR, RateCurve.of("far", list(zip(rates, beyond, strict=True))))


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([(1, 0.1)], "few has 1 point; a Bjøntegaard delta needs 2 or more"),
        ([], "few has 0 points"),
        ([(0, 0.1), (1, 0.2), (2, 0.3), (3, 0.4)], "few has a bit rate of 0; all must be over 0"),
        ([(1, 0.1), (2, 0.2), (2, 0.3), (3, 0.4)], "more than one point with the bit rate 2"),
        ([(1, 0.1), (2, 0.2), (3, 0.4), (4, 0.4)], "more than one point with the score 0.4"),
    ],
)
def test_points_through_which_no_curve_goes(points: Sequence[tuple[float, float]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        RateCurve.of("few", points)


def test_decibels() -> None:
    np.testing.assert_allclose(in_decibels(np.array([0.9, 0.99, 0.0])), [10, 20, 0])
    with pytest.raises(InputError, match="a score of 1 is infinite in dB"):
        in_decibels(np.array([0.5, 1.0]))
    with pytest.raises(InputError, match=r"a score of 38\.5 is not a similarity"):
        in_decibels(np.array([0.5, 38.5]))


# -- the command ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of two references at four qualities by two presets, without bit rates in the manifest."""
    folder = tmp_path_factory.mktemp("ladders")
    rows = []
    for seed in (0, 1):
        luma = clip(5, 64, 96, seed=seed)
        reference = lossless(folder / f"clip{seed}.mkv", luma)
        for (name, preset), crf in product((("clip", "medium"), ("fast", "ultrafast")), (22, 28, 34, 40)):
            distorted = encode(folder / f"{name}{seed}_{crf}.mp4", luma, crf=str(crf), preset=preset)
            rows.append({"reference": reference, "distorted": distorted, "crf": crf, "preset": preset})
    path = folder / "results.parquet"
    succeed("batch", manifest(folder / "ladder.csv", rows), "-o", str(path), *TINY)
    return path


WORDS = ("--anchor", "preset=ultrafast", "--test", "preset=medium")


def test_two_presets(results: Path) -> None:
    answer = json.loads(vkssim("bd-rate", str(results), *WORDS, "--json").stdout)
    assert answer["rate"] == "measured_kbps"
    assert [(row["reference"], row["score"]) for row in answer["deltas"]] == [
        ("clip0.mkv", "float_ssim"),
        ("clip1.mkv", "float_ssim"),
    ]
    rates = [row["bd_rate"] for row in answer["deltas"]]
    assert all(rate < 0 for rate in rates), "the slower preset needs less"
    assert answer["means"][0]["bd_rate"] == pytest.approx(sum(rates) / 2)
    lowest = succeed("bd-rate", str(results), *WORDS, "--json", "--pooling", "p5")
    assert json.loads(lowest.stdout)["deltas"] != answer["deltas"]
    table = succeed("bd-rate", str(results), *WORDS, "--pooling", "harmonic_mean").stdout
    assert " dB " in table
    assert "mean" in table


def test_similarities_are_compared_in_decibels(results: Path) -> None:
    """As on a page of the same file, whose deltas are in dB; --linear compares them as they are."""
    answer, linear = (
        json.loads(vkssim("bd-rate", str(results), *WORDS, "--json", *more).stdout) for more in ((), ("--linear",))
    )
    assert [row["db"] for row in (*answer["deltas"], *answer["means"])] == [True] * 3
    assert not any(row["db"] for row in (*linear["deltas"], *linear["means"]))
    rows = [row for row in tables.read_table(results) if row["reference"] == "clip0.mkv"]
    anchor, test = (
        RateCurve.of(preset, [(row["measured_kbps"], row["float_ssim_mean_db"]) for row in rows if row["preset"] == preset])
        for preset in ("ultrafast", "medium")
    )
    assert answer["deltas"][0]["bd_rate"] == pytest.approx(bjontegaard_deltas(anchor, test).bd_rate, rel=1e-9)
    assert abs(linear["deltas"][0]["bd_rate"] - answer["deltas"][0]["bd_rate"]) > 0.01


def test_scores_in_decibels_stay_as_they_are(tmp_path: Path) -> None:
    """Similarities are converted; float_psnr and a similarity that was given in dB are not."""
    rungs = [
        {**row, "preset": preset}
        for preset, crfs in (("medium", (22, 28, 34, 40)), ("ultrafast", (24, 30, 36, 42)))
        for row in ladder(tmp_path, "clip", crfs, frames=3)
    ]
    features: tuple[str, ...] = ("--backend", "cpu", "--planes", "all", "--feature", "float_psnr")
    features += ("--feature", "float_ssim=scale=1:enable_db=true")
    path = str(tmp_path / "results.csv")
    succeed("batch", manifest(tmp_path / "ladder.csv", rungs), "-o", path, *features)
    names = ("float_psnr", "float_psnr_all", "float_ssim")  # the chroma is flat, and all of its points are the limit
    asked = [*WORDS, "--json", *(word for name in names for word in ("--score", name))]
    plain, decibels = (json.loads(succeed("bd-rate", path, *asked, *more).stdout) for more in (("--linear",), ()))
    assert [row["score"] for row in plain["deltas"]] == list(names)
    assert decibels["deltas"] == plain["deltas"]
    assert not any(row["db"] for row in decibels["deltas"])
    assert all(0.01 < abs(row["bd_score"]) < 10 for row in plain["deltas"]), "dB, and none of dB"


def test_rates_of_another_column(results: Path) -> None:
    """With the quantiser as the rate more is worse, which is a fold from end to end."""
    result = vkssim("bd-rate", str(results), *WORDS, "--rate", "crf", "--json")
    assert json.loads(result.stdout)["rate"] == "crf"
    assert "does not always rise" in result.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--anchor", "preset", "--test", "preset=medium"), "--anchor preset; it must be LABEL=VALUE, LABEL one of reference"),
        (("--anchor", "codec=x", "--test", "preset=medium"), "LABEL one of reference, crf, preset"),
        (("--anchor", "preset=slow", "--test", "preset=medium"), "no row has that; preset is medium, ultrafast"),
        (
            ("--anchor", "preset=medium", "--anchor", "crf=22", "--test", "preset=medium"),
            "preset=medium crf=22 of clip0.mkv has 1 point",
        ),
        ((*WORDS, "--score", "psnr"), "no score psnr in the results. Available scores: float_ssim"),
        ((*WORDS, "--pooling", "mode"), "float_ssim is not pooled as 'mode'. Available: min, max, mean"),
        ((*WORDS, "--rate", "bitrate"), "no column 'bitrate'"),
        ((*WORDS, "--rate", "preset"), "preset is 'ultrafast'; it must be a number"),
    ],
)
def test_what_the_command_refuses(results: Path, words: tuple[str, ...], message: str) -> None:
    fail(2, message, "bd-rate", str(results), *words)


def test_a_failed_pair_is_left_out_with_a_warning(results: Path, tmp_path: Path) -> None:
    """The other pairs of its reference stay; a reference that has too few is left out of the mean."""
    table = tables.read_table(results)
    for row in table[:4]:
        row |= {"error": "no such file", "error_type": "InputError", "float_ssim_mean": None}
    (tmp_path / "r.csv").write_bytes(tables.render_rows(table[1:], ".csv"))
    result = succeed("bd-rate", str(tmp_path / "r.csv"), *WORDS, "--json")
    assert "warning: clip0_28.mp4 was not scored (no such file) and is left out" in result.stderr
    assert "preset=medium of clip0.mkv has 0 points; a Bjøntegaard delta needs 2 or more; this reference" in result.stderr
    answer, whole = json.loads(result.stdout), json.loads(vkssim("bd-rate", str(results), *WORDS, "--json").stdout)
    assert answer["deltas"] == whole["deltas"][1:]
    assert answer["means"][0]["bd_rate"] == whole["deltas"][1]["bd_rate"]
    (tmp_path / "r.csv").write_bytes(tables.render_rows([row for row in table if row["reference"] == "clip1.mkv"][:7], ".csv"))
    few = succeed("bd-rate", str(tmp_path / "r.csv"), *WORDS, "--anchor", "reference=clip1.mkv")
    assert "pchip, 3 points" in " ".join(few.stdout.split())


def test_a_reference_without_a_delta_meets_no_limit(results: Path, tmp_path: Path) -> None:
    """The test has lost it. One that the anchor has no curve of is nothing to reach."""
    path = tmp_path / "r.csv"
    for preset, code in (("medium", 1), ("ultrafast", 0)):
        table = tables.read_table(results)
        for row in table:
            if (row["reference"], row["preset"]) == ("clip0.mkv", preset):
                row |= {"error": "no such file", "error_type": "InputError", "float_ssim_mean": None}
        path.write_bytes(tables.render_rows(table, ".csv"))
        result = vkssim("bd-rate", str(path), *WORDS, "--fail-over", "1000", "--json")
        assert result.exit_code == code
        assert ("1 reference without a BD-rate, which meets no limit: clip0.mkv" in result.stderr) == bool(code)
        answer = json.loads(result.stdout)
        assert (answer["passed"], len(answer["lost"])) == (not code, code)


def test_the_gate(results: Path) -> None:
    """It judges the mean over the references."""
    mean = json.loads(vkssim("bd-rate", str(results), *WORDS, "--json").stdout)["means"][0]["bd_rate"]
    succeed("bd-rate", str(results), *WORDS, "--fail-over", str(mean + 0.01))
    failed = fail(
        1,
        f"BD-rate {mean:.2f} % for float_ssim; the limit is",
        "bd-rate",
        str(results),
        *WORDS,
        "--fail-over",
        str(mean - 0.01),
    )
    assert "mean" in failed.stdout, "the table is there whatever the verdict"


def test_files_without_scores(results: Path, tmp_path: Path) -> None:
    (tmp_path / "r.parquet").write_bytes(b"PAR1")
    names = {results.parent / "ladder.csv": "`vkssim batch", tmp_path / "r.parquet": "is not Parquet"}
    for path, message in {**names, tmp_path / "none.parquet": "cannot be read"}.items():
        fail(2, message, "bd-rate", str(path), *WORDS)


def test_a_missing_library_is_named(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bjontegaard", None)
    fail(2, "pip install 'vkssim[report]'", "bd-rate", str(results), *WORDS)


# -- not scored alike -------------------------------------------------------------------------------------------------


def _uniform(scoring: dict[str, Any]) -> None:
    scoring["features"][0]["options"]["window"] = "uniform8"


@pytest.mark.parametrize("rows", [slice(0, 1), slice(8, None)], ids=["one rung", "all of one reference"])
def test_rows_that_were_not_scored_alike(results: Path, tmp_path: Path, rows: slice) -> None:
    """Neither curves of one reference nor their mean may be of different scores."""
    path = scored_otherwise(results, tmp_path / "r.csv", _uniform, rows)
    refuse("were not scored alike: features: float_ssim window ", "bd-rate", path, *WORDS, "--json")
    forced = succeed("bd-rate", path, *WORDS, "--json", "--force")
    assert forced.stderr.startswith("vkssim: warning: ")
    assert json.loads(forced.stdout) == json.loads(vkssim("bd-rate", str(results), *WORDS, "--json").stdout)


def test_rows_that_are_not_asked_for_may_be_as_they_like(results: Path, tmp_path: Path) -> None:
    path = scored_otherwise(results, tmp_path / "r.csv", _uniform, slice(0, 4))
    succeed("bd-rate", path, "--anchor", "reference=clip1.mkv", *WORDS)
    table = tables.read_table(results)
    for row in table:
        del row["scoring"]
        del row["distorted_codec"]
    (tmp_path / "old.csv").write_bytes(tables.render_rows(table, ".csv"))
    old = succeed("bd-rate", str(tmp_path / "old.csv"), *WORDS)
    assert "note: it is unknown how fast0_22.mp4, fast0_28.mp4, fast0_34.mp4 and 13 more were scored" in old.stderr


@pytest.mark.parametrize("text", ["x", "[]", "{}", '{"version": 1}', '{"reference": [], "distorted": {}}'])
def test_a_column_that_says_nothing(results: Path, tmp_path: Path, text: str) -> None:
    table = tables.read_table(results)
    table[0]["scoring"] = text
    (tmp_path / "r.csv").write_bytes(tables.render_rows(table, ".csv"))
    fail(2, "the column scoring is not a record of how it was scored", "bd-rate", str(tmp_path / "r.csv"), *WORDS)
