"""Options of the metrics as text, and dB."""

from __future__ import annotations

import math

import numpy as np
import pytest

from vkssim.errors import OptionError
from vkssim.metrics import FEATURES, make_scorer, with_options
from vkssim.metrics.options import parse_options, split_feature
from vkssim.types import FrameFormat

FRAME = FrameFormat.of_bits(576, 324, 8)


def test_name_and_options() -> None:
    assert split_feature("float_ssim=scale=2:enable_lcs=true") == ("float_ssim", {"scale": "2", "enable_lcs": "true"})
    assert split_feature(" float_ssim ") == ("float_ssim", {})


@pytest.mark.parametrize("options", ["scale", "scale=", "=1", "scale=1:", ":", "scale=1:scale=2"])
def test_part_without_a_value_or_a_second_value_is_refused(options: str) -> None:
    with pytest.raises(OptionError, match=r"not of the form option=value|gives scale twice"):
        split_feature(f"float_ssim={options}")


@pytest.mark.parametrize("name", ["float_mssim", "psnr", ""])
def test_unknown_feature_lists_the_known(name: str) -> None:
    with pytest.raises(OptionError, match=f"Available features: {', '.join(sorted(FEATURES))}") as caught:
        make_scorer(name, FRAME)
    assert repr(name) in str(caught.value)
    assert ("did you mean" in str(caught.value)) == bool(name)


@pytest.mark.parametrize("feature", [name for name, feature in FEATURES.items() if feature.options])
def test_unknown_option_lists_the_known(feature: str) -> None:
    first, *_ = FEATURES[feature].options
    with pytest.raises(OptionError, match=f"{feature} has no option '{first[:-1]}'.*did you mean {first}") as caught:
        make_scorer(f"{feature}={first[:-1]}=true", FRAME)
    for name in FEATURES[feature].options:
        assert name in str(caught.value)


@pytest.mark.parametrize(
    ("feature", "must"),
    [
        ("float_ssim=enable_lcs=maybe", "true or false"),
        ("float_ssim=scale=11", "a whole number from 0 to 10"),
        ("float_ssim=scale=-1", "a whole number from 0 to 10"),
        ("float_ssim=scale=1.5", "a whole number from 0 to 10"),
        ("float_ms_ssim=negative=zero", "null or clamp"),
    ],
)
def test_value_that_cannot_be_is_refused(feature: str, must: str) -> None:
    with pytest.raises(OptionError, match=f"it must be {must}"):
        make_scorer(feature, FRAME)


@pytest.mark.parametrize(
    ("text", "value"), [("true", True), ("1", True), ("ON", True), ("false", False), ("0", False), ("no", False)]
)
def test_forms_of_a_boolean(text: str, value: bool) -> None:
    assert parse_options("float_ssim", FEATURES["float_ssim"].options, {"enable_lcs": text})["enable_lcs"] is value


# -- dB ---------------------------------------------------------------------------------------------------------------


def _decibel(score: float, frame: FrameFormat = FRAME, **options: bool) -> float:
    feature = with_options("float_ssim", **{"enable_db": True, **options})
    return float(make_scorer(feature, frame).as_requested(np.array([score]))[0])


@pytest.mark.parametrize(("score", "expected"), [(0.9, 10.0), (0.99, 20.0), (0.0, 0.0), (-0.7, -2.304489)])
def test_decibel(score: float, expected: float) -> None:
    assert _decibel(score) == pytest.approx(expected, abs=1e-6)
    assert _decibel(score, enable_db=False) == score


@pytest.mark.parametrize("score", [1.0, 1.0 + 2e-16])
def test_perfect_score_is_infinite_or_the_limit(score: float) -> None:
    assert _decibel(score) == math.inf
    # ceil(10 log10(peak^2 2 w h)), peak of the depth
    assert _decibel(score, FrameFormat.of_bits(256, 192, 8), clip_db=True) == 99
    assert _decibel(score, FrameFormat.of_bits(1920, 1080, 8), clip_db=True) == 115
    assert _decibel(score, FrameFormat.of_bits(1920, 1080, 10), clip_db=True) == 127


def test_missing_score_is_no_good_score() -> None:
    """libvmaf's clip makes 99 dB of it, the best there is."""
    assert math.isnan(_decibel(math.nan, clip_db=True))
