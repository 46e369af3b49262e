"""vkssim compare of many pairs: which belong together, what fell, and the verdict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vkssim.ladder.tables import COLUMNS, Row, read_table, render_rows
from vkssim.report import render
from vkssim.report.results import FrameScores, ScoreReport, pool
from vkssim.types import BackendInfo

from ..support.commands import fail, refuse, succeed

SCORES = {"a": [0.9, 0.8], "b": [0.95, 0.85], "c": [0.7, 0.7]}
FELL = {**SCORES, "b": [0.95, 0.75]}  # its mean by 0.05, its worst frame, 1, by 0.1
LIMIT = ("--max-drop", "float_ssim=0.04")


def report(name: str, folder: str) -> ScoreReport:
    return ScoreReport(f"{folder}r.mp4", f"{folder}{name}.mp4", 32, 24, 8, ("float_ssim",), BackendInfo("cpu", "", ""))


def results(path: Path, scores: dict[str, list[float]], folder: str = "", *, frames: bool = False, **labels: Any) -> str:
    """Results of pairs by the names of their clips, with the scores of every frame beside them on request."""
    rows: list[Row] = []
    for name, values in scores.items():
        of_pair = report(name, folder)
        of_pair.frames = [FrameScores(number, {"float_ssim": value}) for number, value in enumerate(values)]
        (path.parent / f"{path.stem}_frames").mkdir(exist_ok=True)
        file = path.parent / f"{path.stem}_frames" / f"{name}.json"
        file.write_text(render(of_pair, "json", "max"))
        pooled = {f"float_ssim_{pooling}": value for pooling, value in pool(of_pair.column("float_ssim")).items()}
        row = {**dict.fromkeys(COLUMNS), "reference": of_pair.reference, "distorted": of_pair.distorted, "crf": ord(name)}
        rows.append({**row, **labels, "frames": len(values), "report": str(file) if frames else None, **pooled})
    path.write_bytes(render_rows(rows, path.suffix))
    return str(path)


@pytest.mark.parametrize("form", [".parquet", ".csv", ".jsonl"])
def test_a_pair_that_fell_is_listed_in_every_form(tmp_path: Path, form: str) -> None:
    old, new = results(tmp_path / f"old{form}", SCORES), results(tmp_path / f"new{form}", FELL, "elsewhere/")
    listed = succeed("compare", old, new, "--max-drop", "float_ssim=0.06").stdout
    assert "pairs that fell" not in listed, "within its limit"
    failed = fail(
        1, "1 of 3 pairs fell too far: elsewhere/b.mp4: float_ssim mean drops by 0.050000", "compare", old, new, *LIMIT
    )
    assert "elsewhere/a.mp4" not in failed.stdout
    assert "elsewhere/b.mp4" in succeed("compare", old, new).stdout


def test_frames_have_limits_too(tmp_path: Path) -> None:
    """Of results with the scores of every frame, and of folders of reports."""
    old, new = (results(tmp_path / f"{name}.csv", scores, frames=True) for name, scores in (("old", SCORES), ("new", FELL)))
    for pair in ((old, new), (str(tmp_path / "old_frames"), str(tmp_path / "new_frames"))):
        succeed("compare", *pair, "--max-frame-drop", "float_ssim=0.11")
        fail(1, "b.mp4: float_ssim frame drops by 0.1", "compare", *pair, "--max-frame-drop", "float_ssim=0.09")
        (change,) = (
            pair for pair in json.loads(succeed("compare", *pair, "--json").stdout)["pairs"] if pair["name"] == "b.mp4"
        )
        assert change["scores"]["float_ssim"]["max_drop_frame"] == 1
    bare = results(tmp_path / "bare.csv", SCORES)
    refuse("--max-frame-drop needs the scores of every frame", "compare", old, bare, "--max-frame-drop", "float_ssim=1")


def test_lost_pairs_and_frames_meet_no_limit(tmp_path: Path) -> None:
    """A pair that is new, or failed before, is only named."""
    old = results(tmp_path / "old.csv", SCORES)
    fewer = results(tmp_path / "fewer.csv", {"a": SCORES["a"], "b": [0.95]})
    assert "c.mp4 is lost: not in" in succeed("compare", old, fewer).stderr
    failed = fail(1, "1 of 2 pairs fell too far", "compare", old, fewer, *LIMIT)
    assert "b.mp4: 1 frame lost" in failed.stderr
    assert f"1 pair lost, and lost pairs meet no limit: c.mp4: not in {fewer}" in failed.stderr
    (row,) = read_table(Path(results(tmp_path / "failed.csv", {"a": SCORES["a"]})))
    (tmp_path / "failed.csv").write_bytes(render_rows([{**row, "error": "no such file"}], ".csv"))
    refuse("so nothing can be compared", "compare", str(tmp_path / "failed.csv"), old, *LIMIT)
    more = results(tmp_path / "more.csv", {**SCORES, "d": [0.5]})
    assert f"only {more} has 1 pair: d.mp4" in succeed("compare", old, more, *LIMIT).stderr


def test_pairs_are_matched_by_their_labels_if_names_differ(tmp_path: Path) -> None:
    old = results(tmp_path / "old.csv", SCORES)
    text = Path(results(tmp_path / "new.csv", FELL)).read_text()
    (tmp_path / "new.csv").write_text(text.replace("b.mp4", "z.mp4").replace("a.mp4", "y.mp4").replace("c.mp4", "x.mp4"))
    fail(1, "1 of 3 pairs fell too far: z.mp4", "compare", old, str(tmp_path / "new.csv"), *LIMIT)
    other = results(tmp_path / "other.csv", {"q": [1.0]})
    refuse("no pair is in both", "compare", old, other)


def test_what_is_no_corpus(tmp_path: Path) -> None:
    old, empty = results(tmp_path / "old.csv", SCORES), tmp_path / "empty"
    empty.mkdir()
    refuse("has no reports", "compare", str(empty), str(empty))
    refuse("give two reports, or two results", "compare", old, str(tmp_path / "old_frames" / "a.json"))
    (tmp_path / "ladder.csv").write_text("reference,distorted\na,b\n")
    refuse("is not the results of `vkssim batch`", "compare", old, str(tmp_path / "ladder.csv"))
