"""Reports written as JSON and read back."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from vkssim.errors import InputError
from vkssim.frames.options import PictureOptions, Selection
from vkssim.report import render
from vkssim.report.reading import read_report
from vkssim.report.results import FrameScores

from ..support.golden import FIXTURES
from .reports import small_record, small_report


def test_what_was_written_is_read(tmp_path: Path) -> None:
    report = small_report()
    report.notes, report.rate = ["distorted scaled"], 25.0
    report.selection, report.sync, report.version = Selection(3, 4, offset=-1, start="2s"), "pts", "0.0.9"
    report.pictures = PictureOptions("20x16+4+2", "reference", "lanczos", crop_reference="auto", turn_distorted=90)
    report.scoring = replace(small_record(), selection=report.selection, pictures=report.pictures)
    path = tmp_path / "scores.json"
    path.write_text(render(report, "json", "max"))
    found = read_report(path)
    names = "reference distorted width height bits names backend notes warnings rate selection sync pictures version scoring"
    for name in names.split():
        assert getattr(found, name) == getattr(report, name), name
    assert found.frames[0] == report.frames[0]
    assert [frame.index for frame in found.frames] == [0, 5]
    assert math.isnan(found.frames[1].metrics["float_ms_ssim"])


def test_reports_of_libvmaf_are_read() -> None:
    report = read_report(FIXTURES / "bbb_576x324.libvmaf.json")
    assert report.scoring is None
    assert len(report.frames) == 48
    assert report.pooled()["float_ssim"]["mean"] == pytest.approx(0.839040, abs=1e-5)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"frames": 5}',
        '{"frames": [{"frameNum": 0}]}',
        '{"frames": [{"frameNum": 0, "metrics": {"a": "b"}}]}',
        json.dumps({"frames": [{"frameNum": 0, "metrics": {"a": 1}}, {"frameNum": 1, "metrics": {"b": 1}}]}),
        "[" * 100_000,
        '{"frames": [{"frameNum": 1e999, "metrics": {"a": 1}}]}',
        f'{{"frames": [{{"frameNum": {10**400}, "metrics": {{"a": 1}}}}]}}',
        f'{{"frames": [{{"frameNum": 0, "metrics": {{"a": {10**400}}}}}]}}',
        '{"frames": [{"frameNum": -1, "metrics": {"a": 1}}]}',
        '{"frames": [], "scoring": []}',
        '{"frames": [], "scoring": {"version": "1"}}',
        '{"frames": [], "scoring": {"selection": {"subsample": 0}}}',
    ],
)
def test_anything_else_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "scores.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"scores\.json"):
        read_report(path)


def _file(path: Path, scores: Sequence[str], name: str = "float_ssim", rest: str = "") -> Path:
    """Write a file of scores with one frame for each text."""
    frames = ", ".join(f'{{"frameNum": {number}, "metrics": {{"{name}": {score}}}}}' for number, score in enumerate(scores, 1))
    path.write_text(f'{{"frames": [{frames}]{rest}}}')
    return path


NOT_FINITE = "scores are within 1e+09 and its negative, and null if they are infinite or do not exist"
NOT_A_NUMBER = "a score is a number, or null if there is none"
NOT_SIMILAR = "a similarity is within -1 to 1"


@pytest.mark.parametrize("name", ["float_ssim", "float_ms_ssim", "float_ssim_cb", "float_ms_ssim_all", "vmaf"])
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Infinity", NOT_FINITE),
        ("-Infinity", NOT_FINITE),
        ("1e400", NOT_FINITE),
        ("NaN", NOT_FINITE),
        ("true", NOT_A_NUMBER),
        ('"0.5"', NOT_A_NUMBER),
        ("[0.5]", NOT_A_NUMBER),
        ("2", NOT_SIMILAR),
        ("-5", NOT_SIMILAR),
        ("1.001", NOT_SIMILAR),
    ],
)
def test_a_score_that_cannot_be(tmp_path: Path, name: str, text: str, why: str) -> None:
    """Metrics of other tools may have any finite number."""
    path = _file(tmp_path / "scores.json", ["0.9", "0.8", text], name)
    if name == "vmaf" and why == NOT_SIMILAR:
        assert read_report(path).column(name)[2] == float(text)
        return
    with pytest.raises(InputError, match=re.escape(f"{name} of frame 3 is ")) as raised:
        read_report(path)
    assert why in str(raised.value)


@pytest.mark.parametrize("score", [-1.0, -0.25, 0.0, 1.0, 1.00005])
def test_a_similarity_that_can_be(tmp_path: Path, score: float) -> None:
    assert read_report(_file(tmp_path / "scores.json", [str(score), "null"])).column("float_ssim")[0] == score


def test_a_single_score_that_cannot_be_a_similarity(tmp_path: Path) -> None:
    """A pooled mean in dB says that the score is none in dB itself, and so does the record."""
    pooled = ', "pooled_metrics": {"a": {"mean_db": 10}}'
    with pytest.raises(InputError, match=NOT_SIMILAR):
        read_report(_file(tmp_path / "scores.json", ["2"], "a", pooled))
    report = small_report()
    report.frames, report.scoring = [FrameScores(0, {"float_ssim": 2.0})], small_record()
    report.names = ("float_ssim",)
    path = tmp_path / "record.json"
    path.write_text(render(report, "json", "max"))
    with pytest.raises(InputError, match=NOT_SIMILAR):
        read_report(path)
    features = tuple(replace(one, options={**one.options, "enable_db": True}) for one in report.scoring.features)
    report.scoring = replace(report.scoring, features=features)
    path.write_text(render(report, "json", "max"))
    assert read_report(path).column("float_ssim")[0] == 2.0


def test_scores_of_libvmaf_in_decibels(tmp_path: Path) -> None:
    """Its files do not say the unit. Identical frames have none, and a frame may be below 1 dB."""
    report = read_report(_file(tmp_path / "scores.json", ["21.5", "null", "0.5", "19", "null", "null", "null"]))
    assert report.column("float_ssim")[0] == 21.5


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_report(tmp_path / "none.json")
