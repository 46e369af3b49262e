"""Inputs by URL: the same scores, only the necessary ranges, and no connection that the user did not request."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from vkssim.errors import InputError, ReadError, VkssimError
from vkssim.frames.open import can_reopen
from vkssim.frames.source import FrameSource
from vkssim.ladder.manifest import read_manifest
from vkssim.storage.inputs import input_states, sequence
from vkssim.storage.location import is_url, redact_url

from ..frames.encoding import encode_frames, noise_planes, video_frame
from ..frames.reading import describe, open_source, read, read_planes
from ..ladder.ladders import encode, lossless
from ..support.buckets import Bucket, put_in_place
from ..support.clips import raw_bytes, raw_flags, write, y4m_bytes
from ..support.commands import TINY, python_process, vkssim
from ..support.pictures import Picture, clip

LUMA = 32 * 24
FRAME = LUMA * 3 // 2
HEAD = 380  # bytes by which a file is recognised


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Bucket:
    return put_in_place(monkeypatch)


def _score(reference: str, distorted: str, *words: str) -> str:
    result = vkssim("score", "-r", reference, "-d", distorted, *TINY, "--json", "-q", *words)
    assert result.exit_code == 0, result.output
    return result.stdout


def _pair(folder: Path, kind: str) -> tuple[str, str, tuple[str, ...]]:
    """Two clips of a kind, and the flags that describe them."""
    lumas = [clip(6, 64, 96, bits=10 if kind == "raw10" else 8, seed=seed) for seed in range(2)]
    if kind in ("mp4", "mkv"):
        names = [encode(folder / f"{number}.{kind}", luma, crf="25") for number, luma in enumerate(lumas)]
        return str(folder / names[0]), str(folder / names[1]), ()
    form = y4m_bytes if kind == "y4m" else raw_bytes
    first, second = (write(folder / f"{number}.{kind}", form(luma)) for number, luma in enumerate(lumas))
    return first, second, () if kind == "y4m" else raw_flags(lumas[0], bits=10 if kind == "raw10" else 8)


@pytest.mark.parametrize("words", [(), ("--planes", "all"), ("--start", "2", "--subsample", "2")], ids=" ".join)
@pytest.mark.parametrize("kind", ["raw8", "raw10", "y4m", "mp4", "mkv"])
def test_a_url_scores_as_its_file(tmp_path: Path, kind: str, words: tuple[str, ...]) -> None:
    reference, distorted, described = _pair(tmp_path, kind)
    local = _score(reference, distorted, *described, *words)
    assert local.count("frameNum") >= 2
    by_url = _score(f"file://{reference}", f"file://{distorted}", *described, *words)
    assert by_url.count("file://") == 6
    assert by_url.replace("file://", "") == local


def test_a_picture_by_url(tmp_path: Path) -> None:
    """FFmpeg would open pictures by name; here it has to read the given data."""
    planes = noise_planes(32, 24, "400", 8)
    path = encode_frames(tmp_path / "a.png", [video_frame(32, 24, "gray", planes)], "png")
    with open_source(f"file://{path}") as source:
        np.testing.assert_array_equal(read(source), planes[0][None])


# -- how much is read -------------------------------------------------------------------------------------------------


def _stored(bucket: Bucket, luma: Picture, bits: int = 8) -> FrameSource:
    """Return a raw clip in the bucket."""
    bucket.pipe_file("clips/a.yuv", raw_bytes(luma))
    return open_source("s3://clips/a.yuv", describe(luma, bits=bits))


def test_of_a_raw_clip_only_the_planes_and_frames_asked_for_are_read(bucket: Bucket) -> None:
    luma = clip(9)
    with _stored(bucket, luma) as source:
        assert bucket.ranges == [(0, HEAD)]
        np.testing.assert_array_equal(read(source), luma)
    assert bucket.bytes_read == HEAD + 9 * LUMA, "chroma is not read"
    bucket.ranges.clear()
    with _stored(bucket, luma) as source:
        frames = read_planes(source, [3, 7], 3)
    np.testing.assert_array_equal([planes[0] for planes in frames], luma[[3, 7]])
    assert bucket.ranges[1:] == [(number * FRAME, (number + 1) * FRAME) for number in (3, 7)], "a range a frame"


def test_scoring_reads_each_plane_once(bucket: Bucket) -> None:
    luma = clip(9)
    for name in ("ref", "dis"):
        bucket.pipe_file(f"clips/{name}.yuv", raw_bytes(luma))
    _score("s3://clips/ref.yuv", "s3://clips/dis.yuv", *raw_flags(luma), "--frame_cnt", "5")
    assert bucket.bytes_read == 2 * (HEAD + 5 * LUMA)


def test_planes_of_padded_rows_and_odd_size(bucket: Bucket) -> None:
    luma = clip(2, 25, 33, bits=10)
    padded = np.zeros((2, 25, 48), np.uint16)
    with _stored(bucket, luma, 10) as source:
        assert source.read(range(2), [(plane,) for plane in padded[..., :33]]) == 2
    np.testing.assert_array_equal(padded[..., :33], luma)
    assert not padded[..., 33:].any()


def test_a_container_is_read_in_large_parts(bucket: Bucket, tmp_path: Path) -> None:
    lossless(tmp_path / "a.mkv", clip(6, 64, 96))
    data = (tmp_path / "a.mkv").read_bytes()
    bucket.pipe_file("clips/a.mkv", data)
    with open_source("s3://clips/a.mkv") as source, open_source(str(tmp_path / "a.mkv")) as local:
        opened = len(bucket.ranges)
        assert len(read(source)) == 6
        assert source.packets() == local.packets()
        assert source.clip_facts() == local.clip_facts()
        assert len(bucket.ranges) == opened, "nothing is read again for what is known of it"
    assert set(bucket.ranges[1:]) == {(0, len(data))}, "it is smaller than one"


# -- failures --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["none.yuv", "folder", "pipe"])
def test_what_is_no_file(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    if name == "pipe":
        import os

        os.mkfifo(tmp_path / name)
    with pytest.raises(InputError, match=rf"file://\S+/{name} cannot be read: (no such file|it is not an ordinary file)"):
        open_source(f"file://{tmp_path / name}")


def test_an_empty_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is empty"):
        open_source(f"file://{write(tmp_path / 'a.yuv', b'')}")


def test_a_raw_clip_that_fails_on_the_way_keeps_its_frames(bucket: Bucket) -> None:
    with _stored(bucket, clip(4)) as source:
        assert len(read(source, range(2))) == 2
        bucket.failure = PermissionError("https://user:secret@host/a?token=secret expired")
        assert len(read(source, range(2, 4))) == 0
    assert isinstance(source.problem, ReadError)
    assert "cannot be read on: PermissionError: https://…@host/a?… expired" in str(source.problem)


def test_a_raw_clip_that_shrinks(bucket: Bucket) -> None:
    luma = clip(3)
    with _stored(bucket, luma) as source:
        bucket.pipe_file("clips/a.yuv", raw_bytes(luma)[: FRAME + 9])
        assert len(read(source)) == 1
        assert f"became shorter while it was read, at byte {FRAME + 9}" in str(source.problem)


@pytest.mark.parametrize("kind", ["y4m", "mkv"])
def test_a_stream_that_fails_on_the_way_keeps_its_frames(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr("vkssim.storage.urls.STREAM_BLOCK", 1 << 16)
    luma = np.random.default_rng(0).integers(0, 255, (40, 64, 96), np.uint8)
    path = tmp_path / f"a.{kind}"
    if kind == "y4m":
        path.write_bytes(y4m_bytes(luma))
    else:
        lossless(path, luma)
    bucket.pipe_file(f"clips/{path.name}", path.read_bytes())
    with open_source(f"s3://clips/{path.name}") as source:
        bucket.failure = TimeoutError()
        assert 0 < len(read(source)) < 40
    assert isinstance(source.problem, ReadError)
    assert "TimeoutError" in str(source.problem)


def test_a_server_that_never_answers_is_one_line(bucket: Bucket) -> None:
    bucket.pipe_file("clips/a.mkv", b"\x1a\x45\xdf\xa3" + bytes(5000))
    bucket.failure = ConnectionError("nobody\nthere")
    result = vkssim("score", "-r", "s3://clips/a.mkv", "-d", "s3://clips/a.mkv", *TINY)
    assert result.exit_code == 2
    assert result.output == "vkssim: s3://clips/a.mkv cannot be read: ConnectionError: nobody there\n"


def test_a_missing_extra_is_named(tmp_path: Path) -> None:
    code = "import sys; sys.modules['fsspec'] = None; from vkssim.cli import main; main()"
    process = python_process("-c", code, "score", "-r", "s3://a/b", "-d", "s3://a/c", *TINY)
    assert process.returncode == 2
    assert b"s3:// needs fsspec" in process.stderr
    assert b"pip install 'vkssim[remote]'" in process.stderr


# -- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["http://a/b", "S3://a/b", "s3:/a/b", "ftp://a", "memory://a", "a", "-", "simplecache::s3://a/b"]
)
def test_what_is_no_url(name: str) -> None:
    assert not is_url(name)


def test_what_grants_access_is_not_shown() -> None:
    assert redact_url("https://user:secret@host/a.mp4?sig=secret#x").startswith("https://…@host/a.mp4?…")
    assert redact_url("https://host/a?sig=1") != redact_url("https://host/a?sig=2")
    assert redact_url(redact_url("https://host/a?sig=1")) == redact_url("https://host/a?sig=1")
    for harmless in ("s3://bucket/what?.yuv", "https://host/a.mp4", "/home/a@b/c?d", "a"):
        assert redact_url(harmless) == harmless


def test_credentials_stay_out_of_reports(tmp_path: Path, bucket: Bucket) -> None:
    luma = clip(2)
    bucket.pipe_file("key:secret@clips/a.yuv", raw_bytes(luma))
    url = "s3://key:secret@clips/a.yuv"
    assert "secret" not in _score(url, url, *raw_flags(luma))
    (tmp_path / "ladder.csv").write_text(f"reference,distorted\n{url},{url}\n")
    words = (str(tmp_path / "ladder.csv"), "-o", str(tmp_path / "out.csv"), "--urls", *raw_flags(luma), *TINY)
    result = vkssim("batch", *words, "--frames", str(tmp_path / "frames"))
    assert result.exit_code == 0, result.output
    written = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "ladder.csv"]
    assert len(written) == 3, "the table, its journal and the frames"
    for text in (result.output, *(path.read_text() + path.name for path in written)):
        assert "secret" not in text


def test_a_url_is_no_sequence_and_can_be_read_again() -> None:
    assert sequence("s3://a/frame_%04d.png") is None
    assert sequence("s3://a/frame_*.png") is None
    assert can_reopen("s3://a/b")


def test_the_state_of_a_url_is_its_size_and_version(bucket: Bucket) -> None:
    states = []
    for data in (b"a", b"b", b"bb"):
        bucket.pipe_file("clips/a", data)
        states += input_states("s3://clips/a")
    assert len(set(states)) == 3
    assert input_states("s3://clips/none") == [("s3://clips/none", None, None)]


# -- nothing that nobody asked for ------------------------------------------------------------------------------------


def _manifest(folder: Path, reference: str = "s3://clips/a.yuv") -> Path:
    path = folder / "ladder.csv"
    path.write_text(f"reference,distorted,mos\n{reference},b.yuv,3\n")
    return path


def test_a_manifest_names_urls_only_with_leave(tmp_path: Path, bucket: Bucket) -> None:
    luma = clip(2)
    bucket.pipe_file("clips/a.yuv", raw_bytes(luma))
    write(tmp_path / "b.yuv", raw_bytes(luma))
    path, target = str(_manifest(tmp_path)), tmp_path / "out.jsonl"
    words = ("batch", path, "-o", str(target), *raw_flags(luma), *TINY)
    for refused in (vkssim(*words), vkssim("correlate", *words[1:])):
        assert refused.exit_code == 2
        assert "names the URL s3://clips/a.yuv; with --urls" in refused.output
    assert not bucket.ranges
    with pytest.raises(InputError, match="`urls`"):
        read_manifest(_manifest(tmp_path))
    allowed = vkssim(*words, "--urls")
    assert allowed.exit_code == 0, allowed.output
    assert json.loads(target.read_text())["float_ssim_mean"] == 1.0


def test_a_manifest_by_url_leads_nowhere_else(bucket: Bucket) -> None:
    """What is relative to it is on its server; absolute paths are no files of this machine."""
    for name in ("b.yuv", "/etc/passwd", "../../b.yuv", "//host/b.yuv"):
        bucket.pipe_file("clips/ladder.csv", f"reference,distorted\n{name},b.yuv\n".encode())
        (pair,) = read_manifest("s3://clips/ladder.csv")
        assert pair.clips.reference == f"s3://clips/{name}"
    bucket.pipe_file("clips/ladder.csv", b"reference,distorted\ns3://other/a,b.yuv\n")
    with pytest.raises(InputError, match=r"s3://clips/ladder\.csv names the URL s3://other/a"):
        read_manifest("s3://clips/ladder.csv")
    (pair,) = read_manifest("s3://clips/ladder.csv", urls=True)
    assert pair.clips.paths == ("s3://other/a", "s3://clips/b.yuv")


def test_a_report_names_urls_only_with_leave(tmp_path: Path, bucket: Bucket) -> None:
    luma = clip(2, 64, 64)
    bucket.pipe_file("clips/a.yuv", raw_bytes(luma))
    url, page = "s3://clips/a.yuv", tmp_path / "page.html"
    (tmp_path / "scores.json").write_text(_score(url, url, *raw_flags(luma)))
    read_before = len(bucket.ranges)
    words = ("report", str(tmp_path / "scores.json"), "-o", str(page), *raw_flags(luma), "--backend", "cpu")
    assert vkssim(*words).exit_code == 0
    assert len(bucket.ranges) == read_before
    assert "--urls allows connections to the URLs of a report" in page.read_text()
    assert vkssim(*words, "--urls").exit_code == 0
    assert page.read_text().count("data:image/webp") == 3  # reference, distorted and map of the one moment


@pytest.mark.parametrize("text", ["#EXTM3U\n#EXTINF:9,\n{}\n#EXT-X-ENDLIST\n", "ffconcat version 1.0\nfile '{}'\n"])
def test_lists_by_url_are_not_followed(tmp_path: Path, text: str) -> None:
    path = tmp_path / encode(tmp_path / "a.mp4", clip(2, 64, 96))
    with pytest.raises(InputError, match="is a text, not a video"):
        open_source(f"file://{write(tmp_path / 'a.m3u8', text.format(path).encode())}")


def test_errors_are_those_of_the_package(bucket: Bucket, tmp_path: Path) -> None:
    """As a container whose first bytes alone are there."""
    bucket.pipe_file("clips/a.mp4", (tmp_path / encode(tmp_path / "a.mp4", clip(6, 64, 96))).read_bytes()[:600])
    with pytest.raises(VkssimError, match=r"s3://clips/a\.mp4"):
        open_source("s3://clips/a.mp4")
