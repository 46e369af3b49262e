"""Pictures whose samples differ in range or depth, but whose light is the same: each is one picture in two forms."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vkssim import PictureOptions, ScoreReport, score_files
from vkssim.frames.picture.steps import ToBitDepth
from vkssim.types import Planes

from ..support.clips import write
from ..support.pictures import Picture
from .encoding import encode_frames, noise_planes, video_frame

WIDTH, HEIGHT = 64, 48
DEPTHS = (8, 9, 10, 12, 14, 16)
FULL, LIMITED = 2, 1
"""FFmpeg's numbers of ranges."""


def _score(reference: str, distorted: str, planes: str = "y", **options: Any) -> ScoreReport:
    features = ["float_ssim=scale=1", "float_psnr"]
    return score_files(reference, distorted, features=features, planes=planes, backend="cpu", **options)


def _assert_identical(report: ScoreReport) -> None:
    """Every score is the best possible, and nothing is said against the pictures."""
    assert report.warnings == []
    for name in report.names:
        limit = 6 * report.bits + 12
        best = {1.0} if "ssim" in name else {float(limit)}
        assert set(report.column(name).tolist()) == best, name


def _deeper(samples: Picture, before: int, after: int, middle: bool = False) -> Picture:
    """The samples of full range at another depth, by equations 29 to 31 of H.273; `middle` for chroma."""
    zero, new_zero = (2 ** (bits - 1) if middle else 0 for bits in (before, after))
    white, new_white = 2**before - 1, 2**after - 1
    exact = [Fraction((int(value) - zero) * new_white, white) + new_zero for value in range(2**before)]
    table = np.array([min(max(0, (value + Fraction(1, 2)).__floor__()), new_white) for value in exact], np.uint16)
    return table[samples]


def _deeper_planes(planes: Planes, before: int, after: int) -> Planes:
    return tuple(_deeper(plane, before, after, number > 0) for number, plane in enumerate(planes))


@pytest.mark.parametrize(("before", "after"), [(before, after) for before in DEPTHS for after in DEPTHS if before < after])
def test_every_sample_of_every_depth(before: int, after: int) -> None:
    plane = np.arange(2**before, dtype=np.uint8 if before == 8 else np.uint16)[None]
    full = ToBitDepth(before, after, is_full_range=True)((plane, plane, plane))
    for deep, expected in zip(full, _deeper_planes((plane, plane, plane), before, after), strict=True):
        np.testing.assert_array_equal(deep, expected)
    assert (full[0][0, 0], full[0][0, -1]) == (0, 2**after - 1), "black and white"
    assert full[1][0, 2 ** (before - 1)] == 2 ** (after - 1), "the middle of chroma"
    (limited,) = ToBitDepth(before, after, is_full_range=False)((plane,))
    np.testing.assert_array_equal(limited, plane.astype(np.uint16) << (after - before))


def _y4m(path: Path, planes: Planes, bits: int) -> str:
    colour = "420" + ("" if bits == 8 else f"p{bits}")
    header = f"YUV4MPEG2 W{WIDTH} H{HEIGHT} F25:1 Ip A1:1 C{colour} XCOLORRANGE=FULL\nFRAME\n".encode()
    return write(path.with_suffix(".y4m"), header + b"".join(plane.tobytes() for plane in planes))


def _ffv1(path: Path, planes: Planes, bits: int) -> str:
    pixel_format = "yuv420p" + ("" if bits == 8 else f"{bits}le")
    return encode_frames(path.with_suffix(".mkv"), [video_frame(WIDTH, HEIGHT, pixel_format, planes)], "ffv1", color_range=FULL)


@pytest.mark.parametrize("pictures", [PictureOptions(deepen=True), PictureOptions(scale="reference")], ids=["deepen", "scale"])
@pytest.mark.parametrize("make", [_y4m, _ffv1])
@pytest.mark.parametrize("bits", [10, 12])
def test_full_range_of_two_depths(tmp_path: Path, make: Any, bits: int, pictures: PictureOptions) -> None:
    """A multiplication by a power of two would make white 1020 of 10 bits, and the white of the other clip is 1023."""
    planes = noise_planes(WIDTH, HEIGHT, "420", 8)
    planes[0][:8] = 255
    eight = make(tmp_path / "8", planes, 8)
    deep = make(tmp_path / "deep", _deeper_planes(planes, 8, bits), bits)
    for reference, distorted in ((eight, deep), (deep, eight)):
        report = _score(reference, distorted, "yuv", pictures=pictures)
        _assert_identical(report)
        assert report.notes == [f"{eight}: brought from 8 to {bits} bits of full range, times {2**bits - 1}/255"]
