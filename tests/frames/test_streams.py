"""The choice of a container's stream, and the notes on it."""

from __future__ import annotations

import struct
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from av.stream import Disposition

from vkssim import score_files
from vkssim.errors import InputError

from ..support.clips import raw_bytes, raw_flags, write
from ..support.commands import TINY, vkssim
from ..support.golden import FIXTURES
from ..support.pictures import Picture, clip
from ..support.shown import with_clap, with_pixel_crop
from .encoding import encode_frames, flat_chroma
from .reading import open_source, read

FIRST, SECOND = clip(5, 48, 64), clip(7, 48, 64, seed=1)
CPU: dict[str, Any] = {"features": "float_ssim=scale=1", "backend": "cpu"}


def _two(path: Path, default: int | None, codec: str = "ffv1") -> str:
    """Two video streams, of which one or neither has the default mark."""
    with av.open(str(path), "w") as container:
        streams: list[Any] = []
        for number in range(2):
            stream: Any = container.add_stream(codec, rate=25)
            stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
            stream.disposition = Disposition.default if number == default else Disposition(0)
            streams.append(stream)
        for stream, luma in zip(streams, (FIRST, SECOND), strict=True):
            for number, frame in enumerate(flat_chroma(luma)):
                frame.pts, frame.time_base = number, Fraction(1, 25)
                container.mux(stream.encode(frame))
            container.mux(stream.encode(None))
    return str(path)


def _read(path: str, stream: int | None = None) -> tuple[Picture, tuple[str, ...]]:
    with open_source(path, stream=stream) as source:
        return read(source), source.info.notes


@pytest.mark.parametrize(("default", "expected"), [(None, FIRST), (0, FIRST), (1, SECOND)])
def test_the_default_stream_is_taken(tmp_path: Path, default: int | None, expected: Picture) -> None:
    frames, notes = _read(_two(tmp_path / "two.mkv", default))
    np.testing.assert_array_equal(frames, expected)
    (note,) = notes
    marks = [", default" if number == default else "" for number in range(2)]
    assert note == f"stream {default or 0} was chosen from 0 (ffv1 64x48{marks[0]}), 1 (ffv1 64x48{marks[1]})"


def test_the_stream_that_is_named_is_taken(tmp_path: Path) -> None:
    path = _two(tmp_path / "two.mkv", 0)
    for number, luma in enumerate((FIRST, SECOND)):
        np.testing.assert_array_equal(_read(path, number)[0], luma)
    with pytest.raises(InputError, match=r"has no video stream 2; it has 0 \(ffv1 64x48, default\), 1 \(ffv1 64x48\)"):
        open_source(path, stream=2)


def test_the_packets_and_the_facts_are_those_of_the_stream(tmp_path: Path) -> None:
    path = _two(tmp_path / "two.mkv", 0)
    for number in range(2):
        with av.open(path) as file:
            expected = sum(packet.size for packet in file.demux(video=number))
        for reads_all in (False, True):
            with open_source(path, stream=number) as source:
                if reads_all:
                    read(source)
                packets = source.packets()
                assert packets is not None
                assert packets.bytes == expected
                assert source.clip_facts().stream == number


def test_by_the_command_line_in_ranges_and_in_batches(tmp_path: Path) -> None:
    path = _two(tmp_path / "two.mkv", 0)
    plain = write(tmp_path / "plain.yuv", raw_bytes(SECOND))
    words = ("-r", path, "-d", plain, *raw_flags(SECOND), *TINY)
    chosen = vkssim("score", *words, "--stream-reference", "1", "-q", "--csv", "-o", "-")
    assert [line.split(",")[1] for line in chosen.stdout.splitlines()[1:]] == ["1.000000"] * len(SECOND)
    swapped = vkssim("score", "-r", plain, "-d", path, *words[4:], "--stream-distorted", "1")
    assert "note: " + path + ": stream 1 was chosen from 0 (ffv1 64x48, default), 1 (ffv1 64x48)" in swapped.stderr
    refused = vkssim("score", *words, "--stream-distorted", "1")
    assert (refused.exit_code, "is raw and has no stream 1; only containers have several" in refused.stderr) == (2, True)
    assert vkssim("score", *words, "--stream-distorted", "0", "-q").exit_code == 0
    (tmp_path / "ladder.csv").write_text(f"reference,distorted\n{path},{plain}\n{path},plain.yuv\n")
    table = tmp_path / "out.csv"
    batch = ("batch", str(tmp_path / "ladder.csv"), "-o", str(table), *raw_flags(SECOND), *TINY, "-q")
    assert vkssim(*batch, "--stream-reference", "1").exit_code == 0
    assert table.read_text().count(",1.0,") >= 2


def _with_cover_first(path: Path) -> str:
    """An MP4 whose tags, with a cover in them, come before its video."""
    cover = encode_frames(path.with_suffix(".png"), [av.VideoFrame.from_ndarray(np.zeros((48, 64, 3), np.uint8))], "png")
    data = Path(encode_frames(path, flat_chroma(FIRST), "libx264", options={"qp": "0"})).read_bytes()

    def box(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I4s", 8 + len(content), name) + content

    picture = box(b"data", struct.pack(">II", 14, 0) + Path(cover).read_bytes())
    handler = box(b"hdlr", bytes(8) + b"mdirappl" + bytes(9))
    tags = box(b"udta", box(b"meta", bytes(4) + handler + box(b"ilst", box(b"covr", picture))))
    moov = data.index(b"moov") - 4
    track = data.index(b"trak", moov) - 4
    grown = bytearray(data[:track] + tags + data[track:])  # its samples come before
    struct.pack_into(">I", grown, moov, struct.unpack_from(">I", data, moov)[0] + len(tags))
    path.write_bytes(grown)
    return str(path)


def test_a_cover_is_no_video(tmp_path: Path) -> None:
    path = _with_cover_first(tmp_path / "film.mp4")
    with av.open(path) as file:
        assert file.streams.video[0].disposition & Disposition.attached_pic, "FFmpeg lists it first"
    frames, notes = _read(path)
    np.testing.assert_array_equal(frames, FIRST)
    assert notes == ("stream 1 was chosen from 0 (png 64x48, attached pic), 1 (h264 64x48, default)",)
    assert score_files(path, path, **CPU).column("float_ssim").tolist() == [1] * len(FIRST)


def test_tiles_are_no_picture() -> None:
    path = str(FIXTURES / "grid_128x64.avif")
    with pytest.raises(InputError, match=r"is a picture of 2 tiles, which vkssim does not assemble; it has 0 \(\w+ 64x64"):
        open_source(path)
    assert _read(path, 1)[0].shape == (1, 64, 64)


@pytest.mark.parametrize("ending", ["mp4", "mkv"])
def test_the_crop_is_that_of_the_chosen_track(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"two.{ending}"
    data = Path(_two(path, 0, "mpeg4" if ending == "mp4" else "ffv1")).read_bytes()
    crop = with_clap(data, 40, 1, 32, 1, 0, 1, 0, 1) if ending == "mp4" else with_pixel_crop(data, left=24, top=16)
    path.write_bytes(crop)
    shapes = {stream: _read(str(path), stream)[0].shape[1:] for stream in (0, 1)}
    assert sorted(shapes.values()) == [(32, 40), (48, 64)]
    cropped = min(shapes, key=lambda stream: shapes[stream])
    assert cropped == (1 if ending == "mp4" else 0), "which of them was given a crop"
