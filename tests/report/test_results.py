"""Pooled values, and the exit code of each error."""

from __future__ import annotations

import json
import math
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from vkssim import errors
from vkssim.errors import OptionError, exit_code
from vkssim.report import render
from vkssim.report.results import FrameScores, pool

from .reports import small_report


def test_pooling() -> None:
    pooled = pool(np.array([0.5, 1.0, 0.9, 0.6]))
    assert (pooled["min"], pooled["max"], pooled["mean"]) == (0.5, 1.0, 0.75)
    assert pooled["harmonic_mean"] == pytest.approx(4 / (1 / 1.5 + 1 / 2 + 1 / 1.9 + 1 / 1.6) - 1)
    assert pooled["stddev"] == pytest.approx(np.std([0.5, 1.0, 0.9, 0.6]))
    assert pooled["p50"] == 0.75
    assert pooled["min"] < pooled["p1"] < pooled["p5"] < pooled["p10"]


def test_one_missing_score_leaves_no_pooled_value() -> None:
    """A mean over the others would look better than the clip is."""
    assert all(math.isnan(value) for value in pool(np.array([0.9, math.nan])).values())


def test_perfect_scores_in_decibel_pool_without_a_warning() -> None:
    pooled = pool(np.array([math.inf, math.inf]))
    assert pooled["mean"] == pooled["min"] == pooled["harmonic_mean"] == math.inf


@pytest.mark.parametrize("scores", [[math.inf] * 5, [30.0, 40.0, math.inf], [30.0, math.inf, 40.0, math.inf, 35.0]])
def test_percentiles_between_infinite_scores(scores: list[float]) -> None:
    """They are the limits of percentiles of ever larger finite scores."""
    pooled = pool(np.array(scores))
    large = pool(np.minimum(scores, 1e6))
    for name in ("p1", "p5", "p10", "p50"):
        assert pooled[name] == (math.inf if large[name] > 1000 else pytest.approx(large[name]))


@pytest.mark.parametrize(
    ("scores", "expected"), [((0.9, 0.9), 10.0), ((1.0, 1.0 + 2e-16), math.inf), ((0.5, math.nan), math.nan)]
)
def test_mean_in_decibel_of_similarities_alone(scores: tuple[float, float], expected: float) -> None:
    report = small_report()
    report.similarities = ("float_ms_ssim",)
    report.frames = [FrameScores(n, {"float_ms_ssim": score, "float_ssim": 0.5}) for n, score in enumerate(scores)]
    assert report.pooled()["float_ms_ssim"]["mean_db"] == pytest.approx(expected, nan_ok=True)
    assert "mean_db" not in report.pooled()["float_ssim"]


CODES = {
    1: "ThresholdError",
    2: "InputError EncodeError TruncatedInputError RangeError ReadError FrameError OptionError OutputError HostMemoryError"
    " VkssimError",
    3: "DeviceError DecoderBusyError NoLoaderError NoDeviceError UnsuitableDeviceError DeviceMemoryError DeviceLostError"
    " DeviceTimeoutError ForkError WrongNumbersError ValidationError WorkerLostError",
}


def test_exit_codes() -> None:
    """Every error has one."""
    named = {value for name in errors.__all__ if isinstance(value := getattr(errors, name), type)}
    found = {value.__name__: exit_code(value("what went wrong")) for value in named if issubclass(value, errors.VkssimError)}
    assert found == {name: code for code, names in CODES.items() for name in names.split()}


def test_a_report_shows_itself() -> None:
    report = small_report()
    report.warnings = ["<b>bold</b>\x1b[31m"]
    assert repr(report).splitlines() == [
        "<ScoreReport: dis.yuv against ref & <original>.yuv, 2 frames of 32x24, 10 bit",
        " mean float_ms_ssim nan, float_ssim inf>",
    ]
    page = report._repr_html_()
    assert page.count("<svg") == page.count("<polyline") == 2, "scores that are missing leave a gap"
    assert "0.333333</td>" in page
    assert "ref &amp; &lt;original&gt;.yuv" in page
    assert "&lt;b&gt;bold" in page
    assert "\x1b" not in page
    report.frames = []
    assert repr(report).endswith("mean of no frame>")
    assert "<svg" not in report._repr_html_()


def test_a_report_as_plain_values() -> None:
    report = small_report()
    plain = report.to_dict()
    assert plain == json.loads(render(report, "json", "max"))
    assert plain["frames"][1]["metrics"] == {"float_ms_ssim": None, "float_ssim": None}


def test_a_report_as_a_table_of_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    report = small_report()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(OptionError, match=r"to_pandas needs pandas .*`pip install pandas` installs it"):
        report.to_pandas()
    pandas = SimpleNamespace(DataFrame=lambda columns, index: (columns, index), Index=lambda numbers, name: (name, numbers))
    monkeypatch.setitem(sys.modules, "pandas", pandas)
    report.frames[1] = FrameScores(5, report.frames[1].metrics, 0.2)
    columns, index = report.to_pandas()
    assert index == ("frame", [0, 5])
    assert list(columns) == ["time", "float_ms_ssim", "float_ssim"]
    np.testing.assert_array_equal(columns["time"], [math.nan, 0.2])
    np.testing.assert_array_equal(columns["float_ssim"], [1 / 3, math.inf])
