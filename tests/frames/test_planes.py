"""All planes of raw YUV and Y4M, and clips with luma alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from vkssim.frames.open import open_source
from vkssim.frames.options import RawDescription

from ..support.clips import write
from .encoding import noise_planes
from .reading import NOTHING_SAID, read_planes

CHROMAS = ("420", "422", "444", "411", "440", "410")
SIZES = ((32, 24), (35, 27))


@pytest.mark.parametrize("bits", [8, 10, 16])
@pytest.mark.parametrize("chroma", CHROMAS)
@pytest.mark.parametrize(("width", "height"), SIZES)
def test_raw(tmp_path: Path, width: int, height: int, chroma: str, bits: int) -> None:
    frames = [noise_planes(width, height, chroma, bits, seed) for seed in range(3)]
    path = write(tmp_path / "clip.yuv", b"".join(plane.tobytes() for planes in frames for plane in planes))
    with open_source(path, RawDescription(width, height, chroma, bits), chroma=True) as source:
        assert source.info.chroma == chroma
        _assert_frames(read_planes(source, [2, 0, 1], 3), [frames[2], frames[0], frames[1]])


@pytest.mark.parametrize(("space", "chroma"), [("420", "420"), ("422", "422"), ("411", "411"), ("444p12", "444")])
@pytest.mark.parametrize(("width", "height"), SIZES)
def test_y4m(tmp_path: Path, width: int, height: int, space: str, chroma: str) -> None:
    frames = [noise_planes(width, height, chroma, 12 if space.endswith("12") else 8, seed) for seed in range(4)]
    data = b"".join(b"FRAME\n" + b"".join(plane.tobytes() for plane in planes) for planes in frames)
    path = write(tmp_path / "clip.y4m", f"YUV4MPEG2 W{width} H{height} F25:1 C{space}\n".encode() + data)
    with open_source(path, NOTHING_SAID, chroma=True) as source:
        _assert_frames(read_planes(source, [0, 1, 3], 3), [frames[0], frames[1], frames[3]])
        assert source.time(3) == 3 / 25


def test_y4m_cut_within_chroma(tmp_path: Path) -> None:
    planes = noise_planes(32, 24, "420", 8)
    frame = b"FRAME\n" + b"".join(plane.tobytes() for plane in planes)
    path = write(tmp_path / "clip.y4m", b"YUV4MPEG2 W32 H24 C420\n" + frame + frame[:-50])
    with open_source(path, NOTHING_SAID, chroma=True) as source:
        assert len(read_planes(source, [0, 1], 3)) == 1
        assert "within frame 1" in str(source.problem)


def test_y4m_states_its_range(tmp_path: Path) -> None:
    for said, found in ((" XCOLORRANGE=FULL", "full"), (" XCOLORRANGE=LIMITED", "limited"), ("", None)):
        path = write(tmp_path / "clip.y4m", f"YUV4MPEG2 W32 H24 C420{said}\n".encode())
        with open_source(path, NOTHING_SAID) as source:
            assert source.info.range == found


def _assert_frames(found: list[tuple[np.ndarray, ...]], expected: list[tuple[np.ndarray, ...]]) -> None:
    assert len(found) == len(expected)
    for planes, others in zip(found, expected, strict=True):
        for plane, other in zip(planes, others, strict=True):
            np.testing.assert_array_equal(plane, other)
