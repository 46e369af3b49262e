"""Test that too large inputs are refused before memory is taken for them, and that special files do not block."""

from __future__ import annotations

import json
import os
import socket
import struct
import threading
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as arrow
import pytest
from pyarrow import parquet

from vkssim import FrameScores
from vkssim.backends.cpu import CpuBackend
from vkssim.engine.journal import Journal
from vkssim.errors import FrameError, InputError, OptionError, OutputError
from vkssim.frames.options import RawDescription
from vkssim.ladder import manifest, tables
from vkssim.metrics.plane_metrics import FrameMetrics
from vkssim.report import reading, render
from vkssim.storage.atomic import check_writable
from vkssim.storage.folder import read_whole
from vkssim.types import FrameFormat
from vkssim.utils.limits import (
    LARGEST_REPORT_BYTES,
    LARGEST_TABLE_BYTES,
    LONGEST_OPTION,
    MAX_PIXELS,
    abbreviated,
    file_name,
)

from ..frames.reading import open_source
from ..report.reports import small_report
from ..support.clips import write, y4m_bytes
from ..support.commands import TINY, python_process, vkssim, vkssim_process
from ..support.pictures import clip

SIDE = 16384  # MAX_PIXELS is its square
LARGE = 768
MEMORY = 3 << 30
"""Of addresses: enough for the interpreter and its libraries, not for frames of SIDE."""

WITHIN = f"""
import json, resource, sys
resource.setrlimit(resource.RLIMIT_AS, ({MEMORY}, {MEMORY}))
from click.testing import CliRunner
from vkssim.cli import main
results = [CliRunner().invoke(main, words) for words in json.load(sys.stdin)]
print(json.dumps([(result.exit_code, result.stderr) for result in results]))
"""
"""Runs command lines one after the other, and prints how each ended and what it said."""


def _png(width: int, height: int) -> bytes:
    """A picture that claims a size and has no samples."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


# -- frames -----------------------------------------------------------------------------------------------------------


CLAIMS: list[tuple[bytes, str, tuple[str, ...]]] = [
    (f"YUV4MPEG2 W{SIDE} H{SIDE} C444p16\nFRAME\n".encode(), "within frame 0", ()),
    (f"YUV4MPEG2 W{SIDE} H{SIDE + 1}\nFRAME\n".encode(), f"the limit is {MAX_PIXELS}", ()),
    (b"YUV4MPEG2 W99999999 H99999999\nFRAME\n", "each side must be 1 to 32768", ()),
    (b"YUV4MPEG2 W16 H12 " + b"X" * 5000 + b"\n", "no complete YUV4MPEG2 header", ()),
    (_png(SIDE, SIDE + 1), "no frame can be decoded", ()),
    (_png(SIDE // 2, SIDE // 2), "no frame can be decoded", ()),
    (b"x", "ends at byte 1, within frame 0", ("-w", str(SIDE), "-h", str(SIDE), "-p", "444", "-b", "16")),
]


def test_claims_of_size_take_no_memory(tmp_path: Path) -> None:
    lines = []
    for number, (content, _, flags) in enumerate(CLAIMS):
        clip = write(tmp_path / f"clip{number}", content)
        lines.append(["score", "-r", clip, "-d", clip, *flags, *TINY])
    process = python_process("-c", WITHIN, stdin=json.dumps(lines).encode())
    assert process.returncode == 0, process.stderr
    for (code, said), (_, told, _) in zip(json.loads(process.stdout), CLAIMS, strict=True):
        assert (code, told in said) == (2, True), said


def test_size_of_arrays_has_the_same_limit() -> None:
    with pytest.raises(FrameError, match=f"{SIDE * 2 * SIDE} pixels; the limit is {MAX_PIXELS}"):
        FrameFormat.of_bits(2 * SIDE, SIDE, 8)
    assert FrameFormat.of_bits(SIDE, SIDE, 8).width == SIDE


def test_a_run_stays_within_its_memory(tmp_path: Path) -> None:
    """The difference that size makes, in a process of its own, on the device of the tests: the smaller clip comes first."""
    for side in (192, LARGE):
        clip = tmp_path / f"{side}.yuv"
        clip.touch()
        os.truncate(clip, 3 * side * side * 2)
    measured = f"""
import resource, vkssim
for side in (192, {LARGE}):
    vkssim.score_files(*[f"{{side}}.yuv"] * 2, raw=vkssim.RawDescription(side, side, "400", 16), features="float_ms_ssim")
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
    result = python_process("-c", measured, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    small, large = (int(peak) * 1024 for peak in result.stdout.split())
    assert large - small < 192 * LARGE * LARGE


# -- files that are no files ------------------------------------------------------------------------------------------


def test_pipe_that_nobody_writes_to_holds_up_no_batch(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "socket"))
    (tmp_path / "clip.y4m").write_bytes(b"YUV4MPEG2 W16 H12\nFRAME\n" + bytes(288))
    pairs = [("pipe", "clip.y4m"), ("clip.y4m", "pipe"), ("socket", "clip.y4m"), ("/dev/zero", "."), ("clip.y4m", "clip.y4m")]
    (tmp_path / "ladder.csv").write_text("reference,distorted\n" + "".join(f"{a},{b}\n" for a, b in pairs))
    with listener:
        result = vkssim_process("batch", str(tmp_path / "ladder.csv"), "-o", str(tmp_path / "out.jsonl"), *TINY)
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert result.returncode == 1
    assert [row["error_type"] for row in rows] == ["InputError"] * 4 + [None]
    assert "is not a regular file" in rows[0]["error"]


@pytest.mark.parametrize("name", ["/dev/zero", "/dev/full", "/dev/null", "/", "a\0b", "\ud800", "n" * 5000, "a\nb\udcff"])
def test_no_clip_and_no_table(name: str) -> None:
    with pytest.raises(InputError):
        open_source(name, RawDescription())
    with pytest.raises(InputError):
        reading.read_report(Path(name))
    with pytest.raises(InputError):
        tables.read_table(Path(name))


@pytest.mark.parametrize("name", ["n" * 300, "a\0b", "\ud800", "missing/out.json"])
def test_name_that_cannot_be_written_is_found_before_anything_is_scored(tmp_path: Path, name: str) -> None:
    with pytest.raises(OutputError):
        check_writable(tmp_path / name)


def test_read_whole_stops_at_its_limit(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"12345")
    assert read_whole(file, 5) == b"12345"
    with pytest.raises(InputError, match="the limit for such a file is 4"):
        read_whole(file, 4)
    with pytest.raises(InputError, match="the limit for such a file is 1000"):
        read_whole("/dev/zero", 1000)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=[b"from a pipe"])
    writer.start()
    assert read_whole(pipe, 100) == b"from a pipe"
    writer.join()


# -- tables -----------------------------------------------------------------------------------------------------------


def _table(path: Path, columns: dict[str, Any], **options: Any) -> Path:
    parquet.write_table(arrow.table(columns), path, **options)
    return path


def test_parquet_that_unpacks_to_far_more_than_its_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "LARGEST_TABLE_BYTES", 1 << 26)
    path = _table(tmp_path / "rows.parquet", {"a": np.ones((1 << 22) + 1)}, compression="zstd")
    assert path.stat().st_size < 1 << 20
    with pytest.raises(InputError, match="and 8388608 cells"):
        tables.read_table(path)
    path = _table(tmp_path / "texts.parquet", {"a": ["x" * (1 << 20)] * 100}, compression="zstd")
    assert path.stat().st_size < 1 << 20
    with pytest.raises(InputError, match="unpacks to 10"):
        tables.read_table(path)
    path = _table(tmp_path / "large.parquet", {f"c{n}": ["x" * (1 << 25)] for n in range(3)}, use_dictionary=False)
    with pytest.raises(InputError, match="unpacks to 10"):
        tables.read_table(path)


@pytest.mark.parametrize("values", [[[1, 2]], [{"x": 1}], [[[]]]])
def test_parquet_with_more_than_a_value_in_a_cell(tmp_path: Path, values: list[Any]) -> None:
    with pytest.raises(InputError, match=r"nested"):
        tables.read_table(_table(tmp_path / "t.parquet", {"a": values}))


def test_parquet_of_ordinary_types_is_read(tmp_path: Path) -> None:
    columns = {"reference": ["a", "a", None], "codec": arrow.array(["x", "y", "x"]).dictionary_encode(), "mos": [1.5, 2, None]}
    assert tables.read_table(_table(tmp_path / "t.parquet", columns)) == [
        {"reference": "a", "codec": "x", "mos": 1.5},
        {"reference": "a", "codec": "y", "mos": 2.0},
        {"reference": None, "codec": "x", "mos": None},
    ]


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("t.csv", b"," * 5000, "5001 columns; the limit is 4096"),
        ("t.csv", b"a,b\n" + b"1,2\n" * 60, "100 cells"),
        ("t.jsonl", b'{"a":1,"b":2}\n' * 60, "100 cells"),
        ("t.jsonl", b'{"a":1}\n{"b":1}\n{"c":1}\n{"d":1}\n{"e":1}\n' * 5, "100 cells"),
    ],
)
def test_text_with_too_many_cells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: bytes, told: str
) -> None:
    monkeypatch.setattr(manifest, "MAX_CELLS", 100)
    monkeypatch.setattr(tables, "MAX_CELLS", 100)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=told):
        tables.read_table(tmp_path / name)


def test_files_that_are_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = tmp_path / "long.parquet"
    long.touch()
    os.truncate(long, 1 << 40)
    for read in (tables.read_table, manifest.read_manifest, reading.read_report, Journal):
        with pytest.raises(InputError, match="bytes"):
            read(long)
    assert LARGEST_TABLE_BYTES < 1 << 40
    monkeypatch.setattr(reading, "MAX_REPORT_VALUES", 10)
    short = tmp_path / "report.json"
    short.write_text("[" + "{}," * 10 + "{}]")
    with pytest.raises(InputError, match="more than 10 values"):
        reading.read_report(short)


# -- texts ------------------------------------------------------------------------------------------------------------


def test_texts_of_options_have_a_longest() -> None:
    frame = FrameFormat.of_bits(64, 64, 8)
    with pytest.raises(OptionError, match=f"the limit is {LONGEST_OPTION}"):
        FrameMetrics(["float_ssim" * 1000], [frame])
    with pytest.raises(OptionError, match="33 features"):
        FrameMetrics(["float_ssim"] * 33, [frame])
    result = vkssim("score", "-r", "a", "-d", "b", "--fail-under", "x" * 5000 + "=1")
    assert (result.exit_code, f"the limit is {LONGEST_OPTION}" in result.stderr) == (2, True)


def test_what_an_error_repeats_is_cut() -> None:
    assert abbreviated("short") == "'short'"
    assert abbreviated("x" * 1000) == "'" + "x" * 79 + "… (1002 characters)"


def test_a_run_without_memory_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is called a fault of vkssim, and what was scored before is written."""
    clips = [write(tmp_path / name, y4m_bytes(clip(9, 16, 16))) for name in ("r.y4m", "d.y4m")]
    collect, calls = CpuBackend.collect, iter(range(1000))

    def fail(self: CpuBackend, batch: Any) -> Any:
        if next(calls):
            raise MemoryError
        return collect(self, batch)

    monkeypatch.setattr(CpuBackend, "collect", fail)
    scores = tmp_path / "scores.json"
    result = vkssim("score", "-r", clips[0], "-d", clips[1], *TINY, "-o", str(scores))
    assert (result.exit_code, "there is not enough memory. A run takes up to" in result.stderr) == (2, True)
    assert "unexpected" not in result.stderr
    assert 0 < len(json.loads(scores.read_text())["frames"]) < 9


@pytest.mark.parametrize("words", [("compare", "{0}", "{0}"), ("report", "{0}", "-o", "{1}")])
def test_a_score_that_no_metric_has(tmp_path: Path, words: tuple[str, ...]) -> None:
    report = small_report()
    report.frames = [FrameScores(n, {"float_ms_ssim": 0.5, "float_ssim": 0.125}) for n in range(2)]
    path = tmp_path / "scores.json"
    path.write_text(render(report, "json", "max").replace("0.125", "1e308"))
    result = vkssim(*(word.format(path, tmp_path / "page.html") for word in words))
    assert result.exit_code == 2
    assert "float_ssim of frame 0 is 1e+308; scores are within 1e+09 and its negative" in result.stderr


VIDEOS = {
    "MP4 or MOV": b"\0\0\0\x20ftypisom",
    "Matroska or WebM": b"\x1a\x45\xdf\xa3\x01\0\0\0",
    "Y4M": b"YUV4MPEG2 W16 H16 F25:1\n",
    "AVI": b"RIFF\xff\xff\0\0AVI LIST",
    "MPEG-TS": (b"G@\x11\x10\0" + b"\xff" * 183) * 4,
}


@pytest.mark.parametrize(
    "words",
    [
        ("compare", "{}", "{}"),
        ("report", "{}", "-o", "page.html"),
        ("bd-rate", "{}", "--anchor", "codec=a", "--test", "codec=b"),
        ("correlate", "{}"),
        ("batch", "{}", "-o", "results.csv"),
    ],
)
@pytest.mark.parametrize("form", VIDEOS)
def test_a_video_in_the_place_of_scores(tmp_path: Path, form: str, words: tuple[str, ...]) -> None:
    path = tmp_path / "clip.bin"
    path.write_bytes(VIDEOS[form] + bytes(1000))
    result = vkssim(*(word.format(path) for word in words))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "clip.bin is a video; score it first: `vkssim score" in result.stderr
    assert "MANIFEST.csv lists in its columns reference and distorted" in result.stderr


@pytest.mark.parametrize(
    ("content", "size", "message"),
    [
        # A video is known by its beginning, before its size matters.
        (VIDEOS["MP4 or MOV"], LARGEST_REPORT_BYTES + 1, r"is a video; score it first"),
        (
            bytes(range(255, 0, -1)),
            255,
            r"is not text in UTF-8: its byte 0 is invalid\. `vkssim score -o FILE.json` writes a report",
        ),
    ],
)
def test_what_is_no_text_in_the_place_of_a_report(tmp_path: Path, content: bytes, size: int, message: str) -> None:
    path = tmp_path / "scores.json"
    path.write_bytes(content)
    os.truncate(path, size)
    with pytest.raises(InputError, match=message):
        reading.read_report(path)


def test_a_report_may_begin_with_g(tmp_path: Path) -> None:
    """Text whose letters happen to lie as the packets of MPEG-TS do is no video."""
    path = tmp_path / "manifest.csv"
    path.write_bytes(b"G" * 1000)
    assert read_whole(path, 1000) == b"G" * 1000


def test_an_end_that_is_too_long_for_a_name_stays_whole() -> None:
    """Nothing is left to cut then; the file system refuses the name."""
    assert file_name("clip", "…" * 100) == "…" * 100
    assert file_name("clip" * 100, ".mkv") == ("clip" * 100)[:251] + ".mkv"
