"""FFmpeg's pixel formats: every sample of frames whose memory the tests fill themselves."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from av.video.format import names  # type: ignore[attr-defined, unused-ignore] # some of PyAV's stubs leave it out

from vkssim.errors import InputError
from vkssim.frames.pixels import pixel_format
from vkssim.types import Planes

from .encoding import noise_planes, video_frame

WIDTH, HEIGHT = 34, 27

PLANAR = [
    (f"{family}{chroma}p{bits if bits > 8 else ''}{order if bits > 8 else ''}", chroma, bits)
    for family, chroma, bits in [
        ("yuv", "420", 8), ("yuv", "422", 8), ("yuv", "444", 8), ("yuv", "411", 8), ("yuv", "440", 8), ("yuv", "410", 8),
        ("yuvj", "420", 8), ("yuvj", "444", 8), ("yuv", "420", 9), ("yuv", "420", 10), ("yuv", "422", 10), ("yuv", "440", 10),
        ("yuv", "444", 12), ("yuv", "422", 14), ("yuv", "420", 16), ("yuv", "444", 16),
    ]
    for order in (("le",) if bits == 8 else ("le", "be"))
]  # fmt: skip


def _copied(name: str, frame: Any, planes: int) -> Planes:
    told = pixel_format("clip", name)
    target = tuple(np.empty_like(plane) for plane in noise_planes(WIDTH, HEIGHT, told.chroma, told.bits)[:planes])
    if told.via is not None:
        frame = frame.reformat(format=told.via, threads=1)
    told.copy(frame, target)
    return target


def _assert_planes(name: str, bits: int, chroma: str, memory: list[np.ndarray], planes: Planes) -> None:
    told = pixel_format("clip", name)
    assert (told.bits, told.chroma) == (bits, chroma)
    for found, expected in zip(_copied(name, video_frame(WIDTH, HEIGHT, name, memory), len(planes)), planes, strict=True):
        np.testing.assert_array_equal(found, expected)


def _ordered(plane: np.ndarray, name: str) -> np.ndarray:
    return plane.astype(plane.dtype.newbyteorder(">" if name.endswith("be") else "<"))


def _pairs(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return np.stack([first, second], axis=-1).reshape(len(first), -1)


@pytest.mark.parametrize(("name", "chroma", "bits"), PLANAR)
def test_planar(name: str, chroma: str, bits: int) -> None:
    planes = noise_planes(WIDTH, HEIGHT, chroma, bits)
    _assert_planes(name, bits, chroma, [_ordered(plane, name) for plane in planes], planes)


@pytest.mark.parametrize(("name", "bits"), [("gray", 8), ("gray9le", 9), ("gray10be", 10), ("gray14le", 14), ("gray16be", 16)])
def test_grey(name: str, bits: int) -> None:
    planes = noise_planes(WIDTH, HEIGHT, "400", bits)
    _assert_planes(name, bits, "400", [_ordered(planes[0], name)], planes)


@pytest.mark.parametrize(("name", "bits"), [("ya8", 8), ("ya16le", 16), ("ya16be", 16)])
def test_grey_with_alpha(name: str, bits: int) -> None:
    planes = noise_planes(WIDTH, HEIGHT, "400", bits)
    _assert_planes(name, bits, "400", [_ordered(_pairs(planes[0], planes[0] * 0 + 7), name)], planes)


@pytest.mark.parametrize(
    ("name", "chroma", "bits"),
    [("nv12", "420", 8), ("nv21", "420", 8), ("nv16", "422", 8), ("nv24", "444", 8), ("nv42", "444", 8), ("nv20le", "422", 10)],
)
def test_pairs_of_chroma(name: str, chroma: str, bits: int) -> None:
    luma, blue, red = planes = noise_planes(WIDTH, HEIGHT, chroma, bits)
    pairs = _pairs(red, blue) if name in ("nv21", "nv42") else _pairs(blue, red)
    _assert_planes(name, bits, chroma, [luma, pairs], planes)


@pytest.mark.parametrize("order", ["le", "be"])
@pytest.mark.parametrize(
    ("name", "chroma", "bits"),
    [("p010", "420", 10), ("p012", "420", 12), ("p016", "420", 16), ("p210", "422", 10), ("p416", "444", 16)],
)
def test_samples_in_the_high_bits(name: str, chroma: str, bits: int, order: str) -> None:
    planes = noise_planes(WIDTH, HEIGHT, chroma, bits)
    luma, blue, red = (plane << (16 - bits) for plane in planes)
    memory = [_ordered(plane, order) for plane in (luma, _pairs(blue, red))]
    _assert_planes(name + order, bits, chroma, memory, planes)


@pytest.mark.parametrize(
    ("name", "bits", "order"), [("yuyv422", 8, "yuyv"), ("uyvy422", 8, "uyvy"), ("yvyu422", 8, "yvyu"), ("y210le", 10, "yuyv")]
)
def test_packed(name: str, bits: int, order: str) -> None:
    luma, blue, red = planes = noise_planes(WIDTH, HEIGHT, "422", bits)
    samples = {"y": iter((luma[:, ::2], luma[:, 1::2])), "u": iter((blue,)), "v": iter((red,))}
    packed = np.stack([next(samples[letter]) for letter in order], axis=-1).reshape(HEIGHT, -1)
    _assert_planes(name, bits, "422", [packed << (16 - bits) if bits > 8 else packed], planes)


def test_packed_444() -> None:
    luma, blue, red = planes = noise_planes(WIDTH, HEIGHT, "444", 8)
    packed = np.stack([red, blue, luma, luma * 0 + 9], axis=-1).reshape(HEIGHT, -1)
    _assert_planes("vuya", 8, "444", [packed], planes)


@pytest.mark.parametrize(("name", "bits"), [("yuv420p", 8), ("nv12", 8), ("p010le", 10)])
def test_odd_sizes(name: str, bits: int) -> None:
    """Chroma is rounded up."""
    planes = luma, blue, red = noise_planes(35, 27, "420", bits)
    memory = [plane << (16 - bits) if name == "p010le" else plane for plane in planes]
    if name != "yuv420p":
        memory[1:] = [_pairs(*memory[1:])]
    target = tuple(np.empty_like(plane) for plane in planes)
    pixel_format("clip", name).copy(video_frame(35, 27, name, memory), target)
    for found, expected in zip(target, (luma, blue, red), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_alpha_is_passed_over() -> None:
    planes = noise_planes(WIDTH, HEIGHT, "444", 12)
    _assert_planes("yuva444p12le", 12, "444", [*planes, planes[0]], planes)


def test_luma_alone() -> None:
    luma, *_ = planes = noise_planes(WIDTH, HEIGHT, "420", 8)
    np.testing.assert_array_equal(_copied("yuv420p", video_frame(WIDTH, HEIGHT, "yuv420p", planes), 1)[0], luma)


@pytest.mark.parametrize("name", ["rgb24", "bgra", "gbrp", "gbrap12le", "rgb48be", "x2rgb10le", "pal8", "rgb565le"])
def test_rgb_is_converted(name: str) -> None:
    told = pixel_format("clip", name)
    assert told.rgb
    assert told.via == "gbrp" + ("" if told.bits == 8 else f"{told.bits}le")


@pytest.mark.parametrize("name", ["xyz12le", "bayer_rggb8", "grayf32le", "gbrpf32le", "vaapi", None])
def test_no_luma_that_could_be_compared(name: str | None) -> None:
    with pytest.raises(InputError, match=r"clip: nothing is known of the luma of its pixel format.*ffmpeg -i IN"):
        pixel_format("clip", name)


def test_every_name_is_read_or_refused() -> None:
    read = 0
    for name in names:
        with suppress(InputError):
            read += pixel_format("clip", name).bits >= 8
    assert read > 150
