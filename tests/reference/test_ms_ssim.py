"""The low-pass table and the decimation, against sums written out sample by sample."""

from __future__ import annotations

import numpy as np
import pytest

from vkssim.reference.ms_ssim import decimate, low_pass_table
from vkssim.shaders.constants import LOW_PASS

from ..support.pictures import texture


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
