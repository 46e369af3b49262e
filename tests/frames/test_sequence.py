"""Sequences of pictures."""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np
import pytest

from vkssim.errors import InputError

from ..support.pictures import clip
from .encoding import encode_frames
from .reading import open_source, read

LUMA = clip(5, 48, 64)


def _write(folder: Path, numbers: range | list[int], name: str = "frame_%04d.png") -> None:
    for number, picture in zip(numbers, LUMA, strict=False):
        encode_frames(folder / (name % number), [av.VideoFrame.from_ndarray(picture, "gray")], "png")


@pytest.mark.parametrize(("first", "name"), [(0, "frame_%04d.png"), (1, "f%d.png"), (8, "f%d.png"), (250, "frame_%04d.png")])
def test_counted_from_the_lowest_number(tmp_path: Path, first: int, name: str) -> None:
    _write(tmp_path, range(first, first + 5), name)
    with open_source(str(tmp_path / name)) as source:
        assert (source.info.frames, source.info.fps, source.expected) == (5, None, 5)
        assert source.time(0) is None
        np.testing.assert_array_equal(read(source), LUMA)


@pytest.mark.parametrize("name", ["100%_{}.png", "50%%_{}.png", "{}%.png", "{}"])
def test_per_cent_signs_of_the_name_itself(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "20% off"
    folder.mkdir()
    for number, picture in enumerate(LUMA, 1):
        written = folder / "picture.png"
        encode_frames(written, [av.VideoFrame.from_ndarray(picture, "gray")], "png")
        written.rename(folder / name.format(f"{number:03d}"))
    with open_source(str(folder / name.format("%03d"))) as source:
        np.testing.assert_array_equal(read(source), LUMA)


def test_wildcard(tmp_path: Path) -> None:
    """In the order of their names, gaps or not."""
    _write(tmp_path, [3, 7, 8, 20, 21])
    with open_source(str(tmp_path / "frame_*.png")) as source:
        assert source.info.frames == 5
        np.testing.assert_array_equal(read(source), LUMA)


def test_missing_picture_is_named(tmp_path: Path) -> None:
    _write(tmp_path, [1, 2, 4, 5])
    with pytest.raises(InputError, match=r"frame_0003.png is missing between frame_0001.png and frame_0005.png.*frame_\*.png"):
        open_source(str(tmp_path / "frame_%04d.png"))


@pytest.mark.parametrize("name", ["frame_%04d.png", "nowhere/frame_%d.png", "frame_*.png"])
def test_no_picture_at_all(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="no such files"):
        open_source(str(tmp_path / name))


def test_pictures_of_different_size(tmp_path: Path) -> None:
    _write(tmp_path, range(2))
    encode_frames(tmp_path / "frame_0002.png", [av.VideoFrame.from_ndarray(LUMA[0][:40], "gray")], "png")
    with open_source(str(tmp_path / "frame_%04d.png")) as source:
        assert len(read(source)) == 2
        assert "frame 2 is 64x40 gray, the first one is 64x48 gray" in str(source.problem)


@pytest.mark.parametrize("name", ["folder_%d/frame.png", "a" * 300 + ".mp4"])
def test_what_is_no_name_of_pictures(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        open_source(str(tmp_path / name))
