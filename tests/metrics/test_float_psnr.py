"""float_psnr: peaks and limits by depth, planes, what holds for every pair of frames, and that both backends agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from vkssim import Scorer
from vkssim.errors import OptionError
from vkssim.metrics import make_scorer, with_options
from vkssim.metrics.plane_metrics import FrameMetrics, plane_formats
from vkssim.types import FrameFormat

from ..support.differences import check_number
from ..support.pictures import Picture, clip, pair
from ..support.tolerances import PSNR_BACKENDS

pytestmark = pytest.mark.usefixtures("shared_device")

BACKENDS = ("vulkan", "cpu")


def _scores(pairs: list[tuple[Picture, Picture]], backend: str = "vulkan", **opened_for: Any) -> list[float]:
    height, width = pairs[0][0].shape
    with Scorer(width, height, features="float_psnr", backend=backend, **opened_for) as scorer:
        return [scores.metrics["float_psnr"] for scores in scorer.score(pairs)]


OPENED_FOR: dict[str, tuple[dict[str, Any], float]] = {
    **{f"{bits} bits": ({"bits": bits}, limit) for bits, limit in ((8, 60), (9, 66), (10, 72), (12, 84), (14, 96), (16, 108))},
    "uint16 of a range of its own": ({"dtype": "uint16", "data_range": 1000}, 72),
    "uint8 of a small range": ({"dtype": "uint8", "data_range": 100}, 54),
    "float32 of 1": ({"dtype": "float32", "data_range": 1.0}, 148.130803608679),
    "float64 of 0.37": ({"dtype": "float64", "data_range": 0.37}, 148.130803608679),
}
"""How scorers are opened, and what identical frames have then. Those of 8, 10, 12 and 16 bits are libvmaf's own."""


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", OPENED_FOR)
def test_identical_frames_have_the_limit(name: str, backend: str) -> None:
    opened_for, limit = OPENED_FOR[name]
    bits = opened_for.get("bits", 0)
    dtype = opened_for.get("dtype", "uint8" if bits == 8 else "uint16")
    frame = (np.random.default_rng(0).random((19, 33)) * opened_for.get("data_range", 2**bits - 1)).astype(dtype)
    (score,) = _scores([(frame, frame)], backend, **opened_for)
    assert score == pytest.approx(limit, abs=1e-9)
    assert bits == 0 or score == limit


@pytest.mark.parametrize(
    ("bits", "peak"), [(8, 255.0), (9, 255.5), (10, 255.75), (12, 255.9375), (14, 255.984375), (16, 255.99609375)]
)
def test_peaks(bits: int, peak: float) -> None:
    """Black against white is noise of the peak itself, 0 dB; against a step above black it is the peak."""
    frame = FrameFormat.of_bits(32, 16, bits)
    scorer = make_scorer("float_psnr", frame)
    assert scorer.as_requested(np.array([peak**2]))[0] == 0.0
    black, white = np.zeros((16, 32), frame.dtype), np.full((16, 32), 2**bits - 1, frame.dtype)
    for backend in BACKENDS:
        assert _scores([(black, white)], backend, bits=bits) == pytest.approx([0.0], abs=1e-6)


@pytest.mark.parametrize("bits", [8, 10, 12, 16])
@pytest.mark.parametrize(("width", "height"), [(1, 1), (177, 179), (333, 61)])
def test_backends_agree(bits: int, width: int, height: int) -> None:
    pairs = [pair(height, width, bits, seed) for seed in range(3)]
    found, expected = (_scores(pairs, backend, bits=bits, batch=2) for backend in BACKENDS)
    for number, (got, right) in enumerate(zip(found, expected, strict=True)):
        check_number(PSNR_BACKENDS, "", f"{width}x{height} of {bits} bits, frame {number}", got, right)


def test_swapping_the_clips_and_the_size_of_batches_change_no_bit() -> None:
    frames, distorted = clip(7, 90, 120), clip(7, 90, 120, seed=1)
    pairs = list(zip(frames, distorted, strict=True))
    alone = _scores(pairs, bits=8, batch=1)
    assert len(set(alone)) == len(pairs)
    for batch in (3, 7, None):
        assert _scores(pairs, bits=8, batch=batch) == alone
    assert _scores([(second, first) for first, second in pairs], bits=8) == alone


def test_ten_bits_of_the_same_picture_have_the_peak_of_ten_bits() -> None:
    first, second = pair(64, 96)
    eight, ten = _scores([(first, second)], bits=8), _scores([(4 * first.astype("u2"), 4 * second.astype("u2"))], bits=10)
    assert ten[0] - eight[0] == pytest.approx(20 * np.log10(255.75 / 255), abs=1e-12)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("backend", BACKENDS)
def test_frames_that_are_no_numbers_have_no_score(backend: str, value: float) -> None:
    frame = np.zeros((20, 30), np.float32)
    wrong = frame.copy()
    wrong[3, 4] = value
    with np.errstate(invalid="ignore"):
        found = _scores([(frame, wrong), (frame, frame)], backend, dtype="float32", data_range=1.0)
    assert np.isnan(found[0])
    assert found[1] == pytest.approx(148.1308, abs=1e-4)


def test_all_is_that_of_the_mean_noise() -> None:
    """As FFmpeg's average PSNR: planes of equal noise have its score, and identical chroma does not hide the luma's noise."""
    metrics = FrameMetrics("float_psnr", plane_formats(FrameFormat.of_bits(64, 64, 8), "all"), total=True)
    assert metrics.names == ("float_psnr", "float_psnr_y", "float_psnr_cb", "float_psnr_cr", "float_psnr_all")
    assert metrics.similarities == ()
    means = [[np.array([[noise]])] for noise in (12.0, 3.0, 0.0)]
    scores = metrics.finish(means)
    assert scores["float_psnr_cr"][0] == 60.0
    assert scores["float_psnr_all"][0] == pytest.approx(10 * np.log10(255**2 / ((4 * 12 + 3 + 0) / 6)), abs=1e-12)


def test_it_has_no_options_and_says_so() -> None:
    with pytest.raises(OptionError, match=r"float_psnr has no option 'enable_db'.*; it has no options"):
        make_scorer("float_psnr=enable_db=true", FrameFormat.of_bits(16, 16, 8))
    assert with_options("float_psnr", precision="fast", enable_lcs=True) == "float_psnr"
    assert with_options("float_ssim=scale=2", precision="fast", negative="clamp") == "float_ssim=scale=2:precision=fast"
