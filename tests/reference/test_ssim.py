"""The downscale of float_ssim: sizes as libvmaf has them, and boxes written out."""

from __future__ import annotations

import numpy as np
import pytest

from vkssim.reference.ssim import downscale, downscaled_size
from vkssim.reference.window import mirror

from ..support.pictures import texture


@pytest.mark.parametrize(
    ("size", "factor", "expected"),
    [
        ((771, 771), 3, (258, 258)),
        ((1920, 1080), 4, (480, 270)),
        ((3840, 2160), 8, (480, 270)),
        ((1281, 1030), 4, (321, 257)),
        ((177, 176), 1, (177, 176)),
        ((33, 34), 2, (17, 17)),
    ],
)
def test_size_rule(size: tuple[int, int], factor: int, expected: tuple[int, int]) -> None:
    assert downscaled_size(*size, factor) == expected
    assert downscale(np.zeros(size[::-1], np.float32), factor).shape == expected[::-1]


@pytest.mark.parametrize("factor", [2, 3, 4, 5])
def test_boxes_are_centred(factor: int) -> None:
    """Offsets -floor(s/2) .. -floor(s/2) + s - 1, beyond the edge the mirrored samples."""
    plane = (255 * texture(25, 31)).astype(np.float32)
    padded = np.pad(plane, 12, mode="symmetric").astype(np.float64)
    width, height = downscaled_size(31, 25, factor)
    corners = [12 + factor * np.arange(count) - factor // 2 for count in (height, width)]
    expected = [[padded[y : y + factor, x : x + factor].mean() for x in corners[1]] for y in corners[0]]
    np.testing.assert_allclose(downscale(plane, factor), expected, atol=2e-5)


def test_reflection_has_period_2n() -> None:
    """The period matters for images that are smaller than the filter."""
    assert mirror(np.arange(-6, 9), 3).tolist() == [0, 1, 2, 2, 1, 0, 0, 1, 2, 2, 1, 0, 0, 1, 2]
