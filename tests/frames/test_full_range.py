"""Pictures whose samples differ in range or depth, but whose light is the same: each is one picture in two forms."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vkssim import PictureOptions, RawDescription, ScoreReport, score_files
from vkssim.frames.transforms import ToBitDepth
from vkssim.types import Planes

from ..support.clips import write
from ..support.pictures import Picture, clip
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


# -- grey --------------------------------------------------------------------------------------------------------------

GREY = clip(1, HEIGHT, WIDTH)[0]
DEEP_GREY = clip(1, HEIGHT, WIDTH, 16)[0]
LOSSLESS = {"jpeg2000": {"pred": "dwt53"}}
STILLS = ("png", "png"), ("tiff", "tiff"), ("pgm", "pgm"), ("jp2", "jpeg2000")
"""Endings, and the encoders of FFmpeg that write them."""


def _picture(folder: Path, ending: str, codec: str, pixel_format: str, samples: Picture = GREY, **settings: Any) -> str:
    """A picture or clip of one frame, grey or of equal R', G' and B'."""
    planes = [samples]
    if pixel_format.startswith("rgb"):
        planes = [np.repeat(samples, 3, axis=1)]
    elif pixel_format.startswith("gbr"):
        planes *= 3
    if pixel_format.endswith("be"):
        planes = [plane.astype(">u2") for plane in planes]
    frame = video_frame(WIDTH, HEIGHT, pixel_format, planes)
    path = folder / f"{pixel_format}-{settings.get('color_range', 0)}.{ending}"
    return encode_frames(path, [frame], codec, options=LOSSLESS.get(codec), **settings)


RGB = "png", "tiff", "ppm", "dpx"


@pytest.mark.parametrize(
    ("still", "rgb"), [*((still, "png") for still in STILLS), *((STILLS[0], rgb) for rgb in RGB[1:])], ids=str
)
def test_grey_stills_beside_rgb(tmp_path: Path, still: tuple[str, str], rgb: str) -> None:
    """Few formats of pictures state a range, and FFmpeg's decoder of PNG states the matrix of R'G'B' even for grey."""
    grey = _picture(tmp_path, *still, "gray")
    colour = _picture(tmp_path, rgb, rgb, "rgb24")
    report = _score(grey, colour)
    _assert_identical(report)
    assert f"{colour}: converted from rgb24 to Y'CbCr of 16 bits by BT.601, full range" in report.notes
    assert report.scoring is not None
    assert (report.scoring.reference.range, report.scoring.distorted.range) == ("full", "full")
    _assert_identical(_score(colour, grey))


@pytest.mark.parametrize(("first", "second"), list(pairwise((*STILLS, STILLS[0]))), ids=str)
def test_grey_stills_beside_each_other(tmp_path: Path, first: tuple[str, str], second: tuple[str, str]) -> None:
    _assert_identical(_score(*(_picture(tmp_path, *kind, "gray") for kind in (first, second))))


@pytest.mark.parametrize(("ending", "codec", "pixel_format"), [("png", "png", "gray16be"), ("tiff", "tiff", "gray16le")])
def test_deep_grey_beside_deep_rgb(tmp_path: Path, ending: str, codec: str, pixel_format: str) -> None:
    grey = _picture(tmp_path, ending, codec, pixel_format, DEEP_GREY)
    _assert_identical(_score(grey, _picture(tmp_path, "png", "png", "rgb48be", DEEP_GREY)))


@pytest.mark.parametrize("bits", [10, 12, 14])
def test_grey_and_rgb_of_other_depths(tmp_path: Path, bits: int) -> None:
    """White and all greys of both become the same integers of 16 bits, also where float32 would round wrong."""
    samples = np.arange(WIDTH * HEIGHT, dtype=np.uint16).reshape(HEIGHT, WIDTH) * 5 % 2**bits
    samples[0, 0] = 2**bits - 1
    grey, colour = (_picture(tmp_path, "mkv", "ffv1", f"{name}{bits}le", samples) for name in ("gray", "gbrp"))
    _assert_identical(_score(grey, colour))


def test_grey_without_a_container(tmp_path: Path) -> None:
    """FFmpeg reads both as its grey format, of full range."""
    colour, grey = _picture(tmp_path, "png", "png", "rgb24"), GREY.tobytes()
    header = f"YUV4MPEG2 W{WIDTH} H{HEIGHT} F25:1 Cmono\nFRAME\n".encode()
    _assert_identical(_score(write(tmp_path / "grey.y4m", header + grey), colour))
    raw = RawDescription(WIDTH, HEIGHT, "400", 8)
    _assert_identical(_score(write(tmp_path / "grey.yuv", grey), colour, raw=raw))


@pytest.mark.parametrize("stated", [0, LIMITED, FULL])
def test_what_grey_states_counts(tmp_path: Path, stated: int) -> None:
    """If it states limited range, R'G'B' beside it becomes limited."""
    samples = GREY if stated != LIMITED else 16 + 73 * (GREY // 85)
    grey = _picture(tmp_path, "mkv", "ffv1", "gray", samples, color_range=stated)
    colour = _picture(tmp_path, "png", "png", "rgb24", GREY if stated != LIMITED else GREY // 85 * 85)
    _assert_identical(_score(grey, colour))


@pytest.mark.parametrize(
    ("grey", "other", "words"),
    [
        (0, FULL, None),
        (0, 0, "states full range, {other} none: the same grey has different samples (grey that states none counts as full)"),
        (0, LIMITED, "states full range, {other} limited: the same grey has different samples (grey that"),
        (LIMITED, 0, None),
        (LIMITED, FULL, "states limited range, {other} full: the same grey"),
    ],
)
def test_ranges_of_grey_and_colour(tmp_path: Path, grey: int, other: int, words: str | None) -> None:
    """Grey has no matrix that could differ, even if it states one."""
    first = _picture(tmp_path, "mkv", "ffv1", "gray", color_range=grey, colorspace=1)
    planes = GREY, *(np.full((HEIGHT // 2, WIDTH // 2), 128, np.uint8),) * 2
    second = encode_frames(
        tmp_path / "colour.mkv", [video_frame(WIDTH, HEIGHT, "yuv420p", planes)], "ffv1", color_range=other, colorspace=5
    )
    warnings = _score(first, second).warnings
    assert len(warnings) == (0 if words is None else 1), warnings
    assert words is None or words.format(other=second) in warnings[0]


def test_a_matrix_that_grey_states_is_that_of_rgb(tmp_path: Path) -> None:
    grey = _picture(tmp_path, "mkv", "ffv1", "gray", colorspace=1)
    report = _score(grey, _picture(tmp_path, "png", "png", "rgb24"))
    assert any(note.endswith("by BT.709, full range") for note in report.notes)


# -- R'G'B' of limited range -------------------------------------------------------------------------------------------


def _four_levels(seed: int = 3) -> Picture:
    """(3, H, W) of 0 to 3: a third of white is an integer of both ranges."""
    return np.random.default_rng(seed).integers(0, 4, (3, HEIGHT, WIDTH), np.uint8)


def _rgb_clip(path: Path, levels: Picture, stated: int) -> str:
    """Such a picture in FFV1 of 10 bits, or as a lossless elementary stream of H.264."""
    samples = 16 + 73 * levels if stated == LIMITED else 85 * levels
    if path.suffix == ".264":
        interleaved = np.moveaxis(samples, 0, -1).reshape(HEIGHT, -1)
        frame = video_frame(WIDTH, HEIGHT, "rgb24", [interleaved])
        return encode_frames(path, [frame], "libx264rgb", options={"qp": "0"}, color_range=stated)
    deep = 64 + 292 * levels.astype(np.uint16) if stated == LIMITED else 341 * levels.astype(np.uint16)
    return encode_frames(path, [video_frame(WIDTH, HEIGHT, "gbrp10le", deep)], "ffv1", color_range=stated)


@pytest.mark.parametrize("other", [0, FULL, LIMITED])
@pytest.mark.parametrize("planes", ["y", "yuv"])
def test_rgb_that_states_limited_range(tmp_path: Path, planes: str, other: int) -> None:
    """It is the same picture as R'G'B' of full range, which R'G'B' without a range is."""
    levels = _four_levels()
    limited = _rgb_clip(tmp_path / "limited.mkv", levels, LIMITED)
    second = _rgb_clip(tmp_path / "other.mkv", levels, other)
    report = _score(limited, second, planes)
    assert report.warnings == []
    assert (
        report.notes[0] == f"{limited}: converted from gbrp10le of limited range to Y'CbCr of 16 bits by BT.601, limited range"
    )
    for name in report.names:  # float32 may round one sample of 16 bits otherwise
        assert report.frames[0].metrics[name] > (1 - 1e-9 if "ssim" in name else 100), name


@pytest.mark.parametrize(("name", "levels"), [("rgb444le", 16), ("rgb555le", 2), ("rgb565le", 2)])
def test_rgb_of_few_bits(tmp_path: Path, name: str, levels: int) -> None:
    """White of 4, 5 or 6 bits is white; libswscale makes 240, 248 and 252 of 255 of it."""
    parts = tuple(map(int, name[3:6]))
    picture = np.random.default_rng(4).integers(0, levels, (3, HEIGHT, WIDTH), np.uint8)
    whites = [(2**part - 1) // (levels - 1) for part in parts]
    red, green, blue = (plane.astype(np.uint16) * white for plane, white in zip(picture, whites, strict=True))
    packed = red << (parts[1] + parts[2]) | green << parts[2] | blue
    bitmap = encode_frames(tmp_path / "few.bmp", [video_frame(WIDTH, HEIGHT, name, [packed])], "bmp")
    pixels = np.moveaxis(picture * (255 // (levels - 1)), 0, -1).reshape(HEIGHT, -1)
    other = encode_frames(tmp_path / "eight.png", [video_frame(WIDTH, HEIGHT, "rgb24", [pixels])], "png")
    report = _score(bitmap, other, "yuv")
    assert report.warnings == []
    for name in report.names:
        assert report.frames[0].metrics[name] > (1 - 1e-9 if "ssim" in name else 100), name


def test_rgb_of_two_ranges_in_one_stream(tmp_path: Path) -> None:
    """Each frame is converted by the range that it states."""
    levels = _four_levels()
    parts = [_rgb_clip(tmp_path / f"{stated}.264", levels, stated) for stated in (LIMITED, FULL)]
    both = write(tmp_path / "both.264", b"".join(Path(part).read_bytes() for part in parts))
    twice = write(tmp_path / "twice.264", Path(parts[1]).read_bytes() * 2)
    report = _score(both, twice)
    assert len(report.frames) == 2
    assert report.warnings == []
    assert min(report.column("float_psnr")) > 100
