"""Containers, decoded by PyAV: their codecs, their streams, and sequences of pictures."""

from __future__ import annotations

import gc
import struct
import weakref
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from av.bitstream import BitStreamFilterContext
from av.stream import Disposition
from PIL import Image

from vkssim import score_files
from vkssim.errors import InputError
from vkssim.frames.decode import container
from vkssim.frames.options import RawDescription
from vkssim.types import plane_shapes

from ..support.children import in_child
from ..support.clips import raw_bytes, raw_flags, write
from ..support.coded.boxes import with_clap, with_pixel_crop
from ..support.commands import TINY, vkssim
from ..support.golden import FIXTURES, clip_paths
from ..support.pictures import Picture, clip
from .encoding import encode_frames, flat_chroma, noise_planes, video_frame
from .reading import assert_frames, open_source, read, read_file, read_planes, read_with_notes


@pytest.mark.parametrize("ending", ["mkv", "avi", "ts", "mp4", "mpg"])
def test_recognised_though_described_as_raw(tmp_path: Path, ending: str) -> None:
    """By its first bytes: read as samples, it would be garbage. A description has to agree with it."""
    codec = {"mp4": "mpeg4", "ts": "mpeg2video", "mpg": "mpeg2video"}.get(ending, "ffv1")
    luma = clip(2, 48, 64)
    path = encode_frames(tmp_path / f"clip.{ending}", flat_chroma(luma), codec)
    assert read_file(path, RawDescription(64, 48, "420", 8)).shape == luma.shape
    with pytest.raises(InputError, match="states a `width` of 64; `width=66` contradicts it"):
        open_source(path, RawDescription(66, 48, "420", 8))


def test_recording_that_begins_between_key_frames(tmp_path: Path) -> None:
    """libavcodec skips packets that it cannot decode; times count from the first frame that it returns."""
    luma = clip(12, 48, 64)
    options = {"qp": "0", "bf": "0", "g": "6", "sc_threshold": "0"}
    data = Path(encode_frames(tmp_path / "whole.ts", flat_chroma(luma), "libx264", options=options)).read_bytes()
    packets = [data[start : start + 188] for start in range(0, len(data), 188)]
    starts = [number for number, packet in enumerate(packets) if packet[1] & 0x5F == 0x41 and packet[2] == 0]  # of frames
    path = write(tmp_path / "torn.ts", b"".join(packets[: starts[0]] + packets[starts[2] :]))
    with open_source(path) as source:
        np.testing.assert_array_equal(read(source), luma[6:])
        times = source.times()
        assert times is not None
        np.testing.assert_allclose(times, np.arange(6) / 25, atol=1e-9)


def test_torn_packets_at_the_start(tmp_path: Path) -> None:
    """They are passed over, and noted."""
    frames = [video_frame(64, 48, "yuvj422p", noise_planes(64, 48, "422", 8, seed)) for seed in range(4)]
    whole = Path(encode_frames(tmp_path / "whole.avi", frames, "mjpeg"))
    expected = read_file(str(whole))
    data = bytearray(whole.read_bytes())
    first, second = data.index(b"\xff\xd8\xff"), data.index(b"\xff\xd8\xff", data.index(b"\xff\xd9"))
    data[first : second - 8] = bytes(second - 8 - first)  # 8 bytes of AVI before each
    with open_source(write(tmp_path / "torn.avi", bytes(data))) as source:
        assert source.info.notes == ("packets skipped at the start, because they cannot be decoded: 1",)
        np.testing.assert_array_equal(read(source), expected[1:])


def test_a_closed_clip_is_let_go_of_at_once() -> None:
    """Its decoder has threads and memory that must not wait for Python's search for cycles: a plan opens thousands of clips."""
    gc.disable()
    try:
        source = open_source(str(clip_paths("bbb_576x324_10bit")[0]))
        source.close()
        left = weakref.ref(source)
        del source
        assert left() is None
    finally:
        gc.enable()


# -- codecs: all planes are equal to PyAV's own arrays of the decoded frames ------------------------------------------

CODECS = [
    ("h264.mp4", "libx264", "yuv420p", {"qp": "0"}),
    ("h264.mkv", "libx264", "yuv444p10le", {"qp": "0"}),
    ("hevc.mp4", "libx265", "yuv422p10le", {"x265-params": "lossless=1:log-level=none"}),
    ("hevc12.mkv", "libx265", "yuv444p12le", {"x265-params": "lossless=1:log-level=none"}),
    ("vp9.webm", "libvpx-vp9", "yuv420p", {"lossless": "1"}),
    ("vp9.mkv", "libvpx-vp9", "yuv440p", {"lossless": "1"}),
    ("ffv1.mkv", "ffv1", "yuv420p16le", {}),
    ("ffv1.avi", "ffv1", "yuv410p", {}),
    ("ffv1a.mkv", "ffv1", "yuva444p12le", {}),
    ("utvideo.avi", "utvideo", "yuv422p", {}),
    ("v210.mov", "v210", "yuv422p10le", {}),
    ("raw.nut", "rawvideo", "yuv411p", {}),
    ("raw_nv12.nut", "rawvideo", "nv12", {}),
    ("raw_packed.avi", "rawvideo", "yuyv422", {}),
    ("av1.mp4", "libsvtav1", "yuv420p10le", {"preset": "12", "svtav1-params": "lp=1"}),
    ("prores.mov", "prores_ks", "yuv422p10le", {}),
    ("prores4444.mov", "prores_ks", "yuva444p10le", {}),
    ("dnxhr.mov", "dnxhd", "yuv422p10le", {"profile": "dnxhr_hqx"}),
    ("mjpeg.avi", "mjpeg", "yuvj420p", {}),
    ("mpeg2.ts", "mpeg2video", "yuv420p", {}),
]
SIZES = {"ffv1.avi": (64, 48), "utvideo.avi": (320, 180), "dnxhr.mov": (256, 120), "av1.mp4": (64, 64)}


def _planar(frame: Any) -> tuple[np.ndarray, ...]:
    """The planes by PyAV's own reshaping of its memory, alpha left out."""
    name = frame.format.name
    planar = {"nv12": "yuv420p", "yuyv422": "yuv422p", "yuvj420p": "yuvj420p"}.get(name, name.replace("yuva", "yuv"))
    frame = frame if planar == name else frame.reformat(format=planar, threads=1)
    deep = frame.format.components[0].bits > 8
    planes = []
    for plane in frame.planes:
        rows = np.frombuffer(bytes(plane), "<u2" if deep else np.uint8).reshape(plane.height, -1)
        planes.append(rows[:, : plane.width])
    return tuple(planes)


def _read_all(path: str, count: int) -> list[tuple[np.ndarray, ...]]:
    with open_source(path) as source:
        planes = read_planes(source, range(count), 3)
        assert source.problem is None
        shapes = plane_shapes(source.info.width, source.info.height, source.info.chroma)
        assert [plane.shape for plane in planes[0]] == shapes
    return planes


@pytest.mark.parametrize(("name", "codec", "pixel_format", "options"), CODECS)
def test_planes_are_those_that_pyav_decodes(
    tmp_path: Path, name: str, codec: str, pixel_format: str, options: dict[str, str]
) -> None:
    width, height = SIZES.get(name, (62, 50))
    frames = []
    for seed in range(3):
        frame: Any = av.VideoFrame(width, height, pixel_format)
        bits = frame.format.components[0].bits
        for plane in frame.planes:
            memory = np.frombuffer(plane, np.uint8 if bits == 8 else "<u2")
            memory[:] = np.random.default_rng(seed).integers(0, 2**bits, memory.shape)
        frames.append(frame)
    path = encode_frames(tmp_path / name, frames, codec, options=options)
    with av.open(path) as opened:
        expected = [_planar(frame)[:3] for frame in opened.decode(video=0)]
    assert len(expected) == 3
    assert_frames(_read_all(path, 5), expected)


def test_key_frames_are_sampled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From all over a stream that is too long to decode it all."""
    monkeypatch.setattr(container, "_FEW_FRAMES", 0)
    clip = [noise_planes(64, 48, "420", 8, seed) for seed in range(24)]
    frames = [video_frame(64, 48, "yuv420p", planes) for planes in clip]
    path = encode_frames(tmp_path / "clip.mkv", frames, "libx264", options={"qp": "0", "g": "4", "sc_threshold": "0"})
    with open_source(path) as source:
        assert source.expected == 24, "by its duration"
        sampled = [luma.copy() for luma, *_ in source.sample(4)]
    found = [next(number for number, planes in enumerate(clip) if np.array_equal(planes[0], luma)) for luma in sampled]
    assert found == [0, 4, 12, 16]


@pytest.mark.parametrize("left", [2, 16, 40])
def test_a_crop_at_the_left_is_that_of_the_stream(tmp_path: Path, left: int) -> None:
    """H.264 says how many columns are not shown. libavcodec shows some of them, unless a plane may begin anywhere in memory."""
    whole, cropped = tmp_path / "whole.mp4", tmp_path / "cropped.mp4"
    frame = video_frame(192, 64, "yuv420p", noise_planes(192, 64, "420", 8))
    encode_frames(whole, [frame, frame], "libx264", options={"qp": "0"})
    with av.open(str(whole)) as source, av.open(str(cropped), "w") as target:
        stream = target.add_stream_from_template(source.streams.video[0])
        edit = BitStreamFilterContext(f"h264_metadata=crop_left={left}:crop_right=6", source.streams.video[0], stream)
        for packet in source.demux(video=0):
            for edited in edit.filter(packet if packet.dts is not None else None):
                edited.stream = stream
                target.mux(edited)
    np.testing.assert_array_equal(read_file(str(cropped)), read_file(str(whole))[:, :, left : 192 - 6])


# -- the choice of a stream, and the notes on it ----------------------------------------------------------------------

FIRST, SECOND = clip(5, 48, 64), clip(7, 48, 64, seed=1)
CPU: dict[str, Any] = {"features": "float_ssim=scale=1", "backend": "cpu"}


@in_child
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


@pytest.mark.parametrize(("default", "expected"), [(None, FIRST), (0, FIRST), (1, SECOND)])
def test_the_default_stream_is_taken(tmp_path: Path, default: int | None, expected: Picture) -> None:
    frames, notes = read_with_notes(_two(tmp_path / "two.mkv", default))
    np.testing.assert_array_equal(frames, expected)
    (note,) = notes
    marks = [", default" if number == default else "" for number in range(2)]
    assert note == f"stream {default or 0} was chosen from 0 (ffv1 64x48{marks[0]}), 1 (ffv1 64x48{marks[1]})"


def test_the_stream_that_is_named_is_taken(tmp_path: Path) -> None:
    path = _two(tmp_path / "two.mkv", 0)
    for number, luma in enumerate((FIRST, SECOND)):
        np.testing.assert_array_equal(read_with_notes(path, number)[0], luma)
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
    frames, notes = read_with_notes(path)
    np.testing.assert_array_equal(frames, FIRST)
    assert notes == ("stream 1 was chosen from 0 (png 64x48, attached pic), 1 (h264 64x48, default)",)
    assert score_files(path, path, **CPU).column("float_ssim").tolist() == [1] * len(FIRST)


def test_tiles_are_no_picture() -> None:
    path = str(FIXTURES / "grid_128x64.avif")
    with pytest.raises(InputError, match=r"is a picture of 2 tiles, which vkssim does not assemble; it has 0 \(\w+ 64x64"):
        open_source(path)
    assert read_with_notes(path, 1)[0].shape == (1, 64, 64)


def test_a_track_counts_before_the_still_beside_it(tmp_path: Path) -> None:
    """An animated AVIF has its first picture twice; players show the track. Colour and alpha are stills and tracks each."""
    colours = np.random.default_rng(4).integers(0, 256, (3, 48, 64, 4), np.uint8)
    pictures = [Image.fromarray(picture) for picture in colours]
    pictures[0].save(tmp_path / "a.avif", save_all=True, append_images=pictures[1:], duration=100, quality=100)
    path = str(tmp_path / "a.avif")
    frames, notes = read_with_notes(path)
    assert len(frames) == len(pictures)
    assert notes[0].startswith("stream 2 was chosen from 0 (libdav1d 64x48, default), 1 (libdav1d 64x48), 2 (")
    still, _ = read_with_notes(path, 0)
    np.testing.assert_array_equal(still, frames[:1])
    assert [frame.time for frame in score_files(path, path, **CPU).frames] == [0, 0.1, 0.2]


@pytest.mark.parametrize("ending", ["mp4", "mkv"])
def test_the_crop_is_that_of_the_chosen_track(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"two.{ending}"
    data = Path(_two(path, 0, "mpeg4" if ending == "mp4" else "ffv1")).read_bytes()
    crop = with_clap(data, 40, 1, 32, 1, 0, 1, 0, 1) if ending == "mp4" else with_pixel_crop(data, left=24, top=16)
    path.write_bytes(crop)
    shapes = {stream: read_with_notes(str(path), stream)[0].shape[1:] for stream in (0, 1)}
    assert sorted(shapes.values()) == [(32, 40), (48, 64)]
    cropped = min(shapes, key=lambda stream: shapes[stream])
    assert cropped == (1 if ending == "mp4" else 0), "which of them was given a crop"


# -- sequences of pictures --------------------------------------------------------------------------------------------

LUMA = clip(5, 48, 64)


def _write(folder: Path, numbers: range | list[int], name: str = "frame_%04d.png") -> None:
    for number, picture in zip(numbers, LUMA, strict=False):
        encode_frames(folder / (name % number), [av.VideoFrame.from_ndarray(picture, "gray")], "png")


@pytest.mark.parametrize(("first", "name"), [(0, "frame_%04d.png"), (1, "f%d.png"), (8, "f%d.png"), (250, "frame_%04d.png")])
def test_counted_from_the_lowest_number(tmp_path: Path, first: int, name: str) -> None:
    _write(tmp_path, range(first, first + 5), name)
    with open_source(str(tmp_path / name)) as source:
        assert (source.info.frames, source.info.fps, source.expected) == (5, None, 5)
        assert source.times_of([0]) == [None]
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
    """In the order of their numbers, gaps or not."""
    _write(tmp_path, [3, 7, 8, 20, 21])
    with open_source(str(tmp_path / "frame_*.png")) as source:
        assert source.info.frames == 5
        np.testing.assert_array_equal(read(source), LUMA)


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("f_*.png", ["f_1.png", "f_2.png", "f_9.png", "f_10.png", "f_11.png"]),
        ("f_*.tga", ["f_1.tga", "f_9.tga", "f_10.tga", "f_99.tga", "f_100.tga"]),
        ("f_[12]*.png", ["f_1.png", "f_2.png", "f_10.png", "f_12.png", "f_20.png"]),
        ("*.png", ["f_08.png", "f_9.png", "f_10.png", "f_101.png", "f_0200.png"]),
        ("*.png", ["a, {1}\\2.png", "a, {1}\\10.png", "b[3]4.png", "b[3]20.png", "c.png"]),
        ("*", ["take 1.2", "take 1.10", "take 2.1", "take 10.1", "take 10.10"]),
    ],
    ids=str,
)
def test_wildcard_takes_numbers_by_value(tmp_path: Path, pattern: str, names: list[str]) -> None:
    """FFmpeg alone would read f_10 before f_2. Pictures that the pattern does not name are not read."""
    ending = "tga" if pattern.endswith("tga") else "png"
    others = [] if pattern == "*" else [f"f_3.{ending}.old", f".f_4.{ending}"] + ["f_5.png"] * ("12" in pattern)
    for name, picture in zip([*names, *others], [*LUMA, *LUMA], strict=False):
        Image.fromarray(picture).save(tmp_path / f"made.{ending}")
        (tmp_path / f"made.{ending}").rename(tmp_path / name)
    with open_source(str(tmp_path / pattern)) as source:
        np.testing.assert_array_equal(read(source), LUMA)


def test_names_of_too_many_forms(tmp_path: Path) -> None:
    """FFmpeg would cut off the pattern that puts them in order."""
    for number in range(1, 40):
        (tmp_path / f"f_{number}{'x' * number}.png").touch()
    with pytest.raises(InputError, match=r"f_\*\.png: the numbers .* too many different forms; write all of them"):
        open_source(str(tmp_path / "f_*.png"))


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


@pytest.mark.parametrize("name", ["folder_%d/frame.png", "a" * 300 + ".mp4", "."])
def test_what_is_no_name_of_pictures(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        open_source(str(tmp_path / name))
