"""The downscale of float_ssim and the decimation of float_ms_ssim, against means and sums written out."""

from __future__ import annotations

import numpy as np
import pytest

from vkssim.metrics.ssim import decimate, downscale, downscaled_size, low_pass_table
from vkssim.metrics.window import mirror
from vkssim.shaders.constants import LOW_PASS

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


def test_table_is_the_outer_product_but_for_rounding() -> None:
    """libvmaf's digits: rounded to six decimals, two of the 25 in a way of their own, each of which stands there twice."""
    product = np.outer(LOW_PASS, LOW_PASS)
    table = low_pass_table().astype(np.float64)
    assert table.shape == (9, 9)
    assert np.abs(table - product).max() < 1.1e-6
    odd = np.argwhere(np.abs(table - np.round(product, 6))[:5, :5] > 1e-7)
    assert odd.tolist() == [[2, 3], [2, 4], [3, 2], [4, 2]]
    np.testing.assert_array_equal(table, table[::-1])
    np.testing.assert_array_equal(table, table.T)


@pytest.mark.parametrize("shape", [(11, 12), (12, 11), (6, 5), (2, 3)])
def test_against_sums_written_out(shape: tuple[int, int]) -> None:
    plane = (255 * texture(*shape)).astype(np.float32)
    table = low_pass_table()
    height, width = shape

    def at(row: int, column: int) -> float:
        row, column = row % (2 * height), column % (2 * width)
        return float(plane[min(row, 2 * height - 1 - row), min(column, 2 * width - 1 - column)])

    expected = [
        [
            sum(at(y + i, x + j) * float(table[i + 4, j + 4]) for i in range(-4, 5) for j in range(-4, 5))
            for x in range(0, width, 2)
        ]
        for y in range(0, height, 2)
    ]
    got = decimate(plane)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, expected, atol=1e-4)
