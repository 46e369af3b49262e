"""What a path is taken for, and what is refused."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import numpy as np
import pytest

from vkssim.errors import InputError
from vkssim.frames.open import RawDescription, is_container, open_source

from ..clips import raw_bytes, write, y4m_bytes
from ..pictures import clip
from .reading import NOTHING_SAID, describe, read

LUMA = clip(3)


def test_missing_file() -> None:
    with pytest.raises(InputError, match=r"absent.yuv cannot be read: No such file"):
        open_source("absent.yuv", NOTHING_SAID)


def test_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        open_source(str(tmp_path), NOTHING_SAID)


@pytest.mark.parametrize("raw", [NOTHING_SAID, describe(LUMA)])
def test_empty_file(tmp_path: Path, raw: RawDescription) -> None:
    with pytest.raises(InputError, match="is empty"):
        open_source(write(tmp_path / "clip.yuv", b""), raw)


@pytest.mark.parametrize("missing", ["width", "height", "pixel_format", "bits"])
def test_raw_file_of_which_too_little_is_said(tmp_path: Path, missing: str) -> None:
    said = {"width": 32, "height": 24, "pixel_format": "420", "bits": 8}
    del said[missing]
    flag = "--bitdepth" if missing == "bits" else f"--{missing}"
    with pytest.raises(InputError, match=f"read as raw YUV, which needs {flag}"):
        open_source(write(tmp_path / "clip.yuv", raw_bytes(LUMA)), RawDescription(**said))


def test_unknown_file_of_which_nothing_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="if it is raw YUV, give --width, --height, --pixel_format and --bitdepth"):
        open_source(write(tmp_path / "clip.yuv", raw_bytes(LUMA)), NOTHING_SAID)


@pytest.mark.parametrize(
    ("raw", "contradiction"),
    [
        (RawDescription(width=64), "--width 64 contradicts"),
        (RawDescription(height=64), "--height 64 contradicts"),
        (RawDescription(bits=10), "--bitdepth 10 contradicts"),
    ],
)
def test_y4m_that_is_described_otherwise(tmp_path: Path, raw: RawDescription, contradiction: str) -> None:
    with pytest.raises(InputError, match=f"is Y4M and says .* itself; {contradiction}"):
        open_source(write(tmp_path / "clip.y4m", y4m_bytes(LUMA)), raw)


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
        (b"\x47" + bytes(187)) * 3,
        b"\x89PNG\r\n\x1a\n",
        b"\xff\xd8\xff\xe0",
        b"II*\0",
        b"MM\0*",
        b"GIF89a",
    ],
)
def test_first_bytes_of_containers(head: bytes) -> None:
    assert is_container(head[:377])


@pytest.mark.parametrize("head", [b"", bytes(377), b"\x10" * 377, b"\x47" * 100, raw_bytes(LUMA)[:377]])
def test_first_bytes_of_samples(head: bytes) -> None:
    assert not is_container(head)
