"""Reports written as JSON and read back."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from vkssim.errors import InputError
from vkssim.frames.options import PictureOptions, Selection
from vkssim.report import render
from vkssim.report.reading import read_report

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


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_report(tmp_path / "none.json")
