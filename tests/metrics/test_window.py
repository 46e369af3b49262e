"""float_ssim's choice of window: what goes together, what is too small, what comes out."""

from __future__ import annotations

import numpy as np
import pytest

import vkssim
from vkssim import Scorer
from vkssim.errors import FrameError, OptionError
from vkssim.metrics import make_scorer
from vkssim.types import FrameFormat

from ..support.differences import check_scores
from ..support.pictures import pair
from ..support.tolerances import UNIFORM_BACKENDS

pytestmark = pytest.mark.usefixtures("shared_device")

FRAME = FrameFormat.of_bits(576, 324, 8)
UNIFORM8 = "float_ssim=window=uniform8"
CHOICES = (UNIFORM8, f"{UNIFORM8}:estimate=true")

choices = pytest.mark.parametrize("feature", CHOICES)


def _score(
    feature: str, reference: np.ndarray, distorted: np.ndarray, backend: str = "vulkan", bits: int = 8
) -> dict[str, float]:
    height, width = reference.shape
    with Scorer(width, height, bits=bits, features=f"{feature}:enable_lcs=true", backend=backend) as scorer:
        (scores,) = scorer.score([(reference, distorted)])
    return dict(scores.metrics)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("estimate=true", "estimate=true is for window=uniform8"),
        ("window=gaussian11:estimate=true", "estimate=true is for window=uniform8"),
        ("window=uniform8:precision=fast", "precision=fast is for window=gaussian11"),
        ("window=uniform8:estimate=true:precision=fast", "precision=fast is for window=gaussian11"),
        ("window=uniform7", "window is 'uniform7'; it must be gaussian11 or uniform8"),
    ],
)
def test_what_does_not_go_together_is_refused(options: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        make_scorer(f"float_ssim={options}", FRAME)


@choices
@pytest.mark.parametrize(("size", "scale"), [((7, 8), 1), ((8, 7), 1), ((14, 30), 2)])
def test_less_than_a_window_is_refused(feature: str, size: tuple[int, int], scale: int) -> None:
    with pytest.raises(FrameError, match="needs 8x8 at least after its downscale"):
        make_scorer(f"{feature}:scale={scale}", FrameFormat.of_bits(*size, 8))


@choices
@pytest.mark.parametrize("backend", ["vulkan", "cpu"])
def test_smallest_frame_is_one_window(feature: str, backend: str) -> None:
    reference, distorted = pair(8, 8)
    x, y = reference.ravel().astype(float), distorted.ravel().astype(float)
    (variance1, covariance), (_, variance2) = np.cov(x, y)
    luminance = (2 * x.mean() * y.mean() + 2.55**2) / (x.mean() ** 2 + y.mean() ** 2 + 2.55**2)
    expected = luminance * (2 * covariance + 7.65**2) / (variance1 + variance2 + 7.65**2)
    got = _score(f"{feature}:scale=1", reference, distorted, backend)
    assert got["float_ssim"] == pytest.approx(expected, abs=2e-7)


@choices
@pytest.mark.parametrize("bits", [8, 10, 16])
@pytest.mark.parametrize("scale", [1, 2])
def test_backends_agree(feature: str, bits: int, scale: int) -> None:
    reference, distorted = pair(177, 251, bits)
    got, expected = (_score(f"{feature}:scale={scale}", reference, distorted, backend, bits) for backend in ("vulkan", "cpu"))
    check_scores(UNIFORM_BACKENDS, f"{feature}, {bits} bit, scale {scale}", got, expected)


def test_narrow_frames_leave_nothing_to_estimate() -> None:
    """A frame of less than a fragment has all its windows in it."""
    reference, distorted = pair(60, 31)
    assert _score(CHOICES[0], reference, distorted) == _score(CHOICES[1], reference, distorted)


def test_windows_of_arrays() -> None:
    reference, distorted = pair(64, 90)
    got = [vkssim.ssim(reference, distorted, window="uniform8", estimate=estimate) for estimate in (False, True)]
    assert got == [_score(f"{feature}:scale=1", reference, distorted)["float_ssim"] for feature in CHOICES]
    assert got[0] != got[1] != vkssim.ssim(reference, distorted)
