"""The rectangle and the orientation in which players show pictures."""

from __future__ import annotations

import struct
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from vkssim.frames.transforms import orientation

from ..ladder.ladders import encode
from ..support.clips import write
from ..support.coded.boxes import with_clap, with_pixel_crop
from ..support.pictures import clip
from .encoding import encode_frames, noise_planes, video_frame
from .reading import open_source, read_planes, read_with_notes

LUMA = clip(4, 48, 64)


def _encoded(path: Path) -> bytes:
    encode(path, LUMA, "ffv1" if path.suffix == ".mkv" else "mpeg4")
    return path.read_bytes()


@pytest.mark.parametrize("ending", ["mp4", "mov", "mkv"])
def test_the_rectangle_that_is_shown(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"clip.{ending}"
    data = _encoded(path)
    whole, notes = read_with_notes(str(path))
    assert notes == ()
    crops = {"left": 14, "right": 10, "top": 6, "bottom": 10}
    path.write_bytes(with_pixel_crop(data, **crops) if ending == "mkv" else with_clap(data, 40, 1, 32, 1, 2, 1, -4, 2))
    shown, notes = read_with_notes(str(path))
    np.testing.assert_array_equal(shown, whole[:, 6:38, 14:54])
    assert notes == ("cropped to 40x32+14+6, as its container says",)


@pytest.mark.parametrize(
    ("numbers", "width"),
    [((41, 2, 32, 1, 0, 1, 0, 1), 21), ((40, 0, 32, 1, 0, 1, 0, 1), 64), ((40, 1, 32, 1, 50, 1, 0, 1), 64)],
    ids=["parts of samples", "no numbers", "outside"],
)
def test_unusual_rectangles_are_those_of_ffmpeg(tmp_path: Path, numbers: tuple[int, ...], width: int) -> None:
    path = tmp_path / "clip.mp4"
    path.write_bytes(with_clap(_encoded(path), *numbers))
    assert read_with_notes(str(path))[0].shape[2] == width


PLANES = noise_planes(64, 48, "422", 8)
ONE = 1 << 16


def _matrix(a: int, b: int, c: int, d: int) -> bytes:
    return np.array([a * ONE, b * ONE, 0, c * ONE, d * ONE, 0, 0, 0, 1 << 30], np.int32).tobytes()


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(("first", "second"), list(product((1, -1), repeat=2)))
def test_points_go_where_the_matrix_sends_them(transposed: bool, first: int, second: int) -> None:
    """(x, y) to (a x + c y, b x + d y), moved so that the picture begins at (0, 0)."""
    a, b, c, d = (0, first, second, 0) if transposed else (first, 0, 0, second)
    turn = orientation(_matrix(a, b, c, d))
    plane = PLANES[0]
    turned = plane if turn is None else turn((plane,))[0]
    rows, columns = np.indices(plane.shape)
    to_columns, to_rows = a * columns + c * rows, b * columns + d * rows
    expected = np.zeros_like(turned)
    expected[to_rows - to_rows.min(), to_columns - to_columns.min()] = plane
    np.testing.assert_array_equal(turned, expected)
    assert (turn is None) == ((a, d) == (1, 1))


@pytest.mark.parametrize("degrees", [90, -90, 180])
def test_containers_are_turned(tmp_path: Path, degrees: int) -> None:
    """As much counter-clockwise as they say; 4:2:2 on its side is 4:4:0."""
    frame = video_frame(64, 48, "yuv422p", PLANES)
    path = encode_frames(tmp_path / "clip.mp4", [frame], "libx264", options={"qp": "0"}, rotation=degrees)
    with open_source(path) as source:
        assert source.info.chroma == ("422" if degrees == 180 else "440")
        assert "turned as its display matrix says: by" in source.info.notes[0]
        ((*planes,),) = read_planes(source, [0], 3)
    for plane, other in zip(planes, PLANES, strict=True):
        np.testing.assert_array_equal(plane, np.rot90(other, degrees // 90))


def test_no_multiple_of_90_degrees_is_noted(tmp_path: Path) -> None:
    frame = video_frame(64, 48, "yuv422p", PLANES)
    path = encode_frames(tmp_path / "clip.mp4", [frame], "libx264", options={"qp": "0"}, rotation=30)
    with open_source(path) as source:
        assert "was not applied, because it is not a multiple of 90" in source.info.notes[0]
        np.testing.assert_array_equal(read_planes(source, [0], 1)[0][0], PLANES[0])


TURNS: dict[int, Callable[[np.ndarray], np.ndarray]] = {
    1: lambda picture: picture,
    2: np.fliplr,
    3: lambda picture: np.rot90(picture, 2),
    4: np.flipud,
    5: np.transpose,
    6: lambda picture: np.rot90(picture, -1),
    7: lambda picture: np.rot90(picture, 2).T,
    8: np.rot90,
}


@pytest.mark.parametrize("tag", TURNS)
def test_photographs_are_turned(tmp_path: Path, tag: int) -> None:
    """As the tag Orientation of their EXIF says."""
    upright = encode_frames(tmp_path / "upright.jpg", [video_frame(64, 48, "yuvj422p", PLANES)], "mjpeg")
    tiff = struct.pack("<4sIHHHIII", b"II*\0", 8, 1, 0x112, 3, 1, tag, 0)
    data = Path(upright).read_bytes()
    segment = b"Exif\0\0" + tiff
    path = write(tmp_path / "clip.jpg", data[:2] + b"\xff\xe1" + struct.pack(">H", len(segment) + 2) + segment + data[2:])
    with open_source(upright) as source:
        ((luma,),) = read_planes(source, [0], 1)
    with open_source(path) as source:
        np.testing.assert_array_equal(read_planes(source, [0], 1)[0][0], TURNS[tag](luma))
