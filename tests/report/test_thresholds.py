"""--fail-under: demands on pooled scores, from the command line and from the library."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vkssim as library
from vkssim.errors import OptionError, ThresholdError
from vkssim.page.tables import Limit
from vkssim.report.numbers import shortest, told_apart
from vkssim.report.results import FrameScores
from vkssim.report.thresholds import POOLINGS, Threshold, parse_threshold, unmet

from ..support.clips import raw_bytes, write
from ..support.commands import fail, pair_words, refuse, succeed, vkssim
from ..support.pictures import clip
from .reports import small_report

LUMA = clip(6)


@pytest.fixture
def words(tmp_path: Path) -> tuple[str, ...]:
    """The words that score a pair of raw clips, one of whose frames is worse than the others."""
    distorted = np.roll(LUMA, 1, axis=2)
    distorted[4] = np.roll(LUMA[4], 3, axis=1)
    return pair_words(tmp_path, LUMA, distorted)


@pytest.fixture
def pooled(words: tuple[str, ...]) -> dict[str, float]:
    found: dict[str, float] = json.loads(vkssim(*words, "--json", "--precision", "max").stdout)["pooled_metrics"]["float_ssim"]
    return found


@pytest.mark.parametrize("pooling", POOLINGS)
def test_each_pooling_just_met_and_just_missed(words: tuple[str, ...], pooled: dict[str, float], pooling: str) -> None:
    value = pooled[pooling]
    assert succeed(*words, "-q", "--fail-under", f"float_ssim:{pooling}={value!r}").output == ""
    limit = value + 1e-6
    missed = f"{pooling} of float_ssim is {value:.9g}, the limit is {shortest(limit)} (--fail-under)"
    fail(1, missed, *words, "-q", "--fail-under", f"float_ssim:{pooling}={limit!r}")


@pytest.mark.parametrize(
    ("value", "limit", "text"),
    [
        (0.9599996, 0.96, "0.9599996"),
        (0.9601, 0.96, "0.960100"),
        (0.96, 0.96, "0.960000"),
        (math.nextafter(0.96, 0), 0.96, "0.9599999999999999"),
        (0.9600004, 0.9600003, "0.9600004"),
        (0.95, None, "0.950000"),
        (math.inf, 0.96, "inf"),
    ],
)
def test_a_score_is_told_from_its_limit(value: float, limit: float | None, text: str) -> None:
    assert told_apart(value, limit) == text


def test_a_score_that_rounds_to_its_limit_is_told_from_it(words: tuple[str, ...], pooled: dict[str, float]) -> None:
    """In the sentence and on the page."""
    value = pooled["mean"]
    limit = math.nextafter(value, 2)
    missed = vkssim(*words, "-q", "--fail-under", f"float_ssim={limit!r}").stderr
    assert f"mean of float_ssim is {value!r}, the limit is {limit!r} (--fail-under)" in missed
    report = small_report()
    report.frames = [FrameScores(0, dict.fromkeys(report.names, value))]
    of_page = Limit.of(Threshold("float_ssim", "mean", limit), limit, report)
    assert (of_page.text, of_page.met) == (f"float_ssim mean ≥ {limit!r}", False)
    assert float(of_page.value) == value


def test_the_mean_by_default(pooled: dict[str, float]) -> None:
    assert parse_threshold("float_ssim=0.5") == Threshold("float_ssim", "mean", 0.5)
    assert len({pooled[key] for key in POOLINGS}) == len(POOLINGS), "no pooling stands in for another here"


def test_outputs_are_written_all_the_same(words: tuple[str, ...], tmp_path: Path) -> None:
    result = fail(1, "the limit is 1.1", *words, "--fail-under", "float_ssim=1.1", "-o", str(tmp_path / "scores.json"))
    assert len(json.loads((tmp_path / "scores.json").read_text())["frames"]) == len(LUMA)
    assert "worst frames" in result.stdout


def test_every_failed_demand_is_named(words: tuple[str, ...], tmp_path: Path) -> None:
    short = write(tmp_path / "short.yuv", raw_bytes(LUMA[:5]))
    flags = [word for limit in (":min=1.1", "=0", ":p5=1.2") for word in ("--fail-under", f"float_ssim{limit}")]
    result = fail(1, "(--strict)", *(short if word == words[4] else word for word in words), *flags, "--strict", "-q")
    assert all(word in result.stderr for word in ("min of float_ssim is", "p5 of float_ssim is"))
    assert "mean of float_ssim" not in result.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("float_ssim", "is not of the form NAME=LIMIT or NAME:POOLING=LIMIT"),
        ("=0.5", "is not of the form"),
        ("float_ssim=good", "is not of the form"),
        ("float_ssim=nan", "is not of the form"),
        ("float_ssim:median=0.5", f"(did you mean p50?). Available poolings: {', '.join(POOLINGS)}"),
        ("float_ssim:=0.5", "unknown pooling ''"),
        ("vmaf=90", "vmaf is not scored. Available scores: float_ssim"),
        ("float_ms_ssim=0.9", "float_ms_ssim is not scored"),
    ],
)
def test_refused_before_anything_is_scored(words: tuple[str, ...], text: str, message: str) -> None:
    refuse(message, *words, "--fail-under", text)


def test_no_mean_in_decibel_of_what_is_in_decibel_already(words: tuple[str, ...]) -> None:
    refuse(
        "float_ssim has no mean_db", *words[:-1], "float_ssim=scale=1:enable_db=true", "--fail-under", "float_ssim:mean_db=10"
    )


def test_a_score_that_does_not_exist_meets_no_demand() -> None:
    assert unmet([Threshold("float_ms_ssim", "mean", -1.0)], small_report()) == [
        "mean of float_ms_ssim is null, the limit is -1 (`fail_under`)"
    ]


def test_library(words: tuple[str, ...]) -> None:
    raw = library.RawDescription(32, 24, "420", 8)
    arguments: dict[str, Any] = {"raw": raw, "features": "float_ssim=scale=1", "backend": "cpu"}
    assert library.score_files(words[2], words[4], fail_under=["float_ssim=0"], **arguments).frames
    with pytest.raises(ThresholdError, match="the limit is 2") as caught:
        library.score_files(words[2], words[4], fail_under=["float_ssim:min=2"], **arguments)
    assert caught.value.report is not None
    assert len(caught.value.report.frames) == len(LUMA)
    with pytest.raises(OptionError, match="unknown pooling"):
        library.score_files("no such file", "nor this", fail_under=["float_ssim:top=2"])
