"""adm: every digit of libvmaf's C code, the integers of its stages, and the widths that a shader relies on."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from vkssim.errors import FrameError, OptionError
from vkssim.metrics import adm
from vkssim.metrics.adm_csf import BLEND, BLEND_MAE, Viewing, band_weights
from vkssim.shaders.constants import ADM_HIGH_PASS, ADM_LOW_PASS

from ..support.golden import CLIPS, clip_planes, clip_report
from ..support.pictures import distort, texture
from ..support.vmaf_golden import CASES, case_scores, scores_of, vmaf_clips

LIMITS = {100.0: "", 1.0: "_egl_1"}
NAMES = ["integer_adm2", "integer_aim", "integer_adm3", *(f"integer_adm_scale{scale}" for scale in range(4))]
WEIGHTS = band_weights(0, Viewing())
LARGEST_SAMPLE = max(adm.LARGEST)


def _scores(reference: npt.NDArray[Any], distorted: npt.NDArray[Any], bits: int, **options: Any) -> list[float]:
    scores = adm.adm_scores(adm.adm_terms(reference, distorted, bits, **options), reference.size)
    return [scores.adm2, scores.aim, scores.adm3, *scores.scales]


def _bands(*values: tuple[int, int, int]) -> npt.NDArray[np.int32]:
    """Bands of one row, a column for each (horizontal, vertical, diagonal)."""
    return np.array(values, np.int32).T[:, None, :]


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("case", CASES)
def test_every_digit_of_the_cases(case: str, limit: float) -> None:
    references, distorted, bits = vmaf_clips(case)
    scores = [_scores(first, second, bits, gain_limit=limit) for first, second in zip(references, distorted, strict=True)]
    np.testing.assert_array_equal(scores, case_scores(case, *(name + LIMITS[limit] for name in NAMES)))


@pytest.mark.parametrize("clip", CLIPS)
def test_every_digit_of_the_clips(clip: str) -> None:
    frames = clip_report(clip, "vmaf")["frames"][:3]
    bits = 10 if "10bit" in clip else 8
    scores = [_scores(first, second, bits) for first, second in zip(*clip_planes(clip, 3), strict=True)]
    np.testing.assert_array_equal(scores, scores_of(frames, *NAMES))


@pytest.mark.parametrize(
    ("viewing", "expected"),
    [
        (Viewing(csf_mode=BLEND), (0.911982713688057, 0.03204889570959094, 0.9287732308687626)),
        (Viewing(5.0, csf_mode=BLEND), (0.9260918855846764, 0.02314023207050592, 0.9413222502881218)),
    ],
)
def test_every_digit_of_a_clip_with_options(viewing: Viewing, expected: tuple[float, ...]) -> None:
    """libvmaf's adm_csf_mode=2 with an enhancement gain limit of 1, a noise weight of 0.02 and a DLM weight of 0.7."""
    (reference,), (distorted,) = clip_planes(CLIPS[0], 1)
    terms = adm.adm_terms(reference, distorted, 8, gain_limit=1.0, noise_weight=0.02, viewing=viewing)
    scores = adm.adm_scores(terms, reference.size, dlm_weight=0.7, min_val=0.5)
    assert [float(score) for score in scores[:3]] == list(expected)


def test_scale_0_left_out() -> None:
    references, distorted, bits = vmaf_clips("small")
    whole = adm.adm_terms(references[0], distorted[0], bits)
    part = adm.adm_terms(references[0], distorted[0], bits, skip_scale0=True, skip_aim=True)
    np.testing.assert_array_equal(part[1:, :2], whole[1:, :2])
    np.testing.assert_array_equal(part[0], np.array([0, 1e-10, 0], np.float32))
    assert adm.adm_scores(part, references[0].size).aim == 0


def test_taps_at_the_borders() -> None:
    """The edge sample is repeated at the end alone."""
    np.testing.assert_array_equal(adm.tap_indices(5), [[1, 1, 3], [0, 2, 4], [1, 3, 4], [2, 4, 3]])
    np.testing.assert_array_equal(adm.tap_indices(6), [[1, 1, 3], [0, 2, 4], [1, 3, 5], [2, 4, 5]])


@pytest.mark.parametrize("shape", [(33, 33), (33, 40), (47, 34)])
@pytest.mark.parametrize("bits", [8, 16])
def test_smallest_sizes(shape: tuple[int, int], bits: int) -> None:
    picture = texture(*shape)
    planes = [(pixels * (2**bits - 1)).astype(np.uint16 if bits > 8 else np.uint8) for pixels in (picture, distort(picture))]
    adm2, aim, adm3, *scales = _scores(planes[0], planes[1], bits)
    assert 0 < min(scales) <= max(scales) < 1.1
    assert 0 < aim < adm2 < 1
    assert adm3 == adm2 * 0.5 + (1 - aim) * 0.5


def test_too_small() -> None:
    with pytest.raises(FrameError, match="33x33 at least, got 40x32"):
        adm.adm_terms(np.zeros((32, 40), np.uint8), np.zeros((32, 40), np.uint8), 8)


@pytest.mark.parametrize("bits", [8, 16])
def test_flat_pictures(bits: int) -> None:
    """They have no bands. Without noise num and den are 0, and the score is 1."""
    plane = np.full((48, 64), 2**bits - 1, np.uint16 if bits > 8 else np.uint8)
    assert not adm.wavelet(plane, 0, bits).bands.any()
    assert _scores(plane, plane, bits)[:3] == [1, 0, 1]
    terms = adm.adm_terms(plane, plane, bits, noise_weight=0.0)
    scores = adm.adm_scores(terms, plane.size)
    assert (float(scores.aim), float(scores.adm3)) == (0, 1)


def test_largest_values_of_the_wavelet_fit() -> None:
    """Intervals of the sums of taps times samples: both passes of all scales give int32."""
    gain = sum(map(abs, ADM_LOW_PASS))
    assert gain == sum(map(abs, ADM_HIGH_PASS))
    assert sum(ADM_HIGH_PASS) == 0
    largest = 1 << 15
    for down, across, limit in zip((16, 0, 16, 16), (16, 15, 16, 15), adm.LARGEST, strict=True):
        largest = (gain * largest >> down) + 1
        assert largest < 2**31
        largest = (gain * largest >> across) + 1
        assert largest <= limit < 2**31
    assert 2 * max(adm.LARGEST) ** 2 < 2**63


def test_sums_of_the_wavelet_need_32_bits() -> None:
    """A sample is split at its shift: sums of lower parts fit, and those of upper parts may wrap, because the result fits."""
    random = np.random.default_rng(3)
    samples = random.integers(-LARGEST_SAMPLE, LARGEST_SAMPLE, (4, 100000))
    samples[:, :16] = LARGEST_SAMPLE * np.array(np.meshgrid(*[[-1, 1]] * 4)).reshape(4, -1)
    for taps in (ADM_LOW_PASS, ADM_HIGH_PASS):
        for shift in (15, 16):
            upper = np.dot(taps, samples >> shift) % 2**32
            centre = 2 ** (shift - 1)
            lower = np.dot(taps, samples % 2**shift - centre) + centre
            assert np.abs(lower).max() < 2**31
            total = (upper + (lower >> shift) + sum(taps) // 2) % 2**32
            np.testing.assert_array_equal(total, ((np.dot(taps, samples) + centre) >> shift) % 2**32)


@pytest.mark.parametrize("bits", [8, 16])
def test_harshest_pictures_stay_in_their_bounds(bits: int) -> None:
    random = np.random.default_rng(bits)
    plane = (random.integers(0, 2, (160, 160)) * (2**bits - 1)).astype(np.uint16 if bits > 8 else np.uint8)
    level = plane
    for scale in range(4):
        level, bands = adm.wavelet(level, scale, bits)
        assert max(np.abs(bands).max(), np.abs(level).max()) < adm.LARGEST[scale] + 1
    assert np.isfinite(_scores(plane, plane[::-1, ::-1], bits)).all()


def test_gains_of_scale_0_need_32_bits() -> None:
    """A quotient of 2 or more is 1; the products of all others are below 2^31."""
    random = np.random.default_rng(1)
    reference = np.concatenate([np.arange(1, 22931), random.integers(1, 22931, 200000)])
    for distorted in (reference, 2 * reference, 2 * reference - 1, random.integers(0, 22931, len(reference))):
        product = (1 << 30) // reference * distorted
        assert product[distorted < 2 * reference].max(initial=0) < 2**31
        narrow = np.where(distorted >= 2 * reference, 32768, np.minimum((product + 16384) >> 15, 32768))
        wide = adm.gains(reference[None, None].astype(np.int32), distorted[None, None].astype(np.int32))
        np.testing.assert_array_equal(wide[0, 0], narrow)


def test_reciprocals_need_float32() -> None:
    """The shader's: a quotient of float32, corrected by its rest, however a device rounds the reciprocal of the divisor."""
    divisor = np.arange(1, 2**15 + 1)
    nearest = (1 / divisor).astype(np.float32)
    for ulps in range(-3, 4):
        inverse = (nearest.view(np.int32) + np.int32(ulps)).view(np.float32)
        quotient = (np.float32(2**30) * inverse).astype(np.int64)
        rest = 2**30 - quotient * divisor
        assert np.abs(rest).max() < 2**31
        quotient += np.floor(rest.astype(np.float32) * inverse).astype(np.int64)
        rest = 2**30 - quotient * divisor
        np.testing.assert_array_equal(quotient - (rest < 0) + (rest >= divisor), 2**30 // divisor)


def test_gains() -> None:
    reference = _bands((0, 100, -100), (100, -100, 70000), (2**31 - 1, -(2**30), 40000))
    distorted = _bands((5, 50, 50), (-1, -25, 70000), (2**30, -(2**30), -40000))
    np.testing.assert_array_equal(adm.gains(reference, distorted)[0, 0], [32768, 0, 16384])
    np.testing.assert_array_equal(adm.gains(reference, distorted)[1, 0], [16384, 8192, 32768])
    np.testing.assert_array_equal(adm.gains(reference, distorted)[2, 0], [0, 32768, 0])


def test_decoupled_bands() -> None:
    """Contrast of a parallel gradient is restored up to the limit; a turned one has the gain of 1 at most."""
    reference, distorted = _bands((100, 100, 100), (100, 100, 100)), _bands((150, 150, 300), (150, -150, 300))
    restored, additive = adm.decouple(reference, distorted, 1.2)
    np.testing.assert_array_equal(restored[:, 0], [[120, 100], [120, 0], [120, 100]])
    np.testing.assert_array_equal(restored + additive, distorted)
    assert adm.decouple(reference, distorted).restored[2, 0, 0] == 300


def test_an_angle_of_a_degree() -> None:
    radius, degrees = 20000, np.array([0, 0.9, 1.1, 180])
    angles = np.radians(degrees)
    turned = np.round([radius * np.cos(angles), radius * np.sin(angles), 0 * angles]).astype(np.int32)[:, None]
    straight = np.broadcast_to(turned[..., :1], turned.shape)
    np.testing.assert_array_equal(adm.nearly_parallel(straight, turned)[0], [True, True, False, False])


def test_thresholds() -> None:
    """A thirtieth of the neighbours and a fifteenth of the place itself, 2^5 times at scale 0."""
    weighted = np.full((3, 6, 7), 300, np.int32)
    assert adm.threshold(weighted, 0)[3, 3] == pytest.approx(32 * 3 * 300 * (8 / 30 + 1 / 15), rel=0.01)
    assert adm.threshold(100 * weighted, 1)[3, 3] == pytest.approx(3 * 30000 * (8 / 30 + 1 / 15), rel=0.01)
    assert (adm.threshold(0 * weighted, 1) == -27).all()
    weighted[:, 2, 2] = 15361
    assert adm.threshold(weighted, 0)[2, 2] < 0


def test_thresholds_at_the_borders() -> None:
    """The top and the left line are not repeated, the bottom and the right line are."""
    for row, column, weight in ((0, 0, 2), (1, 1, 4), (4, 5, 3), (3, 4, 1)):
        weighted = np.zeros((3, 5, 6), np.int32)
        weighted[0, row, column] = 3000
        corner = (0 if row < 2 else 4, 0 if column < 2 else 5)
        term = (4369 * 3000 + 2048) >> 12
        expected = weight * term if (row, column) != corner else adm.threshold(weighted, 0)[corner]
        assert adm.threshold(weighted, 0)[corner] == expected


def test_rows_are_rounded_before_they_are_added() -> None:
    bands = np.ones((3, 40, 50), np.int32)
    sums = adm.masked_sums(100 * bands, WEIGHTS, np.zeros((40, 50), np.int32), 0)
    rows, columns, area = adm.window(40, 50)
    assert area == 34 * 42
    square = ((100 * 36453) ** 2 + (1 << 28)) >> 29
    cube = (square * 100 * 36453 + 2) >> 2
    assert sums.values[0] == (rows.stop - rows.start) * ((42 * cube + 32) >> 6)
    assert columns == slice(4, 46)
    assert sums.points == (52 - 2 - 6, 52 - 2 - 6, 57 - 3 - 6)


def test_sums_of_bands() -> None:
    """At scale 1 and later the rounding of squares is libvmaf's: 1 is added, not a half."""
    bands = np.full((3, 40, 50), 1000, np.int32)
    assert adm.band_sums(bands, 0).values.tolist() == [34 * 42 * 1000**3] * 3
    assert adm.band_sums(bands, 1).values.tolist() == [34 * ((42 * ((1000 + 32) >> 6) + 32) >> 6)] * 3


def test_weights() -> None:
    assert WEIGHTS.integers == (36453, 36453, 49417)
    assert band_weights(0, Viewing(1.5, 2160)).integers == (36453, 36453, 49417)
    assert band_weights(1, Viewing()).integers == (137373792, 137373792, 61414028)
    assert band_weights(2, Viewing(csf_mode=BLEND)).floats[2] == np.float32(0.023918)
    assert band_weights(2, Viewing(5.0, 2160, BLEND_MAE)).floats[0] == np.float32(0.013939)


def test_no_weights_for_a_distance() -> None:
    with pytest.raises(OptionError, match="must be 3240 at least, got 2160"):
        band_weights(0, Viewing(2.0))
    with pytest.raises(OptionError, match="got 1080:4; choose one of them, or adm_csf_mode=0"):
        band_weights(0, Viewing(4.0, csf_mode=BLEND))
