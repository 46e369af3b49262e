"""FFmpeg's pixel formats: the planes of a frame of each, as FFmpeg's own program gives them."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import av
import numpy as np
import pytest
from av.video.format import names  # type: ignore[attr-defined, unused-ignore] # some of PyAV's stubs leave it out

from vkssim.errors import InputError
from vkssim.frames.pixels import PixelFormat, pixel_format
from vkssim.types import Planes, plane_shapes
from vkssim.utils.av_frames import new_scaler

from ..support.golden import FIXTURES
from .encoding import noise_planes, video_frame

UNCONVERTED = {"bgr4", "rgb4", "v30xbe", "x2bgr10be", "x2rgb10be", "xv30be", "y210be", "y212be", "y216be"}
"""Formats that have a luma, and that FFmpeg converts to no other."""


def _formats() -> dict[str, PixelFormat]:
    """The formats that are read, by their names."""
    found = {}
    for name in names:
        with suppress(InputError):
            found[name] = pixel_format("clip", name)
    return found


FORMATS = _formats()


@pytest.fixture(scope="module")
def pictures() -> dict[str, Any]:
    """Bytes of a frame by the name of its format, and FFmpeg's planes of it; fixtures/README.md says how they were made."""
    with np.load(FIXTURES / "pixel_formats.npz") as file:
        return dict(file)


def _copied(frame: Any, count: int = 3) -> Planes:
    """The planes of a frame, written over memory that has other samples."""
    pixels = pixel_format("clip", frame.format.name)
    shapes = plane_shapes(frame.width, frame.height, pixels.chroma)
    target = tuple(np.full(shape, 85, np.uint8 if pixels.bits == 8 else np.uint16) for shape in shapes)[:count]
    pixels.copy(frame if pixels.via is None else new_scaler()(frame, format=pixels.via), target)
    return target


def _decoded(name: str, pictures: dict[str, Any]) -> Any:
    decoder: Any = av.CodecContext.create("rawvideo", "r")
    decoder.width, decoder.height, decoder.pix_fmt = pictures["WIDTH"], pictures["HEIGHT"], name
    (frame,) = decoder.decode(av.Packet(pictures[name].tobytes()))
    assert frame.format.name == name
    return frame


def test_every_format_is_in_the_fixture(pictures: dict[str, Any]) -> None:
    assert len(FORMATS) > 150
    assert set(FORMATS) - set(pictures) <= UNCONVERTED


def test_planes_are_those_of_ffmpeg(pictures: dict[str, Any]) -> None:
    """Twice: a picture that is made of stale memory may be right once."""
    wrong = []
    for name in sorted(set(FORMATS) - UNCONVERTED):
        pixels = FORMATS[name]
        expected = pictures[f"{name}.planes"].view("u1" if pixels.bits == 8 else "<u2")
        expected = expected >> (pixels.shift if "msb" in name else 0)
        for _ in range(2):
            planes = _copied(_decoded(name, pictures))
            planes = planes if not pixels.rgb else (planes[1], planes[2], planes[0])  # FFmpeg has green first
            found = np.concatenate([plane.ravel() for plane in planes])
            if not np.array_equal(found, expected[: found.size]):  # alpha comes last
                wrong.append(name)
    assert wrong == []


def test_no_planes_without_a_conversion() -> None:
    for name in UNCONVERTED & set(FORMATS):
        with pytest.raises((av.FFmpegError, ValueError)):
            _copied(av.VideoFrame(36, 6, name))


def test_conversions_damage_no_sample() -> None:
    """Many times: with threads, libswscale overwrote eight samples of a quarter of these frames."""
    luma, *_ = planes = noise_planes(854, 480, "444", 8)
    frame, limited = video_frame(854, 480, "yuv444p", planes), 1
    for _ in range(60):
        deep = new_scaler()(frame, format="yuv420p10le", src_color_range=limited, dst_color_range=limited)
        np.testing.assert_array_equal(_copied(deep, 1)[0], luma.astype(np.uint16) << 2)


@pytest.mark.parametrize(("name", "bits"), [("yuv420p", 8), ("nv12", 8), ("p010le", 10)])
def test_odd_sizes(name: str, bits: int) -> None:
    """Chroma is rounded up."""
    planes = luma, blue, red = noise_planes(35, 27, "420", bits)
    memory = [plane << (16 - bits) if name == "p010le" else plane for plane in planes]
    if name != "yuv420p":
        memory[1:] = [np.stack(memory[1:], axis=-1).reshape(len(blue), -1)]
    for found, expected in zip(_copied(video_frame(35, 27, name, memory)), (luma, blue, red), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", ["xyz12le", "bayer_rggb8", "grayf32le", "gbrpf32le", "gbrapf16be", "rgbf16le", "vaapi", None])
def test_no_luma_that_could_be_compared(name: str | None) -> None:
    with pytest.raises(InputError, match=r"clip: the luma of its pixel format .* cannot be read; .*ffmpeg -i IN"):
        pixel_format("clip", name)
