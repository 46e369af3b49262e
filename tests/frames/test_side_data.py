"""Side data of frames, of every kind that FFmpeg's decoders give: reading it must not end the process."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from av.bitstream import BitStreamFilterContext
from av.sidedata.sidedata import Type

from vkssim.frames.decode.description import _passes, side_data

from ..support.children import in_child
from ..support.clips import write
from ..support.commands import python_process
from .encoding import encode_frames, moving_frames, noise_planes, video_frame

WIDTH, HEIGHT = 64, 48
PROFILE = bytes(128)
EXIF = struct.pack("<4sIHHHIII", b"II*\0", 8, 1, 0x112, 3, 1, 5, 0)
"""The rows and columns are exchanged."""

ICC = "ICC_PROFILE"


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _png(*added: bytes, count: int = 1) -> bytes:
    """Return a PNG, or an APNG of more pictures, with chunks before the samples."""
    rows = zlib.compress(b"".join(b"\0" + row.tobytes() for row in noise_planes(3 * WIDTH, HEIGHT, "400", 8)[0]))
    control = struct.pack(">IIIIIHHBB", 0, WIDTH, HEIGHT, 0, 0, 1, 25, 0, 0)
    animated = [_chunk(b"acTL", struct.pack(">II", count, 0)), _chunk(b"fcTL", control)] if count > 1 else []
    more = [
        _chunk(b"fcTL", struct.pack(">I", 2 * number - 1) + control[4:]) + _chunk(b"fdAT", struct.pack(">I", 2 * number) + rows)
        for number in range(1, count)
    ]
    head = _chunk(b"IHDR", struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0))
    return b"".join([b"\x89PNG\r\n\x1a\n", head, *added, *animated, _chunk(b"IDAT", rows), *more, _chunk(b"IEND", b"")])


WITH_PROFILE = _chunk(b"iCCP", b"a name\0\0" + zlib.compress(PROFILE))


@in_child
def _png_in_mov(folder: Path) -> str:
    path = folder / "clip.mov"
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream("png", rate=25)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "rgb24"
        for number in range(3):
            packet = av.Packet(_png(WITH_PROFILE))
            packet.pts = packet.dts = number
            packet.time_base, packet.stream, packet.is_keyframe = Fraction(1, 25), stream, True
            container.mux(packet)
    return str(path)


def _element(name: str, data: bytes) -> bytes:
    return bytes.fromhex(name) + (1 << 56 | len(data)).to_bytes(8) + data


def _png_in_matroska(folder: Path) -> str:
    """Written here, because PyAV refuses to write it; other programs do."""
    bitmap = struct.pack("<IiiHH4sIiiII", 40, WIDTH, HEIGHT, 1, 24, b"MPNG", 0, 0, 0, 0, 0)
    size = _element("b0", bytes([WIDTH])) + _element("ba", bytes([HEIGHT]))
    codec = _element("86", b"V_MS/VFW/FOURCC") + _element("63a2", bitmap)
    track = _element("d7", b"\1") + _element("73c5", b"\1") + _element("83", b"\1") + codec + _element("e0", size)
    blocks = [_element("a3", struct.pack(">BhB", 0x81, 40 * number, 0x80) + _png(WITH_PROFILE)) for number in range(3)]
    cluster = _element("1f43b675", _element("e7", b"\0") + b"".join(blocks))
    segment = _element("18538067", _element("1654ae6b", _element("ae", track)) + cluster)
    return write(folder / "clip.mkv", _element("1a45dfa3", _element("4282", b"matroska")) + segment)


def _jpeg(folder: Path) -> str:
    planes = noise_planes(WIDTH, HEIGHT, "420", 8)
    data = Path(encode_frames(folder / "plain.jpg", [video_frame(WIDTH, HEIGHT, "yuvj420p", planes)], "mjpeg")).read_bytes()
    segments = {0xE1: b"Exif\0\0" + EXIF, 0xE2: b"ICC_PROFILE\0\1\1" + PROFILE}
    added = b"".join(struct.pack(">BBH", 0xFF, mark, len(text) + 2) + text for mark, text in segments.items())
    return write(folder / "clip.jpg", data[:2] + added + data[2:])


HDR = "master-display=G(13250,34500)B(7500,3000)R(34000,16000)WP(15635,16450)L(10000000,1):max-cll=1000,400"


def _hevc(folder: Path) -> str:
    frames = [frame.reformat(format="yuv420p10le") for frame in moving_frames(3, HEIGHT, WIDTH)]
    options = {"preset": "ultrafast", "x265-params": f"log-level=none:frame-threads=1:pools=none:{HDR}"}
    return encode_frames(folder / "clip.mkv", frames, "libx265", options=options)


def _turned(folder: Path) -> str:
    return encode_frames(folder / "clip.mp4", moving_frames(3, HEIGHT, WIDTH), "libx264", rotation=90)


def _sei(kind: int, data: bytes) -> bytes:
    return b"\0\0\0\1\6" + bytes((kind, len(data))) + data + b"\x80"


CAPTIONS = b"\xb5\0\x31GA94\3\xc1\xff\xfc\x94\x2c\xff"
"""One pair of bytes of CEA-608: ATSC A/53, part 4, 6.2.3."""
ASPECT = b"\xb5\0\x31DTG1\x41\xf8"
AMBIENT = struct.pack(">IHH", 3_140_000, 15_635, 16_450)


def _messages(folder: Path) -> str:
    """H.264 with supplemental messages in each frame."""
    path, plain = folder / "clip.h264", encode_frames(folder / "plain.h264", moving_frames(3, HEIGHT, WIDTH), "libx264")
    added = _sei(4, CAPTIONS) + _sei(4, ASPECT) + _sei(148, AMBIENT) + _sei(5, bytes(range(1, 24)))
    with av.open(plain) as container:
        stream = container.streams.video[0]
        packets = BitStreamFilterContext("h264_metadata=aud=insert", stream)
        units = [bytes(one) for packet in container.demux(stream) for one in packets.filter(packet if packet.size else None)]
    # after the access unit delimiter, which has six bytes
    path.write_bytes(b"".join(unit[:6] + added + unit[6:] for unit in units))
    return str(path)


def _stereo(folder: Path) -> str:
    frames = moving_frames(3, HEIGHT, WIDTH)
    return encode_frames(folder / "clip.mkv", frames, "libx264", options={"x264-params": "frame-packing=3"})


def _mpeg2(folder: Path) -> str:
    return encode_frames(folder / "clip.mpg", moving_frames(3, HEIGHT, WIDTH), "mpeg2video")


def _grain(folder: Path) -> str:
    options = {"preset": "12", "svtav1-params": "film-grain=40:film-grain-denoise=0:lp=1"}
    return encode_frames(folder / "clip.mp4", moving_frames(3, HEIGHT, WIDTH), "libsvtav1", options=options)


def _webp(folder: Path) -> str:
    planes = noise_planes(WIDTH, HEIGHT, "420", 8)
    data = Path(encode_frames(folder / "plain.webp", [video_frame(WIDTH, HEIGHT, "yuv420p", planes)], "libwebp")).read_bytes()

    def chunk(name: bytes, content: bytes) -> bytes:
        return name + struct.pack("<I", len(content)) + content

    head = bytes((0x20, 0, 0, 0)) + struct.pack("<I", WIDTH - 1)[:3] + struct.pack("<I", HEIGHT - 1)[:3]
    body = b"WEBP" + chunk(b"VP8X", head) + chunk(b"ICCP", PROFILE) + data[12:]
    return write(folder / "clip.webp", chunk(b"RIFF", body))


KINDS: dict[str, tuple[Callable[[Path], str], tuple[str, ...]]] = {
    "png": (lambda folder: write(folder / "clip.png", _png(WITH_PROFILE)), (ICC,)),
    "png with exif": (
        lambda folder: write(folder / "clip.png", _png(WITH_PROFILE, _chunk(b"eXIf", EXIF))),
        (ICC, "DISPLAYMATRIX"),
    ),
    "apng": (lambda folder: write(folder / "clip.apng", _png(WITH_PROFILE, count=3)), (ICC,)),
    "png in matroska": (_png_in_matroska, (ICC,)),
    "png in mov": (_png_in_mov, (ICC,)),
    "jpeg": (_jpeg, (ICC, "DISPLAYMATRIX")),
    "webp": (_webp, (ICC,)),
    "hdr": (_hevc, ("MASTERING_DISPLAY_METADATA", "CONTENT_LIGHT_LEVEL", "SEI_UNREGISTERED")),
    "turned": (_turned, ("DISPLAYMATRIX",)),
    "messages": (_messages, ("A53_CC", "AFD", "AMBIENT_VIEWING_ENVIRONMENT", "SEI_UNREGISTERED")),
    "stereo": (_stereo, ("STEREO3D",)),
    "mpeg2": (_mpeg2, ("GOP_TIMECODE",)),
    "film grain": (_grain, ("FILM_GRAIN_PARAMS",)),
}


def _first_frame(path: str) -> Any:
    with av.open(path) as container:
        container.streams.video[0].codec_context.options = {"export_side_data": "film_grain"}
        return next(container.decode(video=0))


@pytest.mark.parametrize("name", KINDS)
def test_clips_have_the_side_data(tmp_path: Path, name: str) -> None:
    make, kinds = KINDS[name]
    frame = _first_frame(make(tmp_path))
    assert [kind for kind in kinds if not _passes(frame, "sidedata", f"mode=select:type={Type[kind].value}")] == []


SCORE = """
import faulthandler, gc, sys

faulthandler.enable()
import vkssim

pictures = vkssim.PictureOptions(film_grain="off")  # which leaves its parameters in side data
for path in sys.argv[1:]:
    result = vkssim.score_files(path, path, features="float_ssim=scale=1", backend="cpu", pictures=pictures)
    print(path, {score for frame in result.frames for score in frame.metrics.values()} == {1.0})
    del result
    gc.collect()
print("end", flush=True)
"""


def test_no_side_data_ends_the_process(tmp_path: Path) -> None:
    paths = []
    for name, (make, _) in KINDS.items():
        folder = tmp_path / name
        folder.mkdir()
        paths.append(make(folder))
    result = python_process("-c", SCORE, *paths)
    assert result.stdout.decode().splitlines() == [*(f"{path} True" for path in paths), "end"], result.stderr.decode()
    assert result.returncode == 0


def test_a_kind_is_read_alone(tmp_path: Path) -> None:
    """Also beside a profile with metadata, and beside EXIF data, which PyAV 18 does not know."""
    frame = _first_frame(KINDS["png with exif"][0](tmp_path))
    matrix = side_data(frame, "DISPLAYMATRIX")
    assert matrix is not None
    assert np.frombuffer(matrix, np.int32)[[0, 1, 3, 4]].tolist() == [0, 1 << 16, 1 << 16, 0]
    assert side_data(frame, "CONTENT_LIGHT_LEVEL") is None
