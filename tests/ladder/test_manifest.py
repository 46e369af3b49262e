"""Manifests: what is read, and what is refused with its line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vkssim.errors import InputError
from vkssim.frames.options import RawDescription
from vkssim.ladder.manifest import read_manifest
from vkssim.ladder.tables import as_rows, check_labels


def _write(folder: Path, text: str, name: str = "ladder.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("start", ["", "\ufeff"], ids=["plain", "with a byte order mark"])
def test_csv(tmp_path: Path, start: str) -> None:
    text = start + 'reference,distorted,title,bitrate\na.mp4,"sub/b, c.mp4","two\nlines",800\n\n/abs/a.mp4,é.mp4,,\n'
    first, second = read_manifest(_write(tmp_path, text))
    assert first.clips.paths == (str(tmp_path / "a.mp4"), str(tmp_path / "sub/b, c.mp4"))
    assert first.labels == {"title": "two\nlines", "bitrate": "800"}
    assert (second.clips.reference, second.distorted) == ("/abs/a.mp4", "é.mp4")
    assert second.labels == {"title": "", "bitrate": ""}


def test_json_lines(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"reference": "a", "distorted": "b", "bitrate": 800.5, "hdr": True, "note": None},
        {"reference": "a", "distorted": "c", "width": 32, "height": 24, "pixel_format": 420, "bitdepth": "10"},
    ]
    path = _write(tmp_path, "\n\n".join(map(json.dumps, rows)), "ladder.jsonl")
    first, second = read_manifest(path, RawDescription(width=99, bits=8))
    assert first.labels == {"bitrate": 800.5, "hdr": True, "note": None}
    assert first.clips.raw == RawDescription(width=99, bits=8)
    assert second.clips.raw == RawDescription(32, 24, "420", 10)
    assert second.labels == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no rows; a manifest has a row for each pair, with columns reference and distorted"),
        ("reference,distorted\n", "has no rows"),
        ("ref,dist,bitrate\na,b,1\n", "; reference and distorted are needed. Rename ref to reference, dist to distorted"),
        ("reference,mos\na,1\n", "line 2: no column distorted. The columns are reference, mos"),
        ("reference,distorted\na,b\na,b,c\n", "line 3 has 3 cells, the header 2"),
        ("reference,distorted\na,\n", "line 2: distorted is ''; it must be the name of a file"),
        ("reference,distorted\na,-\n", "line 2: distorted is standard input"),
        ("reference,distorted,x,x\na,b,1,2\n", "more than one column 'x'"),
        ('reference,distorted\na,"b\n', "is not CSV"),
        ("reference,distorted,width\na,b,wide\n", "line 2: width is 'wide'; it must be a whole number over 0"),
        ("reference,distorted,bitdepth\na,b,11\n", "bitdepth is '11'; it must be one of 8, 9, 10, 12, 14, 16"),
        ("reference,distorted,pixel_format\na,b,nv12\n", "pixel_format is 'nv12'; it must be one of 400"),
    ],
)
def test_what_is_no_manifest(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_manifest(_write(tmp_path, text))
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / "ladder.csv"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2 is not JSON"),
        ("[1]", "line 2 is not an object"),
        ('{"reference": "a", "distorted": 5}', "distorted is '5'; it must be the name of a file"),
        ('{"reference": "a", "distorted": "b", "x": [1]}', "x is list; a label is text"),
        ('{"reference": "a", "distorted": "b", "x": 1e999}', "x is inf; numbers go up to"),
        ('{"reference": "a", "distorted": "b", "x": NaN}', "x is nan; numbers go up to"),
        ('{"reference": "a", "distorted": "b", "x": 9223372036854775808}', "x is 9.22e+18; numbers"),
        ('{"reference": "a\\u0000", "distorted": "b"}', "it must be the name of a file"),
        ("[" * 100_000, "line 2 is not JSON"),
        (
            '{"reference": "a", "distorted": "b", "x": 1, "distorted": "c", "x": 1}',
            "line 2 has more than one key 'distorted', 'x'",
        ),
    ],
)
def test_what_are_no_json_lines(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_manifest(_write(tmp_path, f'{{"reference": "a", "distorted": "b"}}\n{line}\n', "ladder.jsonl"))
    assert message in str(caught.value)


@pytest.mark.parametrize("column", ["reference", "distorted", "merge"])
@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("http://host/a.mp4", "a URL by http://"),
        ("memory://a.mp4", "a URL by memory://"),
        ("zip://a.mp4::s3://clips/all.zip", "a chain of URLs"),
        ("simplecache::https://host/a.mp4", "a chain of URLs"),
    ],
)
def test_urls_that_are_not_supported(tmp_path: Path, column: str, url: str, kind: str) -> None:
    """Nothing is scored, and the message has the URL as it was written; a file may have such a name."""
    path = _write(tmp_path, json.dumps({"reference": "a", "distorted": "b", column: url}), "ladder.jsonl")
    with pytest.raises(InputError) as caught:
        read_manifest(path, urls=True)
    assert f"line 1: {url} is {kind}, which is not supported: vkssim reads files, and URLs by" in str(caught.value)
    (tmp_path / url).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / url).touch()
    (pair,) = read_manifest(path)
    assert str(tmp_path / url) in (*pair.clips.paths, pair.merge)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_manifest(tmp_path / "none.csv")
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not text in UTF-8"):
        read_manifest(tmp_path / "binary.csv")


@pytest.mark.parametrize("label", ["frames", "error", "device", "measured_kbps", "float_ssim_mean", "distorted_fps", "scoring"])
def test_labels_that_results_have_themselves(tmp_path: Path, label: str) -> None:
    pairs = read_manifest(_write(tmp_path, f"reference,distorted,{label}\na,b,1\n"))
    with pytest.raises(InputError, match=f"column {label}, which is also the name of a column of the results; rename"):
        check_labels(pairs)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1", "-20", ""], [1, -20, None]),
        (["1", "2.5e3", "0.5"], [1.0, 2500.0, 0.5]),
        (["1", "007"], ["1", "007"]),
        (["1", "x"], ["1", "x"]),
        ([1, 2.5, None], [1.0, 2.5, None]),
        ([1, "x", True], ["1", "x", "True"]),
        ([True, None, False], [True, None, False]),
        (["", None], [None, None]),
    ],
)
def test_labels_have_one_type(tmp_path: Path, values: list[Any], expected: list[Any]) -> None:
    rows = [{"reference": "a", "distorted": "b", "x": value} for value in values]
    pairs = read_manifest(_write(tmp_path, "\n".join(map(json.dumps, rows)), "ladder.jsonl"))
    found = [row["x"] for row in as_rows(pairs, [{"error": None}] * len(pairs), [None] * len(pairs))]
    assert (found, list(map(type, found))) == (expected, list(map(type, expected)))
