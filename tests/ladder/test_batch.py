"""vkssim batch: what is scored, what is scored again, what becomes of a pair that cannot be."""

from __future__ import annotations

import csv
import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest
from click.testing import Result

from vkssim import errors, score_files, score_many
from vkssim.backends.vulkan import VulkanBackend
from vkssim.cli.batch import check_rows
from vkssim.engine import worker
from vkssim.errors import DeviceMemoryError
from vkssim.frames import open as frames_open
from vkssim.frames.decode.container import ContainerFile
from vkssim.frames.options import PictureOptions, Selection
from vkssim.maps.frames import png
from vkssim.metrics.plane_metrics import PlaneMetrics
from vkssim.report.numbers import finite
from vkssim.report.reading import read_report
from vkssim.types import Planes

from ..engine.running import pause_when, resume
from ..support.clips import raw_bytes, write, y4m_bytes
from ..support.commands import TINY, start_vkssim, succeed, vkssim, vkssim_process
from ..support.journals import frames, records
from ..support.pictures import clip
from ..support.waiting import PATIENCE
from .ladders import encode, ladder, lossless, manifest

pytestmark = pytest.mark.usefixtures("shared_device")

Rows = list[dict[str, Any]]

LONG = 96
"""Frames of a clip that is stopped on its way."""


@pytest.fixture
def rungs(tmp_path: Path) -> Rows:
    """A ladder of three rungs in `tmp_path`, and its manifest."""
    rows = ladder(tmp_path)
    manifest(tmp_path / "ladder.csv", rows)
    return rows


def _run(folder: Path, *words: str, name: str = "results.jsonl") -> Result:
    """Score `folder`/ladder.csv."""
    return vkssim("batch", str(folder / "ladder.csv"), "-o", str(folder / name), *(words or TINY))


def _batch(folder: Path, *words: str, name: str = "results.jsonl", code: int = 0) -> Rows:
    """Score `folder`/ladder.csv, and read the results."""
    result = _run(folder, *words, name=name)
    assert result.exit_code == code, result.output
    return _rows(folder / name)


def _rows(path: Path) -> Rows:
    return [json.loads(line) for line in path.read_text().splitlines()]


def _journal(folder: Path) -> Rows:
    return records(folder / "results.jsonl.journal")


# -- scores -----------------------------------------------------------------------------------------------------------


def test_a_row_sets_its_own_options(tmp_path: Path) -> None:
    """Its scores are those with the flags of these names; blanks around cells do not count."""
    rungs = ladder(tmp_path, crfs=(20, 30))
    first, second = (row["distorted"] for row in rungs)
    clips = tmp_path / rungs[0]["reference"], tmp_path / first
    (tmp_path / "own.csv").write_text(
        "reference, distorted, offset, scale, crop\n"
        + "".join(f"{clips[0].name}, {name}, {own}\n" for name, own in [(first, ", ,"), (first, "1, ,"), (second, ", 64x48,")])
        + f"{clips[0].name}, {first}, , , 64x48+2+2\n"
    )
    succeed("batch", str(tmp_path / "own.csv"), "-o", str(tmp_path / "own.jsonl"), *TINY, "-q")
    rows = _rows(tmp_path / "own.jsonl")
    expected = [
        score_files(*clips, features=TINY[3], backend=TINY[1]),
        score_files(*clips, features=TINY[3], backend=TINY[1], selection=Selection(offset=1)),
        score_files(clips[0], tmp_path / second, features=TINY[3], backend=TINY[1], pictures=PictureOptions(scale="64x48")),
        score_files(*clips, features=TINY[3], backend=TINY[1], pictures=PictureOptions(crop="64x48+2+2")),
    ]
    assert [row["float_ssim_mean"] for row in rows] == [report.pooled()["float_ssim"]["mean"] for report in expected]
    assert len({row["float_ssim_mean"] for row in rows}) == 4
    assert [row["frames"] for row in rows] == [6, 5, 6, 6]


@pytest.mark.parametrize(("column", "value"), [("offset", "one"), ("offset", "1.5"), ("scale", "big"), ("crop", "64")])
def test_an_option_of_a_row_that_is_not_possible(tmp_path: Path, rungs: Rows, column: str, value: str) -> None:
    manifest(tmp_path / "ladder.csv", [{**rungs[0], column: value}])
    result = _run(tmp_path)
    assert (result.exit_code, f"ladder.csv, line 2: {column}: " in result.stderr, value in result.stderr) == (2, True, True)


def test_offsets_are_found(tmp_path: Path) -> None:
    frames = clip(40, 64, 96)
    write(tmp_path / "ref.y4m", y4m_bytes(frames))
    write(tmp_path / "same.y4m", y4m_bytes(frames))
    write(tmp_path / "late.y4m", y4m_bytes(frames[2:]))
    manifest(tmp_path / "ladder.csv", [{"reference": "ref.y4m", "distorted": name} for name in ("same.y4m", "late.y4m")])
    rows = _batch(tmp_path, *TINY, "--find-offset")
    assert [(row["offset"], row["float_ssim_mean"], row["frames"]) for row in rows] == [(0, 1.0, 40), (-2, 1.0, 38)]


def test_a_page_and_limits_of_every_pair(tmp_path: Path, rungs: Rows) -> None:
    score = {row["crf"]: row["float_ssim_mean"] for row in _batch(tmp_path)}
    page = tmp_path / "page.html"
    result = _run(tmp_path, *TINY, "--fail-under", f"float_ssim={(score[20] + score[30]) / 2}", "--html", str(page))
    assert result.exit_code == 1
    assert "2 of 3 clips are below their limits (--fail-under): clip_30.mp4, clip_40.mp4\n" in result.stderr
    assert all(name in page.read_text() for name in ("clip_20.mp4", "clip_30.mp4", "clip_40.mp4"))
    assert _run(tmp_path, *TINY, "--html", str(page), "--ladder", "width").exit_code == 0
    assert '"name":"96"' in page.read_text()
    refused: list[tuple[tuple[str, ...], str]] = [
        (("--fail-under", "ssim=1"), "--fail-under: ssim is not scored"),
        (("--ladder", "crf"), "give --html as well"),
        (("--ladder", "preset", "--html", str(page)), "--ladder preset: no such column. The labels of the manifest are crf"),
    ]
    for words, message in refused:
        result = _run(tmp_path, *words)
        assert (result.exit_code, message in result.stderr) == (2, True), result.stderr


def test_the_table_shows_labels_rates_and_low_scores(tmp_path: Path, rungs: Rows) -> None:
    result = _run(tmp_path)
    rows = _rows(tmp_path / "results.jsonl")
    words = result.stdout.replace("┃", " ").split()
    assert all(head in words for head in ("distorted", "crf", "kbit/s", "p5", "min"))
    for row in rows:
        shown = [cell.strip() for line in result.stdout.splitlines() if row["distorted"] in line for cell in line.split("│")]
        values = (f"{row[f'float_ssim_{pooling}']:.6f}" for pooling in ("mean", "p5", "min"))
        assert {str(row["crf"]), f"{row['measured_kbps']:,.0f}", *values} <= set(shown)


@pytest.mark.parametrize("backend", ["vulkan", "cpu"])
def test_from_python_the_reference_is_decoded_once(tmp_path: Path, rungs: Rows, decoded: Counter[str], backend: str) -> None:
    pairs = [(tmp_path / row["reference"], tmp_path / row["distorted"]) for row in rungs]
    found = list(score_many(pairs, backend=backend, features="float_ssim=scale=1"))
    assert decoded == {"clip.mkv": 6, "clip_20.mp4": 6, "clip_30.mp4": 6, "clip_40.mp4": 6}
    assert sorted(pair.number for pair in found) == [0, 1, 2]
    for pair in found:
        assert pair.scores().frames == score_files(*pairs[pair.number], backend=backend, features="float_ssim=scale=1").frames


def test_more_clips_than_can_be_in_step(tmp_path: Path, decoded: Counter[str]) -> None:
    luma = clip(3, 32, 32)
    reference = lossless(tmp_path / "clip.mkv", luma)
    rows = [{"reference": reference, "distorted": lossless(tmp_path / f"{n}.mkv", luma)} for n in range(10)]
    manifest(tmp_path / "ladder.csv", rows)
    assert [row["float_ssim_mean"] for row in _batch(tmp_path)] == [1.0] * 10
    assert decoded["clip.mkv"] == 6, "eight in step, then two"


def test_a_shorter_rung_ends_alone(tmp_path: Path, rungs: Rows, capsys: pytest.CaptureFixture[str]) -> None:
    rungs[1]["distorted"] = encode(tmp_path / "short.mp4", clip(4, 64, 96), crf="30")
    manifest(tmp_path / "ladder.csv", rungs)
    rows = _batch(tmp_path)
    assert [row["frames"] for row in rows] == [6, 4, 6]
    assert "short.mp4 is shorter" in rows[1]["warnings"]
    check_rows([{"distorted": "a.mp4", "warnings": text, "error": None} for text in ("a.mp4 is shorter", "hm")], "x.csv")
    assert capsys.readouterr().err == "vkssim: warning: a.mp4 is shorter\nvkssim: warning: a.mp4: hm\n"
    rows = _batch(tmp_path, *TINY, "--strict", code=1)
    assert [row["error_type"] for row in rows] == [None, "ThresholdError", None]
    assert rows[1]["frames"] == 4, "its scores are kept"


def test_selection_is_that_of_score(tmp_path: Path, rungs: Rows) -> None:
    rows = _batch(tmp_path, *TINY, "--subsample", "2", "--frame_skip_ref", "1", "--frame_skip_dist", "1")
    assert [row["frames"] for row in rows] == [3, 3, 3]
    assert rows[0]["float_ssim_mean"] > 0.9


def test_raw_files_are_described_by_row_or_by_flag(tmp_path: Path) -> None:
    rows = []
    for width, pixel_format in ((32, "420"), (40, "444")):
        luma = clip(3, 24, width)
        files = [write(tmp_path / f"{width}{role}.yuv", raw_bytes(luma, pixel_format)) for role in "abc"]
        rows += [
            {"reference": files[0], "distorted": other, "width": width, "pixel_format": pixel_format} for other in files[1:]
        ]
    rows[0]["width"] = ""
    manifest(tmp_path / "ladder.csv", rows)
    found = _batch(tmp_path, *TINY, "-w", "32", "-h", "24", "-b", "8")
    assert [(row["width"], row["float_ssim_mean"]) for row in found] == [(32, 1.0), (32, 1.0), (40, 1.0), (40, 1.0)]
    assert [row["measured_kbps"] for row in found] == [None] * 4


# -- pairs that cannot be scored --------------------------------------------------------------------------------------


def test_a_bad_file_is_a_row_with_its_error(tmp_path: Path, rungs: Rows) -> None:
    write(tmp_path / "garbage.mp4", bytes(5000))
    other_size = lossless(tmp_path / "size.mkv", clip(2, 32, 96))
    bad = [{**rungs[0], "distorted": name} for name in ("absent.mp4", "garbage.mp4", other_size)]
    manifest(tmp_path / "ladder.csv", [bad[0], *rungs, *bad[1:], {**rungs[0], "reference": "gone.mkv"}])
    result = _run(tmp_path, *TINY, "--fail-under", "float_ssim=1")
    assert result.exit_code == 1
    assert "4 of 7 pairs failed" in result.stderr
    assert "3 of 3 clips are below their limits" in result.stderr, "limits hold for the pairs that were scored"
    assert "Traceback" not in result.output
    rows = _rows(tmp_path / "results.jsonl")
    assert [row["error_type"] is None for row in rows] == [False, True, True, True, False, False, False]
    assert {row["error_type"] for row in rows} <= {None, *errors.__all__}
    reasons = ("absent.mp4 cannot be read", "garbage.mp4", "must be alike", "gone.mkv")
    for row, words in zip([rows[0], *rows[4:]], reasons, strict=True):
        assert words in row["error"]
        assert row["float_ssim_mean"] is None


def test_no_reference_is_opened_for_files_that_are_not_there(
    tmp_path: Path, rungs: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    begin = ContainerFile.__init__

    def note(self: ContainerFile, path: str, *more: Any, **options: Any) -> None:
        opened.append(Path(path).name)
        begin(self, path, *more, **options)

    monkeypatch.setattr(ContainerFile, "__init__", note)
    manifest(tmp_path / "ladder.csv", [{**rungs[0], "distorted": f"absent{number}.mp4"} for number in range(12)])
    rows = _batch(tmp_path, code=1)
    assert [row["error"] for row in rows] == [
        f"{tmp_path}/absent{number}.mp4 cannot be read: No such file or directory" for number in range(12)
    ]
    assert {row["error_type"] for row in rows} == {"InputError"}
    assert opened == []
    manifest(tmp_path / "ladder.csv", [{**rungs[0], "distorted": "absent0.mp4"}, rungs[1]])
    assert [row["frames"] for row in _batch(tmp_path, code=1)] == [None, 6]
    assert opened == ["clip.mkv", "clip_30.mp4"]


def test_scores_before_the_end_of_a_broken_reference_are_of_each_pair(tmp_path: Path) -> None:
    luma = clip(4, 32, 32)
    write(tmp_path / "reference.y4m", y4m_bytes(luma)[:-100])
    names = [Path(write(tmp_path / f"{step}.y4m", y4m_bytes(luma // step * step))).name for step in (8, 32, 64)]
    manifest(tmp_path / "ladder.csv", [{"reference": "reference.y4m", "distorted": name} for name in names])
    rows = _batch(tmp_path, code=1)
    assert [(row["error_type"], row["frames"]) for row in rows] == [("TruncatedInputError", 3)] * 3
    means = [row["float_ssim_mean"] for row in rows]
    assert means == sorted(set(means), reverse=True)


def test_failed_pairs_are_tried_again_and_no_others(tmp_path: Path, rungs: Rows, decoded: Counter[str]) -> None:
    late = (tmp_path / "clip_30.mp4").rename(tmp_path / "late.mp4")
    assert [row["error"] is None for row in _batch(tmp_path, code=1)] == [True, False, True]
    late.rename(tmp_path / "clip_30.mp4")
    decoded.clear()
    assert [row["error"] for row in _batch(tmp_path)] == [None] * 3
    assert set(decoded) == {"clip.mkv", "clip_30.mp4"}


def test_a_pair_too_large_for_the_device_is_that_pairs(tmp_path: Path, rungs: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    begin = VulkanBackend.__init__

    def refuse(self: VulkanBackend, planes: Sequence[PlaneMetrics], **options: Any) -> None:
        if planes[0].format.width == 48:
            raise DeviceMemoryError("too large in this test")
        begin(self, planes, **options)

    monkeypatch.setattr(VulkanBackend, "__init__", refuse)
    large = lossless(tmp_path / "large.mkv", clip(1, 32, 48))
    manifest(tmp_path / "ladder.csv", [{"reference": large, "distorted": large, "crf": 0}, *rungs])
    rows = _batch(tmp_path, "--feature", "float_ssim=scale=1", code=1)
    assert [row["error_type"] for row in rows] == ["DeviceMemoryError", None, None, None]


def test_no_device_is_no_failure_of_a_pair(tmp_path: Path, rungs: Rows) -> None:
    result = _run(tmp_path, "--device", "voodoo", "--feature", "float_ssim", name="r.csv")
    assert (result.exit_code, "voodoo" in result.stderr) == (3, True)
    assert (tmp_path / "r.csv.journal").read_text() == ""


# -- going on ---------------------------------------------------------------------------------------------------------


def test_labels_may_change(tmp_path: Path, rungs: Rows, decoded: Counter[str]) -> None:
    _batch(tmp_path)
    decoded.clear()
    manifest(tmp_path / "ladder.csv", [{**row, "codec": "avc"} for row in reversed(rungs)])
    assert [(row["crf"], row["codec"]) for row in _batch(tmp_path)] == [(40, "avc"), (30, "avc"), (20, "avc")]
    assert not decoded


@pytest.mark.parametrize(
    "words", [("--subsample", "2"), ("--feature", "float_ssim=enable_lcs=true"), ("--strict",), ("-w", "96")], ids=str
)
def test_other_options_score_anew(tmp_path: Path, rungs: Rows, decoded: Counter[str], words: tuple[str, ...]) -> None:
    _batch(tmp_path)
    decoded.clear()
    changed = words if "--feature" in words else (*TINY[2:], *words)
    _batch(tmp_path, "--backend", "cpu", *changed)
    assert len(decoded) == 4
    assert len(_journal(tmp_path)) == 6


def test_what_has_changed_is_scored_anew(tmp_path: Path, rungs: Rows, decoded: Counter[str]) -> None:
    """A file, or a picture of a sequence."""
    for role in "ab":
        for number, picture in enumerate(clip(3, 32, 32)):
            png(tmp_path / f"{role}{number}.png", np.repeat(picture[:, :, None], 3, axis=2))
    manifest(tmp_path / "ladder.csv", [*rungs, {"reference": "a%d.png", "distorted": "b*.png"}])
    _batch(tmp_path)
    film, pictures = {"clip.mkv", "clip_40.mp4"}, {"a%d.png", "b*.png"}
    for name, scored in (("clip_40.mp4", film), ("a0.png", pictures), ("b2.png", pictures), ("ladder.csv", set())):
        os.utime(tmp_path / name, (1, 1))
        decoded.clear()
        _batch(tmp_path)
        assert set(decoded) == scored, name


def test_no_damage_to_the_journal_gives_another_table(tmp_path: Path, rungs: Rows) -> None:
    """What is before it stays, and the rest is scored again. tests/storage/test_checked_journal.py changes every bit."""
    first = _batch(tmp_path)
    path = tmp_path / "results.jsonl.journal"
    whole = path.read_bytes()
    places = [whole.index(b'"frames":[[') + 12]
    while (place := whole.find(b'"mean":0.', places[-1])) >= 0:
        places.append(place + 10)
    assert len(places) == 4
    for place in places:
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        result = _run(tmp_path)
        assert result.exit_code == 0
        told = r" is damaged after \d+ records? and \d+ frames?; what is missing is scored again"
        assert re.search(f"note: {path}{told}", result.stderr)
        assert _rows(tmp_path / "results.jsonl") == first
        assert len(_journal(tmp_path)) == 3


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A manifest of a short pair and two long ones with one reference, and what comes of it."""
    folder = tmp_path_factory.mktemp("undisturbed")
    luma = np.concatenate([clip(8, 64, 96)] * (LONG // 8))
    for name, data in (("r.y4m", luma), ("8.y4m", luma // 8 * 8), ("32.y4m", luma // 32 * 32), ("short.y4m", luma[:4])):
        write(folder / name, y4m_bytes(data))
    pairs = ("short.y4m", "short.y4m"), ("r.y4m", "8.y4m"), ("r.y4m", "32.y4m")
    manifest(folder / "ladder.csv", [dict(zip(("reference", "distorted"), pair, strict=True)) for pair in pairs])
    _batch(folder)
    return folder


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_stopped_and_started_again(tmp_path: Path, undisturbed: Path, number: signal.Signals) -> None:
    """Signalled when a pair is done and two are on their way, whose reference is decoded once: these continue.

    The table is that of an undisturbed run.
    """
    words = ("batch", str(undisturbed / "ladder.csv"), "-o", str(tmp_path / "results.jsonl"), *TINY)
    process = start_vkssim(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    journal = tmp_path / "results.jsonl.journal"
    processes = pause_when(process, lambda: records(journal) and frames(journal) > 20)
    process.send_signal(number)
    resume(processes)
    _, told = process.communicate(timeout=PATIENCE)
    assert process.returncode == (130 if number == signal.SIGINT else -number)
    assert b"Traceback" not in told
    stopped = b"stopped with 1 of 3 pairs done; the same command continues from there"
    assert (stopped in told) == (number == signal.SIGINT)
    before, done = frames(journal), records(journal)
    assert [row["distorted"] for row in done] == ["short.y4m"]
    assert before < 4 + 2 * LONG
    result = succeed(*words)
    assert f"note: the run continues after {before - 4} frames that an earlier run scored" in result.stderr
    assert frames(journal) == 4 + 2 * LONG, "none was scored twice, but for one of each pair, which is not written again"
    assert records(journal)[0] == done[0]
    assert _rows(tmp_path / "results.jsonl") == _rows(undisturbed / "results.jsonl")


# -- frames -----------------------------------------------------------------------------------------------------------


def test_frames_are_reports_in_their_folder(tmp_path: Path, rungs: Rows, decoded: Counter[str]) -> None:
    (tmp_path / "sub").mkdir()
    strange = tmp_path / "sub" / "=..%2F[b]é.mp4"
    (tmp_path / "clip_40.mp4").rename(strange)
    rungs[2]["distorted"] = f"sub/../sub/{strange.name}"
    manifest(tmp_path / "ladder.csv", rungs)
    frames = tmp_path / "new" / "frames"
    rows = _batch(tmp_path, *TINY, "--frames", str(frames))
    assert len(list(frames.iterdir())) == 3
    for row in rows:
        path = Path(row["report"])
        assert path.resolve().parent == frames.resolve()
        report = read_report(path)
        assert (report.pooled()["float_ssim"]["mean"], len(report.frames)) == (row["float_ssim_mean"], 6)
    Path(rows[1]["report"]).unlink()
    decoded.clear()
    assert [row["report"] for row in _batch(tmp_path, *TINY, "--frames", str(frames))] == [row["report"] for row in rows]
    assert set(decoded) == {"clip.mkv", "clip_30.mp4"}, "the pair whose report is gone"


# -- forms ------------------------------------------------------------------------------------------------------------


def test_all_forms_say_the_same(tmp_path: Path, rungs: Rows) -> None:
    for row, title in zip(rungs, ("=1+1", "-5", "plain"), strict=True):
        row |= {"title": title, "bitrate": "800.5", "take": "007"}
    manifest(tmp_path / "ladder.csv", [*rungs, {**rungs[0], "distorted": "absent"}])
    lines = _batch(tmp_path, code=1)
    for name in ("results.parquet", "results.csv"):
        (tmp_path / f"{name}.journal").write_bytes((tmp_path / "results.jsonl.journal").read_bytes())
        assert _run(tmp_path, name=name).exit_code == 1
    table = pyarrow.parquet.read_table(tmp_path / "results.parquet")
    assert table.to_pylist() == lines
    types = {field.name: str(field.type) for field in table.schema}
    assert [types[name] for name in ("crf", "bitrate", "take", "title", "frames", "error", "float_ssim_min")] == (
        ["int64", "double", "string", "string", "int64", "string", "double"]
    )
    with (tmp_path / "results.csv").open(newline="") as file:
        cells = list(csv.DictReader(file))
    assert [row["title"] for row in cells] == ["'=1+1", "'-5", "plain", "'=1+1"]
    assert [list(row) for row in cells] == [list(row) for row in lines]
    for row, expected in zip(cells, lines, strict=True):
        for name in ("float_ssim_mean", "frames", "crf", "error", "take"):
            assert row[name] == ("" if expected[name] is None else str(expected[name]))


@pytest.mark.parametrize("name", ["results.xlsx", "results", "absent/results.csv", "clip.mkv", "ladder.csv"])
def test_where_results_cannot_go(tmp_path: Path, rungs: Rows, name: str) -> None:
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    result = _run(tmp_path, name=name)
    assert (result.exit_code, f"{tmp_path / name}" in result.stderr) == (2, True)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_missing_library_is_named_before_anything_is_scored(
    tmp_path: Path, rungs: Rows, decoded: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    result = _run(tmp_path, name="r.parquet")
    assert (result.exit_code, "pip install 'vkssim[report]'" in result.stderr) == (2, True)
    assert not decoded


def test_an_unknown_feature_is_refused_before_anything_is_scored(tmp_path: Path, rungs: Rows) -> None:
    result = _run(tmp_path, "--feature", "psnr", name="r.csv")
    assert (result.exit_code, "unknown feature 'psnr'" in result.stderr) == (2, True)
    assert not (tmp_path / "r.csv.journal").exists()


def test_batches_left_by_a_failed_pair_are_free_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clip that fails to be read while its frames are on the device leaves nothing behind for the next."""
    luma = clip(40, 32, 32)
    for name in "abc":
        lossless(tmp_path / f"{name}.mkv", luma)
    following = ContainerFile._next

    def fail(self: ContainerFile, target: Planes | None) -> bool:
        if self.info.path.endswith("b.mkv") and self._position == 30:
            raise RuntimeError("in the middle")
        return following(self, target)

    monkeypatch.setattr(ContainerFile, "_next", fail)
    pairs = [("a.mkv", "b.mkv"), ("a.mkv", "c.mkv"), ("c.mkv", "a.mkv")]
    manifest(tmp_path / "ladder.csv", [dict(zip(("reference", "distorted"), pair, strict=True)) for pair in pairs])
    rows = _batch(tmp_path, "--feature", "float_ssim=scale=1", code=1)
    assert [row["error"] for row in rows] == ["in the middle", None, None]
    assert [row["float_ssim_mean"] for row in rows[1:]] == [1.0, 1.0]


def test_progress_is_of_frames(tmp_path: Path, rungs: Rows) -> None:
    words = ("batch", str(tmp_path / "ladder.csv"), "-o", str(tmp_path / "r.csv"), *TINY)
    ours, theirs = pty.openpty()
    try:
        process = vkssim_process(*words, stderr=theirs)
        told = os.read(ours, 1 << 16)
    finally:
        os.close(ours)
        os.close(theirs)
    assert process.returncode == 0
    assert b"frames/s" in told
    assert b"of 3 pairs are finished" in told


def test_quiet_says_nothing(tmp_path: Path, rungs: Rows) -> None:
    assert _run(tmp_path, *TINY, "-q").output == ""
    assert "clip_20.mp4" in _run(tmp_path).stdout


@pytest.mark.parametrize("backend", ["vulkan", "cpu"])
def test_rungs_of_several_sizes_and_depths_in_step(tmp_path: Path, rungs: Rows, backend: str) -> None:
    """Each format of frames has a backend of its own, and none is closed under another run."""
    names = [encode(tmp_path / f"{width}.mp4", clip(6, 32, width), crf="20") for width in (48, 64)]
    deep = tmp_path / "deep.y4m"
    write(deep, y4m_bytes(clip(6, 64, 96, bits=10), "420p10"))
    manifest(tmp_path / "ladder.csv", [{**rungs[0], "distorted": name} for name in (*names, deep.name)] + rungs)
    words = ("--scale", "distorted", "--planes", "all", "--backend", backend, "--feature", "float_psnr")
    rows = _batch(tmp_path, *words)
    formats = [(48, 32, 8), (64, 32, 8), (96, 64, 10), *[(96, 64, 8)] * 3]
    assert [(row["width"], row["height"], row["bitdepth"]) for row in rows] == formats
    for row in rows:
        files = [tmp_path / row[name] for name in ("reference", "distorted")]
        pictures = PictureOptions(scale="distorted")
        report = score_files(*files, features="float_psnr", backend=backend, planes="all", pictures=pictures)
        for name in ("float_psnr", "float_psnr_cb", "float_psnr_all"):
            pooled = finite(report.pooled()[name])
            assert {pooling: row[f"{name}_{pooling}"] for pooling in pooled} == pooled


def test_a_pair_without_memory_has_a_row_that_says_so(tmp_path: Path, rungs: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error of Python has no message of its own, and a row without a message would be one of a scored pair."""
    name = str(rungs[1]["distorted"])

    def open_file(path: str, *arguments: Any, **options: Any) -> Any:
        if path.endswith(name):
            raise MemoryError
        return frames_open.open_file(path, *arguments, **options)

    monkeypatch.setattr(worker, "open_file", open_file)
    rows = _batch(tmp_path, code=1)
    assert [row["error_type"] for row in rows] == [None, "HostMemoryError", None]
    assert "there is not enough memory" in rows[1]["error"]
