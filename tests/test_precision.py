"""Scores agree with libvmaf to the sixth decimal on the worst pictures that were found.

In windows that are bright and nearly flat, one unit in the last place of a moment moves a score by up to 0.01 (docs/adr/0001).
`test_libvmaf.py` has random pictures of every kind, and `stress/precision` searches for worse ones.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import vkssim

from .support.against_libvmaf import BOTH, Draw, disagreements
from .support.hard_pictures import grating

pytestmark = pytest.mark.usefixtures("shared_device")


@pytest.mark.parametrize(
    ("period", "base", "amplitude", "levels"),
    [(12, 200.0, 0.783, 1), (8, 155.52, 0.829, 1), (24, 194.79, 0.828, 4), (12, 221.09, 0.793, 1), (10, 233.683, 1.42, 1)],
)
def test_gratings(period: int, base: float, amplitude: float, levels: int) -> None:
    """The worst pictures for sums in float32, for a separable low-pass, and for sums of distances from a pivot."""
    assert not disagreements(Draw(0, (grating(period, base, amplitude, levels),), BOTH, 1))


@pytest.mark.parametrize("metric", [vkssim.ssim, vkssim.ms_ssim])
@pytest.mark.parametrize("value", [1.0, 6e5, 1e9, 1e12])
def test_a_sample_far_beyond_its_range(metric: Callable[..., float], value: float) -> None:
    random = np.random.default_rng(0)
    reference = random.random((190, 200), np.float32)
    distorted = np.clip(reference + random.normal(0, 0.05, reference.shape), 0, 1).astype(np.float32)
    reference[100, 100] = distorted[100, 100] = value
    vulkan, cpu = (metric(reference, distorted, data_range=1.0, backend=backend) for backend in ("vulkan", "cpu"))
    assert vulkan == pytest.approx(cpu, rel=0, abs=1e-6)


@pytest.mark.parametrize("metric", [vkssim.ssim, vkssim.ms_ssim])
@pytest.mark.parametrize("value", [1e19, 1e20, 1e25])
def test_a_sample_whose_square_is_infinite_gives_no_score(metric: Callable[..., float], value: float) -> None:
    reference, distorted = np.random.default_rng(0).random((2, 190, 200), np.float32)
    reference[100, 100] = value
    for backend in ("vulkan", "cpu"):
        with np.errstate(all="ignore"):
            assert np.isnan(metric(reference, distorted, data_range=1.0, backend=backend))
