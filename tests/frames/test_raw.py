"""Raw YUV from files."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from vkssim.errors import InputError, TruncatedInputError
from vkssim.frames.options import RawDescription
from vkssim.frames.raw import PlanarLayout

from ..support.clips import raw_bytes, write
from ..support.pictures import clip
from .encoding import noise_planes
from .reading import assert_frames, describe, open_source, read, read_planes


@pytest.mark.parametrize("bits", [8, 9, 10, 12, 14, 16])
@pytest.mark.parametrize("chroma", ["420", "422", "444", "411", "440", "410", "400"])
@pytest.mark.parametrize(("width", "height"), [(32, 24), (33, 25), (35, 27)])
def test_every_format(tmp_path: Path, width: int, height: int, chroma: str, bits: int) -> None:
    """All planes, in any order of the frames; chroma of odd sizes is rounded up."""
    frames = [noise_planes(width, height, chroma, bits, seed) for seed in range(3)]
    path = write(tmp_path / "clip.yuv", b"".join(plane.tobytes() for planes in frames for plane in planes))
    with open_source(path, RawDescription(width, height, chroma, bits), chroma=chroma != "400") as source:
        assert source.info.chroma == chroma
        assert_frames(read_planes(source, [2, 0, 1], len(frames[0])), [frames[2], frames[0], frames[1]])


def test_threads_read_at_once(tmp_path: Path) -> None:
    luma = clip(16)
    path = write(tmp_path / "clip.yuv", raw_bytes(luma))
    with open_source(path, describe(luma)) as source, ThreadPoolExecutor(4) as pool:
        parts = pool.map(lambda number: read(source, range(number, number + 1)), range(16))
        np.testing.assert_array_equal(np.concatenate(list(parts)), luma)


def test_rows_of_the_target_may_be_padded(tmp_path: Path) -> None:
    luma = clip(2)
    path = write(tmp_path / "clip.yuv", raw_bytes(luma))
    padded = np.zeros((2, 24, 48), np.uint8)
    with open_source(path, describe(luma)) as source:
        assert source.read(range(2), [(plane,) for plane in padded[..., :32]]) == 2
    np.testing.assert_array_equal(padded[..., :32], luma)
    assert not padded[..., 32:].any()


@pytest.mark.parametrize("missing", [1, 500, 1151])
def test_last_frame_cut_short(tmp_path: Path, missing: int) -> None:
    """The complete frames can be read; the problem names the byte where the file ends."""
    luma = clip(3)
    data = raw_bytes(luma)
    path = write(tmp_path / "clip.yuv", data[: len(data) - missing])
    with pytest.raises(InputError, match=rf"not a whole number of frames: 2 of 1152 bytes, and {1152 - missing} bytes more"):
        open_source(path, describe(luma))
    with open_source(path, replace(describe(luma), allow_partial=True)) as source:
        np.testing.assert_array_equal(read(source), luma[:2])
        assert isinstance(source.problem, TruncatedInputError)
        assert f"ends at byte {len(data) - missing}, within frame 2, which begins at byte {2 * 1152}" in str(source.problem)


def test_file_that_shrinks_while_it_is_read(tmp_path: Path) -> None:
    luma = clip(3)
    path = write(tmp_path / "clip.yuv", raw_bytes(luma))
    with open_source(path, describe(luma)) as source:
        write(tmp_path / "clip.yuv", raw_bytes(luma)[:-1])
        assert len(read(source)) == 3, "luma, of which nothing is missing"
        write(tmp_path / "clip.yuv", raw_bytes(luma[:1]))
        assert len(read(source)) == 1
        assert "became shorter while it was read, at byte" in str(source.problem)


def test_closing_twice_does_nothing(tmp_path: Path) -> None:
    luma = clip(1)
    source = open_source(write(tmp_path / "clip.yuv", raw_bytes(luma)), describe(luma))
    source.close()
    source.close()


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
