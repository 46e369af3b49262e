"""Where the luma lies, and what cannot be laid out."""

from __future__ import annotations

import pytest

from vkssim.errors import InputError
from vkssim.frames.layout import PlanarLayout

from ..support.clips import CHROMA, raw_bytes
from ..support.pictures import clip


@pytest.mark.parametrize("bits", [8, 9, 10, 12, 14, 16])
@pytest.mark.parametrize("pixel_format", CHROMA)
@pytest.mark.parametrize(("width", "height"), [(32, 24), (33, 24), (32, 25), (35, 27)])
def test_sizes(width: int, height: int, pixel_format: str, bits: int) -> None:
    """Chroma of odd sizes is rounded up, in each direction that is subsampled."""
    layout = PlanarLayout(width, height, pixel_format, bits)
    luma = clip(1, height, width, bits)
    assert layout.frame_bytes == len(raw_bytes(luma, pixel_format))
    assert layout.plane_bytes[0] == luma.nbytes
    assert layout.plane_offsets[:1] == [0]
    assert layout.plane_offsets[-1] + layout.plane_bytes[-1] == layout.frame_bytes


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ((0, 24, "420", 8), "0x24"),
        ((32, 40000, "420", 8), "1 to 32768"),
        ((32, 24, "421", 8), "'421'"),
        ((32, 24, "420", 11), "11 bits a sample; 8, 9, 10, 12, 14, 16"),
    ],
)
def test_impossible_layouts_are_refused(values: tuple[int, int, str, int], named: str) -> None:
    with pytest.raises(InputError, match=named):
        PlanarLayout(*values)
