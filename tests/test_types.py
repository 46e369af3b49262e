"""Test the scale of samples: depths, types and ranges."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from vkssim.errors import FrameError
from vkssim.shaders.interface import SampleCode
from vkssim.types import FrameFormat


@pytest.mark.parametrize("bits", range(8, 17))
def test_depths(bits: int) -> None:
    frame = FrameFormat.of_bits(33, 20, bits)
    assert (frame.factor, frame.peak) == (2.0 ** (8 - bits), 2.0**bits - 1)
    assert frame.dtype == (np.uint8 if bits == 8 else np.uint16)
    assert frame.row_bytes == 33 * frame.dtype.itemsize
    assert not frame.needs_ingest


@pytest.mark.parametrize("bits", [7, 17, 0])
def test_impossible_depths(bits: int) -> None:
    with pytest.raises(FrameError, match="8 to 16 are possible"):
        FrameFormat.of_bits(32, 24, bits)


@pytest.mark.parametrize(
    ("dtype", "data_range", "factor", "ingested"),
    [
        (np.uint8, None, 1.0, False),
        (np.uint8, 255, 1.0, False),
        (np.uint8, 100, 2.55, True),
        (np.uint8, 1, 255.0, True),
        (np.uint16, None, 1 / 256, False),
        (np.uint16, 1023, 0.25, False),
        (np.uint16, 255, 1.0, False),
        (np.uint16, 1000, 0.255, True),
        (np.float32, 255, 1.0, True),
        (np.float64, 1.0, 255.0, True),
    ],
)
def test_arrays(dtype: type, data_range: float | None, factor: float, ingested: bool) -> None:
    """A range that is that of a depth goes by libvmaf's rule for depths; every other one is scaled to 0..255."""
    frame = FrameFormat.of_array(32, 24, dtype, data_range)
    assert frame.factor == factor
    assert frame.needs_ingest is ingested


def test_doubles_are_computed_in_float32() -> None:
    assert FrameFormat.of_array(32, 24, np.float64, 1.0).code is SampleCode.FLOAT32


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floats_have_no_default_range(dtype: type) -> None:
    with pytest.raises(FrameError, match="give data_range"):
        FrameFormat.of_array(32, 24, dtype, None)


@pytest.mark.parametrize("data_range", [0, -1, math.nan, math.inf, 1e-50, 1e300, 10**400, "255", [255.0], np.ones(1), 255j])
def test_impossible_ranges(data_range: float) -> None:
    with pytest.raises(FrameError, match=r"a number from 1e-30 to 1e\+30"):
        FrameFormat.of_array(32, 24, np.float32, data_range)


@pytest.mark.parametrize("dtype", [np.int16, np.int64, np.float16, bool, complex, "U1"])
def test_impossible_types(dtype: Any) -> None:
    with pytest.raises(FrameError, match="uint8, uint16, float32 and float64 are possible"):
        FrameFormat.of_array(32, 24, dtype, 1.0)


@pytest.mark.parametrize("size", [(0, 24), (32, 0), (-32, 24), (32769, 24)])
def test_impossible_sizes(size: tuple[int, int]) -> None:
    with pytest.raises(FrameError, match="each side must be 1 to 32768"):
        FrameFormat.of_bits(*size, 8)
