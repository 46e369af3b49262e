"""Folders for results, local and by URL, and the files of a batch in them."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import pytest

from vkssim.errors import OptionError, OutputError
from vkssim.ladder import batch
from vkssim.storage.folder import Folder, check_output, write_output

from ..support.buckets import Bucket, put_in_place
from ..support.clips import raw_bytes, raw_flags, write
from ..support.commands import TINY, vkssim
from ..support.pictures import clip


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Bucket:
    return put_in_place(monkeypatch)


@pytest.fixture(params=["path", "file://", "s3://"])
def place(request: pytest.FixtureRequest, tmp_path: Path, bucket: Bucket) -> str:
    """A folder that is not there yet."""
    return {"path": str(tmp_path / "a" / "b"), "file://": f"file://{tmp_path}/a/b", "s3://": "s3://results/a/b"}[request.param]


def test_what_is_written_is_read(place: str) -> None:
    folder = Folder(place)
    assert folder.names() == set()
    assert folder.read("x.json") is None
    for data in (b"old", b"new"):
        folder.write("x.json", data)
        folder.write("ranges/000.json", data * 2)
    assert folder.names() == {"x.json", "ranges/000.json"}
    assert (folder.read("x.json"), folder.read("ranges/000.json"), folder.read("ranges/none")) == (b"new", b"newnew", None)


def test_links_and_unfinished_files_are_not_seen(tmp_path: Path) -> None:
    (tmp_path / "kept").write_bytes(b"1")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "link").symlink_to(tmp_path / "kept")
    (tmp_path / "folder" / ".vkssim-half").write_bytes(b"half")
    folder = Folder(tmp_path / "folder")
    folder.write("a", b"")
    assert folder.names() == {"a"}


def test_a_file_in_its_place(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "folder")
    (tmp_path / "folder").write_bytes(b"")
    for use in (folder.check, partial(folder.write, "a", b""), partial(folder.write, "b/c", b"")):
        with pytest.raises(OutputError, match="folder"):
            use()


def test_a_bucket_that_fails(bucket: Bucket) -> None:
    folder = Folder("s3://results/a")
    folder.write("x", b"1")
    bucket.failure = PermissionError("no right to it")
    with pytest.raises(OutputError, match="s3://results/a/x cannot be used for results: PermissionError: no right to it"):
        folder.read("x")


def test_https_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="can only be read"):
        Folder("https://user:secret@host/a").check()
    for use in (partial(check_output, "https://host/a.csv"), partial(write_output, b"", "https://host/a.csv")):
        with pytest.raises(OutputError, match=r"https://host/a\.csv can only be read; results go to a path, gs:// or s3://"):
            use()


@pytest.mark.parametrize("url", ["http://me:secret@host/a.csv", "memory://a/b.csv", "zip://a.csv::s3://results/all.zip"])
def test_results_do_not_go_to_urls_that_are_not_supported(url: str) -> None:
    with pytest.raises(OutputError, match="is a URL that is not supported; results go to a path, gs:// or s3://") as caught:
        check_output(url)
    assert "secret" not in str(caught.value)
    assert url.partition("://")[0] + "://" in str(caught.value)


def test_a_missing_library_is_named_beforehand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gcsfs", None)
    with pytest.raises(OptionError, match="gs:// needs gcsfs"):
        check_output("gs://bucket/a.csv")


# -- a batch ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def ladder(tmp_path: Path) -> str:
    luma = clip(3)
    write(tmp_path / "ref.yuv", raw_bytes(luma))
    for number in range(3):
        write(tmp_path / f"dis{number}.yuv", raw_bytes(clip(3, seed=number)))
    rows = "".join(f"ref.yuv,dis{number}.yuv\n" for number in range(3))
    return write(tmp_path / "ladder.csv", f"reference,distorted\n{rows}".encode())


def _batch(ladder: str, output: str, frames: str, *words: str) -> None:
    result = vkssim("batch", ladder, "-o", output, "--frames", frames, *raw_flags(clip(1)), *TINY, *words)
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_a_batch_to_a_bucket_is_that_to_a_folder(tmp_path: Path, bucket: Bucket, ladder: str, form: str) -> None:
    _batch(ladder, str(tmp_path / f"out.{form}"), str(tmp_path / "frames"))
    _batch(ladder, f"s3://results/out.{form}", "s3://results/frames")
    results = Folder("s3://results")
    assert results.names() == {f"out.{form}", *(f"frames/{path.name}" for path in (tmp_path / "frames").iterdir())}
    for path in (tmp_path / "frames").iterdir():
        assert results.read(f"frames/{path.name}") == path.read_bytes()
    _batch(ladder, f"file://{tmp_path}/again.{form}", f"file://{tmp_path}/frames")
    assert (tmp_path / f"again.{form}").read_bytes() == (tmp_path / f"out.{form}").read_bytes()
    if form != "parquet":
        table = results.read(f"out.{form}")
        assert table is not None
        assert table.replace(b"s3://results/", str(tmp_path).encode() + b"/") == (tmp_path / f"out.{form}").read_bytes()


def test_a_batch_to_a_bucket_goes_on(tmp_path: Path, bucket: Bucket, ladder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only pairs without a record, or without scores of their frames, are scored."""
    output, frames = "s3://results/out.csv", "s3://results/frames"
    _batch(ladder, output, frames)
    results = Folder("s3://results")
    whole = {name: results.read(name) for name in results.names()}
    lost = min(name for name in whole if name.startswith("frames/"))
    bucket.rm([f"/results/{lost}", "/results/out.csv"])
    scored: list[str] = []
    record = batch._record
    monkeypatch.setattr(batch, "_record", lambda key, *rest: scored.append(key) or record(key, *rest))
    _batch(ladder, output, frames)
    assert [key[:12] for key in scored] == [lost[-17:-5]]
    assert {name: results.read(name) for name in results.names()} == whole


def test_a_report_to_a_bucket(tmp_path: Path, bucket: Bucket, ladder: str) -> None:
    words = ("-r", str(tmp_path / "ref.yuv"), "-d", str(tmp_path / "dis1.yuv"), *raw_flags(clip(1)), *TINY, "-q")
    assert vkssim("score", *words, "-o", str(tmp_path / "a.csv")).exit_code == 0
    assert vkssim("score", *words, "-o", "s3://results/a.csv").exit_code == 0
    assert Folder("s3://results").read("a.csv") == (tmp_path / "a.csv").read_bytes()
    page = tmp_path / "a.html"
    assert vkssim("score", *words, "--html", str(page)).exit_code == 0
    assert vkssim("score", *words, "--html", "s3://results/a.html").exit_code == 0
    assert Folder("s3://results").read("a.html") == page.read_bytes()
    refused = vkssim("score", *words, "-o", "s3://results/a.csv", "--resume")
    assert refused.exit_code == 2
    assert "--resume is not possible" in refused.output


def test_a_result_does_not_overwrite_an_input_by_url(tmp_path: Path) -> None:
    clip_file = write(tmp_path / "a.csv", raw_bytes(clip(2)))
    words = ("-r", f"file://{clip_file}", "-d", clip_file, *raw_flags(clip(2)), *TINY)
    for target in (f"file://{clip_file}", clip_file):
        result = vkssim("score", *words, "-o", target)
        assert (result.exit_code, "would overwrite" in result.output) == (2, True)
