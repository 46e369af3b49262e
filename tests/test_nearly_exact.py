"""`exact=nearly`, the sums in integers: within 1e-5 of libvmaf's arithmetic where the plain kernels are not."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from vkssim.backends.open import open_backend
from vkssim.features import make_scorer
from vkssim.features.plane_metrics import FrameMetrics
from vkssim.shaders.constants import (
    GAUSSIAN,
    LOW_PASS,
    PYRAMID_MEAN_BITS,
    PYRAMID_SQUARE_BITS_ACROSS,
    PYRAMID_SQUARE_BITS_DOWN,
    SAMPLE_MEAN_BITS,
    SAMPLE_SQUARE_BITS,
    SCALES,
)
from vkssim.types import FrameFormat

from .support.differences import check_scores
from .support.pictures import Picture, pair
from .support.tolerances import NEARLY_EXACT

pytestmark = pytest.mark.usefixtures("shared_device")

FEATURES = ("float_ms_ssim=enable_lcs=true:exact=nearly", "float_ssim=enable_lcs=true:scale=1:exact=nearly")


def _scores(backend: str, bits: int, reference: Picture, distorted: Picture) -> dict[str, float]:
    height, width = reference.shape
    metrics = FrameMetrics(FEATURES, [FrameFormat.of_bits(width, height, bits)])
    with open_backend(backend, metrics.planes) as engine:
        batch = engine.batches[0]
        batch.reference[0][0], batch.distorted[0][0] = reference, distorted
        engine.submit(batch, 1)
        return {name: float(column[0]) for name, column in metrics.finish(engine.collect(batch)).items()}


def _samples(picture: npt.NDArray[np.float64], bits: int) -> Picture:
    """Return a picture on the 0..255 scale as integer samples."""
    scaled = np.clip(np.round(picture * 2.0 ** (bits - 8)), 0, 2**bits - 1)
    return scaled.astype(np.uint8 if bits == 8 else np.uint16)


def _check(name: str, bits: int, reference: Picture, distorted: Picture) -> None:
    got, expected = (_scores(backend, bits, reference, distorted) for backend in ("vulkan", "cpu"))
    check_scores(NEARLY_EXACT, name, got, expected)


@pytest.mark.parametrize("side", [177, 200, 300])
def test_bright_noise(side: int) -> None:
    noise = 10 * np.random.default_rng(side).standard_normal((2, side, side))
    _check(f"noise {side}", 8, _samples(245 + noise[0], 8), _samples(245 + noise.sum(axis=0), 8))


@pytest.mark.parametrize("bits", [8, 10, 12, 16])
def test_bright_waves(bits: int) -> None:
    rows, columns = np.mgrid[:324, :576]
    reference = 235 + 0.3 * np.sin(columns / 7) + 0.3 * np.sin(rows / 11 + 1)
    distorted = 235 + 0.2 * np.sin(columns / 6) + 0.3 * np.cos(rows / 9)
    _check(f"waves of {bits} bits", bits, _samples(reference, bits), _samples(distorted, bits))


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("block", [1, 2, 3, 24])
def test_black_and_white(bits: int, block: int) -> None:
    """The largest variances, the most negative covariances and the overshoot of the low-pass."""
    coarse = np.random.default_rng(block).integers(0, 2, (193 // block + 1, 181 // block + 1))
    reference = (np.kron(coarse, np.ones((block, block), int))[:193, :181] * (2**bits - 1)).astype(f"uint{bits}")
    _check(f"blocks of {block}, {bits} bits", bits, reference, reference.max() - reference)


def test_white() -> None:
    white = np.full((177, 179), 65535, np.uint16)
    _check("white", 16, white, white - np.uint16(3))


@pytest.mark.parametrize("bits", [8, 9, 16])
def test_identical_frames_score_one_and_swapped_ones_the_same(bits: int) -> None:
    reference, distorted = pair(181, 203, bits)
    scores = _scores("vulkan", bits, reference, reference)
    assert scores == dict.fromkeys(scores, 1.0)
    forward, backward = _scores("vulkan", bits, reference, distorted), _scores("vulkan", bits, distorted, reference)
    assert forward == pytest.approx(backward, rel=0, abs=1e-7)


@pytest.mark.parametrize("feature", FEATURES)
def test_floats_are_added_exactly(feature: str) -> None:
    """Floats may be infinite, NaN or beyond their range: no integer holds these."""
    used = [
        make_scorer(feature, FrameFormat.of_array(576, 324, dtype, peak)).settings.options["exact"]
        for dtype, peak in ((np.float32, 1.0), (np.uint16, 1000), (np.uint8, 255))
    ]
    assert used == [True, "nearly", "nearly"]


# -- bounds ---------------------------------------------------------------------------------------------------------------

TERM = 2.0**31
"""Terms are converted to integers with a sign."""

SUM = 2.0**32
TAPS = np.array(GAUSSIAN)
WHOLE = TAPS.sum() ** 2
"""What both passes multiply a flat picture by."""


def _pyramid_filter(scale: int) -> npt.NDArray[np.float64]:
    """Return the taps with which one dimension of the original picture makes one of a scale."""
    taps = np.ones(1)
    for level in range(scale):
        spread = np.zeros(8 * 2**level + 1)
        spread[:: 2**level] = LOW_PASS
        taps = np.convolve(taps, spread)
    return taps


def _extremes(scale: int) -> tuple[float, float]:
    """Return the least and the largest sample that a scale can have."""
    taps = _pyramid_filter(scale)
    both, once = np.abs(taps).sum() ** 2, taps.sum() ** 2
    return -256 * (both - once) / 2, 256 * (both + once) / 2


def test_sums_of_samples_fit() -> None:
    largest = 65535 / 256
    for value, bits in ((largest, SAMPLE_MEAN_BITS), (largest**2, SAMPLE_SQUARE_BITS)):
        assert value * WHOLE * 2**bits < SUM
        assert value * TAPS.max() * WHOLE * 2**bits < TERM


@pytest.mark.parametrize("scale", range(1, SCALES))
def test_sums_of_the_pyramid_fit(scale: int) -> None:
    least, largest = _extremes(scale)
    assert max(largest - 128, 128 - least) * WHOLE * 2**PYRAMID_MEAN_BITS < SUM / 2
    assert largest * TAPS.max() * WHOLE * 2**PYRAMID_MEAN_BITS < TERM
    assert largest**2 * TAPS.max() * 2**PYRAMID_SQUARE_BITS_ACROSS < TERM
    # A covariance of values in a range is at most the square of half the range. 1 is for the pivot, a whole number.
    assert (((largest - least) / 2) ** 2 * WHOLE + 1) * 2**PYRAMID_SQUARE_BITS_ACROSS < SUM / 2
    # Neighbouring samples cannot all be extreme, which bounds the mean square of their distances from 128.
    deviation = 128**2 * _energy(scale) * np.abs(_pyramid_filter(scale)).sum() ** 2 * WHOLE
    assert (128 + np.sqrt(deviation)) ** 2 * TAPS.max() * 2**PYRAMID_SQUARE_BITS_DOWN < TERM
    assert (128**2 * _energy(scale) ** 2 * WHOLE + 1) * 2**PYRAMID_SQUARE_BITS_DOWN < SUM / 2


def _energy(scale: int) -> float:
    """Return a bound of the weighted sum of squares of 11 samples of a scale, for samples of -1 to 1, in one dimension.

    It is a quadratic form x'Qx. A diagonal matrix D with D - Q >= 0 bounds it by the trace of D. Each turn of the loop makes
    one, and the least trace is returned. Both dimensions together have the Kronecker product of the matrices, and so the square
    of the bound.
    """
    taps = _pyramid_filter(scale)
    rows = np.zeros((len(TAPS), len(taps) + (len(TAPS) - 1) * 2**scale))
    for number, weight in enumerate(TAPS):
        rows[number, number * 2**scale : number * 2**scale + len(taps)] = taps * np.sqrt(weight)
    diagonal = np.abs(rows).T @ np.abs(rows).sum(axis=1)
    traces = []
    for step in range(1, 200):
        diagonal /= diagonal.sum()
        values, vectors = np.linalg.eigh(rows / diagonal @ rows.T)  # its eigenvalues are those of Q relative to the diagonal
        traces.append(float(values[-1]))  # the least factor with which the diagonal, of trace 1, bounds Q
        largest = (rows.T @ vectors[:, -1]) ** 2 / diagonal
        diagonal = (1 - 0.3 / np.sqrt(step)) * diagonal + 0.3 / np.sqrt(step) * largest / largest.sum()
    return min(traces)
