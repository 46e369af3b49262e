"""vif: every float32 of libvmaf's C code, and the integers of its stages."""

from __future__ import annotations

from typing import Any

import av
import numpy as np
import numpy.typing as npt
import pytest

from vkssim.errors import FrameError
from vkssim.metrics import vif
from vkssim.shaders.constants import VIF_FILTERS, VIF_NOISE

from ..support.golden import CLIPS, clip_paths, clip_report
from ..support.vmaf_golden import CASES, case_scores, scores_of, vmaf_clips

LIMITS = {100.0: "", 1.0: "_egl_1"}
NAMES = [f"integer_vif_scale{scale}" for scale in range(4)]


def _scores(reference: npt.NDArray[Any], distorted: npt.NDArray[Any], bits: int, limit: float) -> npt.NDArray[np.float32]:
    return vif.vif_scores(vif.vif_sums(reference, distorted, bits, gain_limit=limit))


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("case", CASES)
def test_every_digit_of_the_cases(case: str, limit: float) -> None:
    """Of the first frames; tests/metrics/test_integer_vif.py has all of them, by the kernels."""
    references, distorted, bits = vmaf_clips(case)
    scores = [_scores(*pair, bits, limit) for pair in zip(references[:1], distorted[:1], strict=True)]
    np.testing.assert_array_equal(scores, case_scores(case, *(name + LIMITS[limit] for name in NAMES))[:1])


@pytest.mark.parametrize("clip", CLIPS)
def test_every_digit_of_the_clips(clip: str) -> None:
    frames = clip_report(clip, "vmaf")["frames"][:3]
    planes = []
    for path in clip_paths(clip):
        with av.open(str(path)) as container:
            planes.append(
                [frame.to_ndarray()[: frame.height] for frame, _ in zip(container.decode(video=0), frames, strict=False)]
            )
    bits = 10 if "10bit" in clip else 8
    scores = [_scores(first, second, bits, 100.0) for first, second in zip(*planes, strict=True)]
    np.testing.assert_array_equal(scores, scores_of(frames, *NAMES))


def test_filters_sum_to_one() -> None:
    """Sums of taps times 16-bit samples then fit in 32 bits, with the half that rounds them."""
    assert [sum(taps) for taps in VIF_FILTERS] == [65536] * 4
    assert 65536 * 65535 + 32768 < 2**32


@pytest.mark.parametrize("bits", [8, 9, 10, 12, 14, 16])
def test_largest_moments_fit(bits: int) -> None:
    """Stripes of 0 and the largest sample have a variance of a quarter of the squared range, or less."""
    peak = 2**bits - 1
    plane = np.zeros((64, 64), np.uint16 if bits > 8 else np.uint8)
    plane[:, 32:] = peak
    columns = vif.filter_columns(plane, plane, bits, 0)
    assert columns.mean1.max() < 2**16
    assert columns.square1.max() == (65536 * peak**2 + (1 << 2 * (bits - 8) >> 1)) >> 2 * (bits - 8)
    terms = vif.moments(columns, 0)
    assert 2**29 < terms.variance1.max() < 2**30 + 2**24
    np.testing.assert_array_equal(terms.variance1, terms.covariance)


def test_moments_are_those_of_the_window() -> None:
    """Means and variances of doubles, within the roundings of three shifts."""
    rng = np.random.default_rng(1)
    first, second = rng.integers(0, 256, (2, 33, 40), dtype=np.uint8)
    terms = vif.moments(vif.filter_columns(first, second, 8, 0), 0)

    def mean(plane: npt.NDArray[Any]) -> npt.NDArray[Any]:
        for axis in (0, 1):
            plane = vif.weighted_sums(plane, VIF_FILTERS[0], axis) / 65536
        return plane

    one, two = first.astype(np.float64), second.astype(np.float64)
    expected = mean(one * one) - mean(one) ** 2, mean(two * two) - mean(two) ** 2, mean(one * two) - mean(one) * mean(two)
    np.testing.assert_allclose(np.array(terms) / 65536, expected, atol=2)


@pytest.mark.parametrize("limit", [1.0, 1.5, 100.0])
def test_integer_quotients_are_those_of_doubles(limit: float) -> None:
    """A shader has no doubles. With q, r = divmod(cov^2, v1) and e = 65536e-10, the floor of g cov is q - [r < q e].

    The floor of g^2 v1 is q - [r < 2 q e]. Roundings of the doubles move a quotient over an integer now and then, by 1.
    """
    rng = np.random.default_rng(2)
    count = 1 << 18
    variance1 = np.maximum(np.exp2(rng.uniform(17, 30, count)).astype(np.int64), VIF_NOISE)
    variance2 = np.maximum(np.exp2(rng.uniform(0, 30, count)).astype(np.int64), 1)
    covariance = np.maximum((np.sqrt(variance1 * variance2.astype(np.float64)) * rng.random(count)).astype(np.int64), 1)
    q, r = np.divmod(covariance**2, variance1)
    epsilon = 65536e-10
    limited = covariance > limit * variance1
    signal = np.where(limited, (limit * limit * variance1).astype(np.int64), q - (r < 2 * q * epsilon))
    rest, of_doubles = vif.gain_terms(variance1, variance2, covariance, limit)
    for found, expected in ((np.maximum(variance2 - q + (r < q * epsilon) - 1, 0), rest), (signal, of_doubles)):
        differences = np.abs(found - expected)
        assert differences.max() <= 1
        assert np.count_nonzero(differences) <= 2


def test_logarithms() -> None:
    """The table has libvmaf's roundings: float32 first. A value of more bits has the logarithm of its 16 leading ones."""
    table = vif.log_table()
    exact = np.floor(np.log2(np.arange(32768, 65536)) * 2048 + 0.5)
    assert np.count_nonzero(table[32768:] != exact) == 38
    assert table[65535] == 32768
    values = np.array([1 << 17, (1 << 18) - 1, (1 << 31) + 12345, (1 << 40) - 1], np.int64)
    expected = [17 * 2048, 32768 + 2 * 2048, 31 * 2048, 32768 + 24 * 2048]
    np.testing.assert_array_equal(vif.logarithms(values), expected)


def test_halving_rounds_sizes_down() -> None:
    assert vif.halve(np.zeros((33, 47), np.uint8), 8, 0).shape == (16, 23)
    full = vif.halve(np.full((16, 16), 65535, np.uint16), 16, 0)
    np.testing.assert_array_equal(full, 65535)
    np.testing.assert_array_equal(vif.halve(np.full((16, 16), 255, np.uint8), 8, 0), 65280)


@pytest.mark.parametrize("bits", [8, 10, 16])
def test_flat_and_identical_frames(bits: int) -> None:
    flat = np.full((16, 16), 2**bits - 1, np.uint16 if bits > 8 else np.uint8)
    quotients = vif.quotients(vif.vif_sums(flat, flat, bits))
    np.testing.assert_array_equal(quotients, [[256, 256], [64, 64], [16, 16], [4, 4]])
    np.testing.assert_array_equal(_scores(flat, flat, bits, 1.0), np.ones(4))


@pytest.mark.parametrize("shape", [(15, 16), (16, 15)])
def test_frames_that_are_too_small(shape: tuple[int, int]) -> None:
    with pytest.raises(FrameError, match="16x16 at least"):
        vif.vif_sums(np.zeros(shape, np.uint8), np.zeros(shape, np.uint8), 8)
