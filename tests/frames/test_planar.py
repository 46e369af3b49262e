"""Raw YUV and Y4M: every format, all kinds of headers, and ends of files."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vkssim.errors import InputError, TruncatedInputError
from vkssim.frames.options import RawDescription
from vkssim.frames.raw import PlanarLayout
from vkssim.frames.y4m import parse_header

from ..support.clips import raw_bytes, write, y4m_bytes
from ..support.pictures import clip
from .encoding import noise_planes
from .reading import assert_frames, describe, open_source, read, read_file, read_planes


@pytest.mark.parametrize("chroma", ["420", "422", "444", "411", "440", "410", "400"])
def test_every_format(tmp_path: Path, chroma: str) -> None:
    """All planes, in any order of the frames; chroma of odd sizes is rounded up."""
    for (width, height), bits in product([(32, 24), (33, 25), (35, 27)], [8, 9, 10, 12, 14, 16]):
        frames = [noise_planes(width, height, chroma, bits, seed) for seed in range(3)]
        path = write(tmp_path / "clip.yuv", b"".join(plane.tobytes() for planes in frames for plane in planes))
        with open_source(path, RawDescription(width, height, chroma, bits)) as source:
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


FAMILIES = {
    "420": "420",
    "420jpeg": "420",
    "420mpeg2": "420",
    "420paldv": "420",
    "422": "422",
    "411": "411",
    "444": "444",
    "444alpha": "444alpha",
    "mono": "400",
}
DEEP = (9, 10, 12, 14, 16)
SPACES = {
    **{family: (family, 8) for family in FAMILIES},
    **{f"{family}p{bits}": (family, bits) for family in FAMILIES for bits in DEEP},
    **{f"mono{bits}": ("mono", bits) for bits in DEEP},  # as FFmpeg writes them
}
SIZE = b"YUV4MPEG2 W32 H24 "
ORDERS = {b"p": "progressive", b"t": "top field first", b"b": "bottom field first", b"m": "interlaced", b"?": None}


@pytest.mark.parametrize(("width", "height"), [(32, 24), (35, 27)])
def test_every_colour_space(tmp_path: Path, width: int, height: int) -> None:
    for space, (family, bits) in SPACES.items():
        chroma = FAMILIES[family].removesuffix("alpha")
        frames = [noise_planes(width, height, chroma, bits, seed) for seed in range(4)]
        alpha = frames[0][0].tobytes() if family.endswith("alpha") else b""
        data = b"".join(b"FRAME\n" + b"".join(plane.tobytes() for plane in planes) + alpha for planes in frames)
        path = write(tmp_path / "clip.y4m", f"YUV4MPEG2 W{width} H{height} F25:1 C{space}\n".encode() + data)
        with open_source(path) as source:
            assert (source.info.bits, source.info.width, source.info.height) == (bits, width, height), space
            assert_frames(read_planes(source, [0, 1, 3], len(frames[0])), [frames[0], frames[1], frames[3]])
            assert source.times_of([3]) == [3 / 25], space
            assert source.problem is None, space


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("clip.y4m", {"colour_space": None}),  # 4:2:0
        ("clip.y4m", {"frame_header": b"FRAME Ip\n"}),
        ("clip.y4m", {"frame_header": b"FRAME Ixyz XCOMMENT=a b\n"}),
        ("clip.yuv", {}),  # the ending of the name does not count
    ],
)
def test_unusual_y4m(tmp_path: Path, name: str, options: dict[str, Any]) -> None:
    luma = clip(3)
    np.testing.assert_array_equal(read_file(write(tmp_path / name, y4m_bytes(luma, **options))), luma)


@pytest.mark.parametrize(
    ("fields", "name", "value"),
    [
        (b"F30000:1001", "fps", Fraction(30000, 1001)),
        (b"F0:0", "fps", None),
        (b"", "fps", None),
        (b"F25:1 XYSCSS=420 Ip A1:1", "fps", 25),
        *((b"F25:1 I" + letter, "field_order", order) for letter, order in ORDERS.items()),
        (b"A64:45 F25:1", "sample_aspect", Fraction(64, 45)),
        (b"A0:0", "sample_aspect", None),
        (b"C420 XCOLORRANGE=FULL", "range", "full"),
        (b"C420 XCOLORRANGE=LIMITED", "range", "limited"),
        (b"C420", "range", None),
    ],
)
def test_what_a_header_states(fields: bytes, name: str, value: object) -> None:
    assert parse_header("clip.y4m", SIZE + fields + b"\n")[1][name] == value


@pytest.mark.parametrize(
    ("line", "named"),
    [
        (b"YUV4MPEG2 W32 H24", "no complete YUV4MPEG2 header line"),
        (b"YUV4MPEG3 W32 H24\n", "no complete YUV4MPEG2 header line"),
        (b"YUV4MPEG2 W32\n", "gives H as ''"),
        (b"YUV4MPEG2 W-32 H24\n", "gives W as '-32'"),
        (b"YUV4MPEG2 W\xb2 H24\n", "gives W as"),
        (b"YUV4MPEG2 W0 H24\n", "0x24"),
        (b"YUV4MPEG2 W99999999 H24\n", "1 to 32768"),
        (SIZE + b"C410\n", "C410 is unknown; 420 420jpeg"),
        (SIZE + b"C420p11\n", "C420p11 is unknown"),
        (SIZE + b"C\n", "C is unknown"),
    ],
)
def test_header_that_cannot_be_read(line: bytes, named: str) -> None:
    with pytest.raises(InputError, match=named):
        parse_header("clip.y4m", line)


@pytest.mark.parametrize("missing", [1, 50, 800, 1152])
def test_last_frame_of_y4m_cut_short(tmp_path: Path, missing: int) -> None:
    """Even if only the FRAME line of the last frame is left."""
    luma = clip(3)
    data = y4m_bytes(luma)[:-missing]
    with open_source(write(tmp_path / "clip.y4m", data)) as source:
        np.testing.assert_array_equal(read(source), luma[:2])
        assert isinstance(source.problem, TruncatedInputError)
        assert f"ends at byte {len(data)}, within frame 2" in str(source.problem)


def test_garbage_between_frames_is_named_by_its_byte(tmp_path: Path) -> None:
    luma = clip(2)
    data = y4m_bytes(luma)
    place = data.rindex(b"FRAME\n")
    with open_source(write(tmp_path / "clip.y4m", data[:place] + b"garbage\n" + data[place:])) as source:
        np.testing.assert_array_equal(read(source), luma[:1])
        assert f"no FRAME header at byte {place}, where frame 1 should begin" in str(source.problem)
