"""`vkssim score` with several distorted clips: a small batch, with a row for each."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import pytest

from vkssim.cli import several
from vkssim.engine.journal import open_journal

from ..support.clips import raw_bytes, raw_flags, write
from ..support.commands import TINY, fail, succeed
from ..support.pictures import clip


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The words that score two clips, of which the second one is worse."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    luma = clip(3, 32, 32)
    clips = {"ref": luma, "first": luma // 2, "second": luma // 4}
    names = [write(tmp_path / f"{name}.yuv", raw_bytes(planes)) for name, planes in clips.items()]
    return ["score", *names, *raw_flags(luma), *TINY]


def _left(tmp_path: Path) -> list[Path]:
    return [path for path in (tmp_path / "state").rglob("*") if path.is_file()]


def test_the_table_has_a_row_for_each(tmp_path: Path, words: list[str]) -> None:
    """Each has the scores of a run of its own, and the limits hold for each."""
    page, table = tmp_path / "page.html", tmp_path / "scores.csv"
    shown = succeed(*words, "--html", str(page)).stdout
    assert shown.index("first.yuv") < shown.index("second.yuv")
    assert f"all rows: reference {words[1]}" in shown
    assert "second.yuv" in page.read_text()
    assert "Scores frame by frame" in page.read_text()
    assert _left(tmp_path) == []

    fail(1, "1 of 2 clips are below their limits (--fail-under): ", *words, "-o", str(table), "--fail-under", "float_ssim=0.6")
    rows = list(csv.DictReader(table.read_text().splitlines()))
    for row, name in zip(rows, words[2:4], strict=True):
        alone = succeed(*words[:2], *words[4:], "-d", name, "-q", "--print", "float_ssim", "--precision", "max").stdout
        assert float(row["float_ssim_mean"]) == float(alone)


def test_a_clip_that_cannot_be_read_fails_alone(tmp_path: Path, words: list[str]) -> None:
    result = fail(1, "1 of 3 pairs failed", *words, str(tmp_path / "missing.yuv"))
    assert "missing.yuv cannot be read" in result.stderr
    assert "second.yuv" in result.stdout


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--live", "--print", "float_ssim"), "--live, --print: possible with one distorted clip, and 2 are given"),
        (("--json",), "--json: possible with one distorted clip"),
        (("--resume", "-o", "a.csv"), "--resume: possible with one"),
        (("-o", "scores.json"), "scores.json does not end in .parquet, .csv, .jsonl"),
        (("-o", "a.csv", "-o", "b.csv"), "several distorted clips have one table"),
        (("-",), "- is standard input"),
        (("--fail-under", "vmaf=9"), "vmaf is not scored"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_refused_before_anything_is_scored(words: list[str], more: tuple[str, ...], message: str) -> None:
    fail(2, message, *words, *more)


def test_a_run_that_is_cut_off_continues(tmp_path: Path, words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is scored again, although no table was asked for."""

    def stop(*_arguments: object, **_named: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(several, "deliver_rows", stop)
        fail(130, "interrupted", *words)
    (journal,) = (path for path in _left(tmp_path) if path.suffix == ".journal")
    before = journal.read_bytes()
    with open_journal(journal.with_suffix(""), lambda note: None):  # as a run of the same clips with other options finds it
        succeed(*words, "--planes", "all")
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", lambda *_arguments, **_named: None)
        succeed(*words)
    assert journal.read_bytes() == before
