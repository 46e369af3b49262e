"""Scores of another tool beside those of a report: VMAF of libvmaf's log."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from ..ladder.ladders import ladder, manifest
from ..support.clips import raw_bytes, raw_flags, write
from ..support.commands import TINY, fail, succeed, vkssim
from ..support.pictures import clip

FRAMES = 4


TERMS = ("integer_adm2", "integer_adm_scale0", "integer_vif_scale3", "integer_motion2", "adm2", "vif_scale0", "motion")


def _log(path: Path, numbers: Iterable[int] = range(FRAMES), start: float = 90.0) -> str:
    """Write a file as libvmaf's tool does, with the terms of VMAF as several of its versions name them."""
    terms = dict.fromkeys(TERMS, 0.5)
    frames = [{"frameNum": n, "metrics": {**terms, "vmaf": start + n, "psnr_y": 40.25}} for n in numbers]
    path.write_text(json.dumps({"version": "3.0.0", "fps": 9.5, "frames": frames, "pooled_metrics": {}}))
    return str(path)


@pytest.fixture
def words(tmp_path: Path) -> tuple[str, ...]:
    """The words that score a pair, and write scores.json."""
    luma = clip(FRAMES, 32, 32)
    clips = write(tmp_path / "ref.yuv", raw_bytes(luma)), write(tmp_path / "dis.yuv", raw_bytes(luma // 2))
    return ("score", *clips, *raw_flags(luma), *TINY, "-o", str(tmp_path / "scores.json"))


def test_files_tables_and_pages_have_them(tmp_path: Path, words: tuple[str, ...]) -> None:
    page = tmp_path / "page.html"
    result = succeed(*words, "--merge", _log(tmp_path / "vmaf.json"), "--html", str(page))
    report = json.loads((tmp_path / "scores.json").read_text())
    assert [frame["metrics"]["vmaf"] for frame in report["frames"]] == [90.0, 91.0, 92.0, 93.0]
    assert [sorted(frame["metrics"]) for frame in report["frames"]] == [["float_ssim", "psnr_y", "vmaf"]] * FRAMES
    assert report["pooled_metrics"]["vmaf"]["mean"] == 91.5
    assert "vmaf" in result.stdout
    assert f"note: vmaf, psnr_y: from {tmp_path / 'vmaf.json'}" in result.stderr
    assert "vmaf" in page.read_text()


def test_limits_and_bare_values(tmp_path: Path, words: tuple[str, ...]) -> None:
    merge = (*words, "-q", "--merge", _log(tmp_path / "vmaf.json"))
    result = succeed(
        *merge, "--fail-under", "vmaf:min=90", "--fail-under", "psnr_y=40", "--print", "vmaf", "--print", "vmaf:p50"
    )
    assert result.stdout == "91.500000\n91.500000\n"
    result = fail(1, "mean of vmaf is 91.5, the limit is 92", *merge, "--fail-under", "vmaf=92", "--print", "float_ssim")
    assert result.stdout.startswith("0."), "what was asked for is printed all the same"
    fail(1, "mean of float_ssim is 0.", *merge, "--fail-under", "vmaf=90", "--fail-under", "float_ssim=1")
    names = "Available scores: float_ssim, "
    result = fail(2, names, *merge, "--print", "integer_adm2")
    assert set(result.stderr.partition(names)[2].strip().split(", ")) == {"vmaf", "psnr_y"}
    fail(2, "vmaf has no mean_db", *merge, "--fail-under", "vmaf:mean_db=9")

    _log(tmp_path / "vmaf.json", range(1, FRAMES))
    result = fail(2, "vmaf.json has no frame 0", *merge, "--fail-under", "vmaf=92", "--print", "vmaf")
    assert result.stdout == ""


def test_a_log_without_vmaf_has_no_terms_of_it(tmp_path: Path, words: tuple[str, ...]) -> None:
    """These are then the scores that were asked for."""
    frames = [{"frameNum": n, "metrics": {"integer_adm2": 0.5}} for n in range(FRAMES)]
    (tmp_path / "adm.json").write_text(json.dumps({"frames": frames}))
    assert succeed(*words, "-q", "--merge", str(tmp_path / "adm.json"), "--print", "integer_adm2").stdout == "0.500000\n"


def test_compare_shows_them(tmp_path: Path, words: tuple[str, ...]) -> None:
    vkssim(*words, "--merge", _log(tmp_path / "vmaf.json"))
    (tmp_path / "scores.json").rename(tmp_path / "before.json")
    vkssim(*words, "--merge", _log(tmp_path / "vmaf.json", start=88.0))
    names = str(tmp_path / "before.json"), str(tmp_path / "scores.json")
    fail(1, "vmaf mean drops by 2", "compare", *names, "--max-drop", "vmaf=1")


def test_other_frames_are_an_error_and_the_scores_are_kept(tmp_path: Path, words: tuple[str, ...]) -> None:
    fail(2, "vmaf.json has no frame 0", *words, "--merge", _log(tmp_path / "vmaf.json", range(1, FRAMES)))
    frames = json.loads((tmp_path / "scores.json").read_text())["frames"]
    assert [list(frame["metrics"]) for frame in frames] == [["float_ssim"]] * FRAMES


@pytest.mark.parametrize(
    ("text", "said"), [(None, "cannot be read"), ("[]", "is no report"), ('{"frames": []}', "has no score")]
)
def test_a_file_that_is_no_log(tmp_path: Path, words: tuple[str, ...], text: str | None, said: str) -> None:
    if text is not None:
        (tmp_path / "vmaf.json").write_text(text)
    fail(2, said, *words, "--merge", str(tmp_path / "vmaf.json"))


def _rows(table: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(table.read_text().splitlines()))


def test_rows_of_a_manifest(tmp_path: Path) -> None:
    """The scores have columns, of which bd-rate makes curves; a row whose file lacks frames fails, and keeps its own scores."""
    rungs = [
        {**row, "codec": codec, "merge": f"{codec}_{row['crf']}.json"}
        for codec in "ab"
        for row in ladder(tmp_path, f"clip_{codec}", (18, 26, 34, 42))
    ]
    for place, row in enumerate(rungs):
        row["reference"] = rungs[0]["reference"]
        _log(tmp_path / row["merge"], range(6), start=90.0 - 5 * (place % 4) - place // 4)
    table = tmp_path / "results.csv"
    words = ("batch", manifest(tmp_path / "ladder.csv", rungs), "-o", str(table), *TINY)
    succeed(*words)
    rows = _rows(table)
    assert [float(row["vmaf_mean"]) for row in rows] == [92.5, 87.5, 82.5, 77.5, 91.5, 86.5, 81.5, 76.5]
    fail(1, "2 of 8 clips are below their limits", *words, "--fail-under", "vmaf=80")
    fail(2, "vmav is not scored", *words, "--fail-under", "vmav=80")
    result = succeed("bd-rate", str(table), "--anchor", "codec=a", "--test", "codec=b", "--score", "vmaf", "--json")
    assert json.loads(result.stdout)["deltas"][0]["score"] == "vmaf"
    _log(tmp_path / "a_18.json", range(5))
    fail(1, "a_18.json has no frame 5", *words)
    row = _rows(table)[0]
    assert "a_18.json has no frame 5" in row["error"]
    assert row["float_ssim_mean"]
    assert not row["vmaf_mean"]
