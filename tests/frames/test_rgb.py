"""Conversions of R'G'B', against the formulas of ITU-T H.273."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image

from vkssim.frames.decode.container import ContainerFile
from vkssim.frames.info import VideoInfo
from vkssim.frames.pixels import RGB_DEFAULT, Colour, to_rgb
from vkssim.frames.source import FrameSource

from ..support.pictures import quantise, texture
from .encoding import encode_frames, video_frame
from .reading import open_source, read_planes

WEIGHTS = {
    "BT.601": (0.299, 0.114),
    "BT.709": (0.2126, 0.0722),
    "BT.2020": (0.2627, 0.0593),
    "FCC": (0.30, 0.11),
    "SMPTE 240M": (0.212, 0.087),
}
"""Kr and Kb."""

TOLERANCE = 0.51  # of the 16-bit samples: rounding, and float32
COLOURS = np.random.default_rng(1).integers(0, 256, (48, 64, 3), np.uint8)
COLOURS[:2] = [[[0, 0, 0]], [[255, 255, 255]]]


def _expected(rgb: np.ndarray, peak: int, colour: Colour) -> tuple[np.ndarray, ...]:
    red, green, blue = np.moveaxis(rgb / peak, -1, 0)
    weight_red, weight_blue = WEIGHTS[colour.matrix]
    luma = weight_red * red + (1 - weight_red - weight_blue) * green + weight_blue * blue
    chroma = [(part - luma) / (2 * (1 - weight)) for part, weight in ((blue, weight_blue), (red, weight_red))]
    if colour.range == "limited":
        return tuple(256 * plane for plane in (16 + 219 * luma, *(128 + 224 * part for part in chroma)))
    return 65535 * luma, *(np.clip(32768 + 65535 * part, 0, 65535) for part in chroma)


def _assert_close(source: FrameSource, expected: tuple[np.ndarray, ...]) -> None:
    ((*planes,),) = read_planes(source, [0], 3)
    for plane, other in zip(planes, expected, strict=True):
        np.testing.assert_allclose(plane, other, atol=TOLERANCE)


@pytest.mark.parametrize("range_", ["limited", "full"])
@pytest.mark.parametrize("matrix", WEIGHTS)
def test_by_the_formula(tmp_path: Path, matrix: str, range_: str) -> None:
    colour = Colour(matrix, range_)
    path = encode_frames(tmp_path / "picture.png", [av.VideoFrame.from_ndarray(COLOURS, "rgb24")], "png")
    with ContainerFile(path) as source:
        source.convert_to(colour)
        _assert_close(source, _expected(COLOURS, 255, colour))
        assert (source.info.matrix, source.info.range, source.info.bits) == (matrix, range_, 16)
        assert source.info.notes == (f"converted from rgb24 to Y'CbCr of 16 bits by {matrix}, {range_} range",)


@pytest.mark.parametrize(("pixel_format", "bits"), [("gbrp10le", 10), ("gbrap10le", 10), ("gbrp16le", 16)])
def test_deep_planes(tmp_path: Path, pixel_format: str, bits: int) -> None:
    """With alpha too, which is left out; twice, since libswscale would leave stale memory in some rows."""
    deep = np.random.default_rng(3).integers(0, 1 << bits, (48, 64, 4), np.uint16)
    red, green, blue, alpha = np.moveaxis(deep, -1, 0)
    planes = [green, blue, red, alpha][: 4 if "a" in pixel_format else 3]
    path = encode_frames(tmp_path / "clip.mkv", [video_frame(64, 48, pixel_format, planes)], "ffv1")
    for _ in range(2):
        with open_source(path) as source:
            _assert_close(source, _expected(deep[..., :3], (1 << bits) - 1, RGB_DEFAULT))


@pytest.mark.parametrize(("ending", "pixel_format"), [("png", "rgba"), ("bmp", "bgr24"), ("tiff", "rgb24")])
def test_stills(tmp_path: Path, ending: str, pixel_format: str) -> None:
    frame: Any = av.VideoFrame.from_ndarray(COLOURS, "rgb24")
    path = tmp_path / f"picture.{ending}"
    frame = frame.reformat(format=pixel_format, threads=1)
    encode_frames(path, [frame], ending)
    with open_source(str(path)) as source:
        _assert_close(source, _expected(COLOURS, 255, RGB_DEFAULT))
        assert source.info.fps is None, "a picture has no rate"
        assert ("its alpha is left out" in source.info.notes) == (pixel_format == "rgba")
        assert len(read_planes(source, [1], 1)) == 0


@pytest.mark.parametrize("first", range(6))
def test_pictures_of_several_kinds_in_one_sequence(tmp_path: Path, first: int) -> None:
    """Grey and palettes among R'G'B', whichever comes first: programs write a black picture in the smallest way."""
    red, grey = Image.fromarray(COLOURS), Image.fromarray(COLOURS[..., 0])
    deep = COLOURS[..., 0].astype(np.uint16) * 257
    kinds = [red, red.quantize(16), grey, Image.fromarray(COLOURS[..., 0] > 99), Image.fromarray(deep), grey.convert("LA")]
    kinds = kinds[first:] + kinds[:first]
    for number, picture in enumerate(kinds):
        picture.save(tmp_path / f"{number}.png")
    shown = [grey if picture.mode == "I;16" else picture for picture in kinds]
    with open_source(str(tmp_path / "%d.png")) as source:
        assert (source.is_rgb, source.info.bits, source.info.chroma) == (True, 16, "444")
        found = read_planes(source, range(len(kinds)), 3)
        assert source.problem is None
    for planes, picture in zip(found, shown, strict=True):
        expected = _expected(np.asarray(picture.convert("RGB")), 255, RGB_DEFAULT)
        for plane, other in zip(planes, expected, strict=True):
            np.testing.assert_allclose(plane, other, atol=TOLERANCE)


def test_grey_pictures_alone_stay_grey(tmp_path: Path) -> None:
    for number in range(2):
        Image.fromarray(COLOURS[..., number]).save(tmp_path / f"{number}.png")
    with open_source(str(tmp_path / "%d.png")) as source:
        assert (source.is_rgb, source.info.bits, source.info.chroma) == (False, 8, "400")


def test_jpeg_states_full_range(tmp_path: Path) -> None:
    frame: Any = av.VideoFrame.from_ndarray(COLOURS, "rgb24")
    frame.save(str(tmp_path / "picture.jpg"))
    with open_source(str(tmp_path / "picture.jpg")) as source:
        assert (source.info.range, source.info.matrix, source.info.bits) == ("full", "BT.601", 8)


LIMITED = {"black": (16, 128, 128), "white": (235, 128, 128), "red": (81, 90, 240), "blue": (41, 240, 110)}
RGB = {"black": (0, 0, 0), "white": (255, 255, 255), "red": (255, 0, 0), "blue": (0, 0, 255)}


def _info(bits: int = 8, chroma: str = "444", **known: Any) -> VideoInfo:
    return VideoInfo("", "", 1, 1, bits, chroma=chroma, **known)


@pytest.mark.parametrize("bits", [8, 10, 16])
@pytest.mark.parametrize("name", RGB)
def test_corners_of_the_cube(name: str, bits: int) -> None:
    """BT.601 of limited range, the default for a small picture that states nothing."""
    planes = tuple(np.full((1, 1), value << (bits - 8), np.uint8 if bits == 8 else np.uint16) for value in LIMITED[name])
    assert np.abs(to_rgb(planes, _info(bits))[0, 0].astype(int) - RGB[name]).max() <= 1


def test_grey_has_the_range_that_is_stated() -> None:
    ramp = np.arange(256, dtype=np.uint8)[None]
    full, limited = (to_rgb((ramp,), _info(chroma="400", range=name))[0] for name in ("full", "limited"))
    np.testing.assert_array_equal(full, np.stack([ramp[0]] * 3, axis=1))
    np.testing.assert_array_equal(limited[[0, 16, 235, 255]], [[0] * 3, [0] * 3, [255] * 3, [255] * 3])


@pytest.mark.parametrize(("pixel_format", "rows", "columns"), [("yuv420p", 2, 2), ("yuv422p", 1, 2), ("yuv444p", 1, 1)])
@pytest.mark.parametrize(("matrix", "number"), [("BT.601", 5), ("BT.709", 1)])
def test_as_ffmpeg_converts(pixel_format: str, rows: int, columns: int, matrix: str, number: int) -> None:
    """But for how chroma is spread: here it is flat."""
    cb = np.full((48 // rows, 64 // columns), 100, np.uint8)
    planes = (quantise(texture(48, 64), 8), cb, np.full_like(cb, 160))
    frame = video_frame(64, 48, pixel_format, planes)
    expected = frame.to_ndarray(format="rgb24", src_colorspace=number, dst_colorspace=number)
    got = to_rgb(planes, VideoInfo("", "", 64, 48, 8, matrix=matrix, range="limited"))
    assert np.abs(got.astype(int) - expected).max() <= 3
