"""Test the scale of samples: depths, types and ranges."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from vkssim.errors import FrameError, OptionError
from vkssim.shaders.interface import SampleCode
from vkssim.types import FrameFormat


@pytest.mark.parametrize("bits", range(8, 17))
def test_depths(bits: int) -> None:
    frame = FrameFormat.of_bits(33, 20, bits)
    assert (frame.factor, frame.peak) == (2.0 ** (8 - bits), 2.0**bits - 1)
    assert frame.dtype == (np.uint8 if bits == 8 else np.uint16)
    assert frame.row_bytes == 33 * frame.dtype.itemsize
    assert not frame.needs_ingest


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


IMPOSSIBLE: dict[str, list[tuple[Any, ...]]] = {
    "8 to 16 are possible": [(32, 24, bits) for bits in (7, 17, 0)],
    "each side must be 1 to 32768": [(*size, 8) for size in ((0, 24), (32, 0), (-32, 24), (32769, 24))],
    "give data_range": [(32, 24, dtype, None) for dtype in (np.float32, np.float64)],
    "uint8, uint16, float32 and float64 are possible": [
        (32, 24, dtype, 1.0) for dtype in (np.int16, np.int64, np.float16, bool, complex, "U1")
    ],
}
"""Depths, sizes and types that are refused, by the message. Three arguments are those of `of_bits`."""


@pytest.mark.parametrize(("message", "arguments"), [(message, given) for message, all in IMPOSSIBLE.items() for given in all])
def test_what_is_impossible(message: str, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(FrameError, match=message):
        (FrameFormat.of_bits if len(arguments) == 3 else FrameFormat.of_array)(*arguments)


@pytest.mark.parametrize("data_range", [0, -1, math.nan, math.inf, 1e-50, 1e300, 10**400, "255", [255.0], np.ones(1), 255j])
def test_what_is_no_range(data_range: Any) -> None:
    with pytest.raises(OptionError, match=r"data_range is .* a number (from 1e-30 to 1e\+30|that a float can hold)"):
        FrameFormat.of_array(32, 24, np.float32, data_range)
