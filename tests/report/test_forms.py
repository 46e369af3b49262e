"""The four output forms, held to what libvmaf's tools write and to whoever reads that."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from vkssim.errors import OptionError
from vkssim.report import WRITERS, render
from vkssim.report.record import ScoringRecord
from vkssim.report.results import ScoreReport
from vkssim.utils.values import from_json

from ..support.golden import CLIPS, clip_report
from .reports import NAMES, small_record, small_report


@pytest.mark.parametrize("clip", CLIPS)
def test_json_has_every_key_of_libvmafs(clip: str) -> None:
    """Ours may add keys, never drop or rename one."""
    theirs = clip_report(clip)
    ours = json.loads(render(small_report(), "json"))
    assert list(theirs) == list(ours)[: len(theirs)]
    for frame in ours["frames"]:
        assert list(frame) == list(theirs["frames"][0])
    pooling = list(theirs["pooled_metrics"]["float_ssim"])
    for name in NAMES:
        assert list(ours["pooled_metrics"][name])[: len(pooling)] == pooling
    assert ours["aggregate_metrics"] == {}


def test_speed_is_in_files_where_it_was_asked_for() -> None:
    """Else equal inputs give equal bytes. Frames of an earlier run took no time of this one."""
    report = replace(small_report(), stage_seconds={"read": 0.1})
    assert json.loads(render(report, "json"))["fps"] == 4.0
    assert 'fps="4.00"' in render(report, "xml")
    assert json.loads(render(replace(report, resumed=1), "json"))["fps"] == 2.0


def test_json_numbers_and_null() -> None:
    text = render(small_report(), "json")
    assert "NaN" not in text
    assert "Infinity" not in text
    frames = json.loads(text)["frames"]
    assert frames[0] == {"frameNum": 0, "metrics": {"float_ms_ssim": 1.0, "float_ssim": 0.333333}}
    assert frames[1] == {"frameNum": 5, "metrics": {"float_ms_ssim": None, "float_ssim": None}}
    assert json.loads(text)["pooled_metrics"]["float_ms_ssim"]["mean"] is None


def test_xml_is_libvmafs() -> None:
    root = ElementTree.fromstring(render(small_report(), "xml"))
    assert (root.tag, [child.tag for child in root]) == (
        "VMAF",
        ["params", "fyi", "frames", "pooled_metrics", "aggregate_metrics"],
    )
    assert "version" in root.attrib
    params = root.find("params")
    assert params is not None
    assert (params.get("qualityWidth"), params.get("qualityHeight")) == ("32", "24")
    fyi = root.find("fyi")
    assert fyi is not None
    assert fyi.get("fps") == "0.00"
    assert [frame.attrib for frame in root.iter("frame")] == [
        {"frameNum": "0", "float_ms_ssim": "1.000000", "float_ssim": "0.333333"},
        {"frameNum": "5", "float_ms_ssim": "nan", "float_ssim": "nan"},
    ]
    metrics = [list(metric.attrib) for metric in root.iter("metric")]
    assert [names[:5] for names in metrics] == [["name", "min", "max", "mean", "harmonic_mean"]] * 2


def test_csv() -> None:
    rows = list(csv.reader(io.StringIO(render(small_report(), "csv"))))
    assert rows == [["Frame", *NAMES], ["0", "1.000000", "0.333333"], ["5", "", ""]]


def recorded_report() -> ScoreReport:
    return replace(small_report(), scoring=small_record("dis\x1b\udcff.yuv"))


def test_json_says_how_it_was_scored() -> None:
    """Behind all other keys, which stay what they were."""
    plain, recorded = (json.loads(render(report, "json")) for report in (small_report(), recorded_report()))
    assert list(recorded) == [*plain, "scoring"]
    assert {key: recorded[key] for key in plain} == plain
    assert from_json(ScoringRecord, recorded["scoring"], "scoring") == recorded_report().scoring


def test_xml_says_how_it_was_scored() -> None:
    """As elements and attributes behind libvmaf's own; what is not known has no attribute."""
    root = ElementTree.fromstring(render(recorded_report(), "xml"))
    scoring = root[-1]
    assert [child.tag for child in root] == ["params", "fyi", "frames", "pooled_metrics", "aggregate_metrics", "scoring"]
    assert (scoring.get("sync"), scoring.get("planes"), scoring.get("width")) == ("index", "y", "32")
    features = {child.get("name"): child for child in scoring.findall("features")}
    options = features["float_ssim"].find("options")
    assert options is not None
    assert (options.get("window"), options.get("scale"), options.get("precision")) == ("gaussian11", "1", "exact")
    assert [child.get("value") for child in features["float_ssim"].findall("automatic")] == ["scale"]
    distorted = scoring.find("distorted")
    assert distorted is not None
    assert (distorted.get("path"), distorted.get("fps"), distorted.get("kbps")) == (r"dis\x1b\udcff.yuv", "25.0", None)


def test_csv_says_how_it_was_scored() -> None:
    """In a last column without a name, which readers of libvmaf's CSV know: its lines end in a comma."""
    text = render(recorded_report(), "csv")
    rows = list(csv.reader(io.StringIO(text)))
    assert [row[:-1] for row in rows] == list(csv.reader(io.StringIO(render(small_report(), "csv"))))
    assert [bool(row[-1]) for row in rows] == [False, True, False]
    assert from_json(ScoringRecord, json.loads(rows[1][-1]), "scoring") == recorded_report().scoring
    assert text.isascii()


def test_subtitles_do_not() -> None:
    assert render(recorded_report(), "sub") == render(small_report(), "sub")
    assert render(small_report(), "sub").splitlines() == [
        "{0}{1}frame: 0|float_ms_ssim: 1.000000|float_ssim: 0.333333",
        "{5}{6}frame: 5|float_ms_ssim: null|float_ssim: null",
    ]


@pytest.mark.parametrize("form", WRITERS)
def test_a_report_without_frames_can_be_written(form: str) -> None:
    report = small_report()
    empty = ScoreReport(report.reference, report.distorted, 32, 24, 8, NAMES, report.backend)
    assert "float_ssim:" not in render(empty, form)


@pytest.mark.parametrize("form", WRITERS)
def test_precision(form: str) -> None:
    """max reads back to the same double."""
    assert repr(1 / 3) in render(small_report(), form, "max")
    assert re.search(r"\b0\.33\b", render(small_report(), form, "2"))


@pytest.mark.parametrize(
    ("form", "precision", "message"),
    [
        *(("json", precision, "max or a number of decimals, 0 to 17") for precision in ("18", "-1", "most", "")),
        ("yaml", "6", "json, xml, csv, sub"),
    ],
)
def test_impossible_forms_and_precisions(form: str, precision: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        render(small_report(), form, precision)
