"""Test the forms that a path is opened as, and the paths that are refused."""

from __future__ import annotations

import os
import threading
from contextlib import ExitStack
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import av
import numpy as np
import pytest

from vkssim.errors import InputError
from vkssim.frames.decode.hardware import HardwareDecoder
from vkssim.frames.open import is_container, open_both
from vkssim.frames.options import RawDescription

from ..support.children import in_child
from ..support.clips import raw_bytes, write, y4m_bytes
from ..support.pictures import clip
from .encoding import encode_frames, noise_planes, video_frame
from .reading import NOTHING_SAID, describe, open_source, read

LUMA = clip(3)
ENDINGS = {"jpeg2000": "jp2"}


def test_missing_file() -> None:
    with pytest.raises(InputError, match=r"absent.yuv cannot be read: No such file"):
        open_source("absent.yuv")


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("http://me:secret@host/a.mp4?key=secret", "a URL by http://"),
        ("ftp://host/a.mp4", "a URL by ftp://"),
        ("zip://a.mp4::s3://me:secret@clips/all.zip", "a chain of URLs"),
        ("simplecache::https://host/a.mp4?key=secret", "a chain of URLs"),
    ],
)
def test_url_of_a_scheme_that_is_not_read(url: str, kind: str) -> None:
    with pytest.raises(
        InputError, match=rf"is {kind}, which is not supported: .* file://, gs://, https://, s3://, which need the extra"
    ) as caught:
        open_source(url)
    assert "secret" not in str(caught.value)


def test_sound_alone(tmp_path: Path) -> None:
    path = tmp_path / "sound.mp3"
    _encode_silence(path)
    with pytest.raises(InputError, match=r"sound\.mp3 has no video stream$"):
        open_source(str(path))


@in_child
def _encode_silence(path: Path) -> None:
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mp3", rate=44100)
        silence = av.AudioFrame(format="s16p", layout="mono", samples=1152)
        silence.rate = 44100
        silence.planes[0].update(bytes(silence.planes[0].buffer_size))
        for frame in (silence, None):
            container.mux(stream.encode(frame))


@pytest.mark.parametrize("index_bytes", [0, 40], ids=["missing", "cut off"])
def test_mp4_without_its_index(tmp_path: Path, index_bytes: int) -> None:
    frames = [video_frame(64, 48, "yuv420p", noise_planes(64, 48, "420", 8, seed=seed)) for seed in range(9)]
    data = Path(encode_frames(tmp_path / "a.mp4", frames, "mpeg4")).read_bytes()
    cut = write(tmp_path / "cut.mp4", data[: data.index(b"moov") - 4 + index_bytes])
    with pytest.raises(InputError, match=r"cut\.mp4: the index \(moov\) is missing or damaged: the file is cut off, or"):
        open_source(cut)


@pytest.mark.parametrize(
    ("data", "raw", "refusal"),
    [
        (b"what is to be done:\r\n\t- all\n", NOTHING_SAID, "is a text, not a video"),
        (b"", NOTHING_SAID, "is empty"),
        (b"", describe(LUMA), "is empty"),
        (raw_bytes(LUMA), NOTHING_SAID, r"if it is raw YUV, give `width`, `height`, `pixel_format` and `bits`$"),
        (y4m_bytes(LUMA), RawDescription(width=64), "is Y4M and states a `width` of 32; `width=64` contradicts"),
        (y4m_bytes(LUMA), RawDescription(height=64), "is Y4M and states a `height` of 24; `height=64` contradicts"),
        (y4m_bytes(LUMA), RawDescription(bits=10), "is Y4M and states a `bits` of 8; `bits=10` contradicts"),
        (raw_bytes(LUMA), RawDescription(None, 24, "420", 8), "read as raw YUV, which needs .*`width`"),
        (raw_bytes(LUMA), RawDescription(32, None, "420", 8), "read as raw YUV, which needs .*`height`"),
        (raw_bytes(LUMA), RawDescription(32, 24, None, 8), "read as raw YUV, which needs .*`pixel_format`"),
        (raw_bytes(LUMA), RawDescription(32, 24, "420", None), "read as raw YUV, which needs .*`bits`"),
    ],
)
def test_files_that_are_refused(tmp_path: Path, data: bytes, raw: RawDescription, refusal: str) -> None:
    with pytest.raises(InputError, match=refusal):
        open_source(write(tmp_path / "clip", data), raw)


@pytest.mark.parametrize("kind", ["raw", "y4m"])
def test_named_pipe(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    data = raw_bytes(LUMA) if kind == "raw" else y4m_bytes(LUMA)
    writer = threading.Thread(target=path.write_bytes, args=(data,))
    writer.start()
    with open_source(str(path), describe(LUMA) if kind == "raw" else NOTHING_SAID) as source:
        assert source.info.frames is None
        assert not source.concurrent
        np.testing.assert_array_equal(read(source), LUMA)
    writer.join()


@pytest.mark.parametrize(
    "head",
    [
        b"\x1a\x45\xdf\xa3....",
        b"RIFF....AVI ",
        b"\0\0\0\x20ftypisom",
        b"\0\0\0\x08mdat",
        b"FLV\x01",
        b"DKIF\0\0",
        b"OggS",
        b"\x00\x00\x01\xba",
        (b"\x47\x40\x11\x10" + bytes(184)) * 3,
        b"\x89PNG\r\n\x1a\n",
        b"\xff\xd8\xff\xe0",
        b"II*\0",
        b"MM\0*",
        b"GIF89a",
        b"\x76\x2f\x31\x01\x02\0\0\0",  # OpenEXR
        b"#?RADIANCE\nFORMAT=",
        b"P5\n# of a camera\n64 48\n255\n",
        b"\0\0\0\x0cJXL \r\n\x87\n",
        b"\xff\x4f\xff\x51",
    ],
)
def test_first_bytes_of_containers_and_pictures(head: bytes) -> None:
    assert is_container(head[:380])


@pytest.mark.parametrize(
    ("codec", "pixel_format"),
    [
        ("ppm", "rgb24"),
        ("pgm", "gray"),
        ("pbm", "monow"),
        ("pam", "rgba"),
        ("dpx", "rgb48be"),
        ("dpx", "gbrp10le"),
        ("jpeg2000", "rgb24"),
        ("qoi", "rgb24"),
    ],
)
def test_a_picture_that_is_described_as_raw_says_what_it_is(tmp_path: Path, codec: str, pixel_format: str) -> None:
    data = _encode_picture(codec, pixel_format)
    with pytest.raises(InputError, match=rf"is {codec} and states a `width` of 64; `width=32` contradicts it"):
        open_source(write(tmp_path / f"clip.{ENDINGS.get(codec, codec)}", data), RawDescription(32, 24, "420", 8))


@in_child
def _encode_picture(codec: str, pixel_format: str) -> bytes:
    encoder: Any = av.CodecContext.create(codec, "w")
    encoder.width, encoder.height, encoder.pix_fmt, encoder.time_base = 64, 48, pixel_format, Fraction(1, 25)
    frame = av.VideoFrame(64, 48, pixel_format)
    frame.pts = 0
    return b"".join(bytes(packet) for packet in (*encoder.encode(frame), *encoder.encode(None)))


@pytest.mark.parametrize("head", [b"", bytes(380), b"\x10" * 380, b"\x47" * 100, b"\x47" * 380, raw_bytes(LUMA)[:380]])
def test_first_bytes_of_samples(head: bytes) -> None:
    assert not is_container(head)


def _failing(message: str) -> Any:
    raise InputError(message)


@pytest.mark.parametrize("hardware", [None, HardwareDecoder("cuda")], ids=["in turn", "side by side"])
def test_the_error_of_the_first_file_counts(hardware: HardwareDecoder | None) -> None:
    with ExitStack() as stack, pytest.raises(InputError, match="first"):
        open_both(stack, [partial(_failing, "first"), partial(_failing, "second")], hardware)


def test_the_other_file_is_closed_where_one_cannot_be_opened() -> None:
    waiting, closed, broken, other = threading.Event(), threading.Event(), partial(_failing, "broken"), Mock()
    other.close = closed.set

    def open_late() -> Any:
        waiting.wait()
        return other

    cases: list[list[Any]] = [[broken, open_late], [lambda: other, broken]]
    for openings in cases:
        closed.clear()
        with ExitStack() as stack, pytest.raises(InputError, match="broken"):
            open_both(stack, openings, HardwareDecoder("cuda"))
        waiting.set()
        assert closed.wait(10)
