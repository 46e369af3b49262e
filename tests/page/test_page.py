"""The text of a page: tables, data and policy. test_page_in_browser.py looks at it."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatch
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from vkssim import __version__
from vkssim.frames.options import Selection
from vkssim.page import tables
from vkssim.page.ladders import Ladder, Ladders, Rung
from vkssim.page.pictures import Gallery, no_pictures
from vkssim.page.render import PageDetails, render_page
from vkssim.report.numbers import time_code
from vkssim.report.reading import read_report
from vkssim.report.record import FeatureFacts
from vkssim.report.results import ScoreReport

from ..support.golden import FIXTURES
from .pages import HOSTILE, METRICS, NULL_FRAME, TERMS, embedded, gallery, page_report

GONE = "the clips <are> gone"


def page(reports: Sequence[ScoreReport], pictures: Gallery | None = None, *files: str, **more: Any) -> str:
    return render_page(reports, pictures or no_pictures(reports, GONE), PageDetails(files, **more))


def test_a_wheel_has_all_that_a_page_is_made_of() -> None:
    settings = tomllib.loads((FIXTURES.parent / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    patterns = settings["package-data"]["vkssim.page"]
    files = [
        path.name for path in Path(tables.__file__).parent.iterdir() if path.is_file() and path.suffix not in (".py", ".pyc")
    ]
    assert "answer.html" in files
    assert [name for name in files if not any(fnmatch(name, pattern) for pattern in patterns)] == []


def test_the_data_are_all_scores() -> None:
    report = page_report()
    data = embedded(page([report]))
    (column,) = data["clips"]
    assert column["frames"] == list(range(12))
    assert column["times"] == pytest.approx([index / 25 for index in range(12)])
    assert [metric["name"] for metric in data["metrics"]] == list(METRICS)
    assert column["scores"][1] == pytest.approx(report.column("float_ssim"), abs=5e-7)
    assert column["scores"][0][NULL_FRAME] is None
    assert column["means"] == [None, *(pytest.approx(report.pooled()[name]["mean"]) for name in METRICS[1:])]


def test_pooled_values_are_the_reports() -> None:
    report = page_report()
    report.similarities = METRICS
    pooled = dict(tables.pooled_groups([report.pooled(), page_report(1).pooled()], METRICS, list(tables.POOLED)))
    assert list(pooled) == list(METRICS)
    series, values = pooled["float_ssim"][0]
    assert series == 0
    assert dict(zip(tables.POOLED, values, strict=True)) == {
        key: f"{report.pooled()['float_ssim'][key]:.{3 if key == 'mean_db' else 6}f}" for key in tables.POOLED
    }
    assert set(pooled["float_ms_ssim"][0][1]) == {"null"}  # one of its frames has no score
    assert dict(zip(tables.POOLED, pooled["float_ssim"][1][1], strict=True))["mean_db"] == ""  # as in reports of libvmaf


def test_terms_are_told_from_metrics() -> None:
    reports = [page_report(0, names=(*METRICS, *TERMS)), page_report(1)]
    assert tables.split_names(reports) == (list(METRICS), list(TERMS))
    (table,) = tables.term_tables([report.pooled() for report in reports], TERMS, ["mean"])
    assert table.scales == ["0", "1", "2", "3", "4"]
    assert [term for term, _ in table.groups] == ["luminance", "contrast", "structure"]
    structure = table.groups[2][1]
    assert len(structure) == 1  # the other clip has none
    cells = [cell for cell in structure[0][1] if cell is not None]
    assert [float(text) for text, _ in cells] == pytest.approx(
        [reports[0].column(f"float_ms_ssim_s_scale{scale}").mean() for scale in range(5)], abs=1e-6
    )
    assert [shade for _, shade in cells] == sorted(shade for _, shade in cells)


def test_a_metric_that_only_ends_like_a_term_is_a_metric() -> None:
    assert tables.split_names([page_report(names=("psnr_s", "vif_l_scale0"))])[0] == ["psnr_s", "vif_l_scale0"]


@pytest.mark.parametrize(
    ("paths", "labels"),
    [
        (["a/x.mp4"], ["x.mp4"]),
        (["a/x.mp4", "b/x.mp4", "b/y.mp4"], ["a/x.mp4", "b/x.mp4", "y.mp4"]),
        (["x.mp4", "x.mp4"], ["x.mp4", "x.mp4 (2)"]),
        (["x.mp4", "a/x.mp4"], ["x.mp4", "a/x.mp4"]),
        (["", ""], ["unnamed clip", "unnamed clip (2)"]),
    ],
)
def test_labels_are_short_and_differ(paths: list[str], labels: list[str]) -> None:
    reports = [page_report() for _ in paths]
    for report, path in zip(reports, paths, strict=True):
        report.distorted = path
    assert tables.labels(reports, [""] * len(paths)) == labels


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        *((0.0, "00:00:00.000"), (1 / 3, "00:00:00.333"), (3725.0416, "01:02:05.042"), (59.9996, "00:01:00.000")),
        *((3599.9999, "01:00:00.000"), (360_000, "100:00:00.000"), (-0.04, "-00:00:00.040"), (None, "")),
    ],
)
def test_time_codes(seconds: float | None, text: str) -> None:
    assert time_code(seconds) == text


def test_times_come_from_the_rate_where_frames_have_none() -> None:
    report = page_report()
    report.frames = [type(frame)(frame.index, frame.metrics) for frame in report.frames]
    assert embedded(page([report]))["clips"][0]["times"][5] == pytest.approx(5 / 25)
    report.rate = None
    text = page([report], gallery(3))
    assert embedded(text)["clips"][0]["times"] is None
    assert "00:00" not in text


def test_what_was_compared() -> None:
    reports = [page_report(0), page_report(1)]
    reports[1].selection = Selection(2)
    facts = dict(tables.facts(reports)[0])
    assert facts["size"] == ["96×64"] * 2
    assert facts["skipped at the start"] == ["", "2 of the reference, 0 of the distorted clip"]
    text = page(reports)
    for said in (
        "distorted scaled",
        "Made Up &lt;9000&gt;",
        "driver 1.2",
        f"vkssim {__version__}",
        "float_ms_ssim is null in 1 frame",
    ):
        assert said in text
    assert unescape(text).count(HOSTILE[1]) > 1


def recorded(reports: Sequence[ScoreReport]) -> dict[str, list[str]]:
    compared, of_clips, _ = tables.facts(reports)
    return dict([*compared, *of_clips])


def test_how_it_was_scored() -> None:
    """Options that no clip changed have no row; each fact about the clips has one."""
    reports = [page_report(0), page_report(1)]
    scoring = recorded(reports)
    assert scoring["planes"] == ["y", "y"]
    assert scoring["features"][0].startswith("float_ms_ssim=enable_lcs=false:enable_db=false:precision=exact")
    assert scoring["distorted clip: frame rate"] == ["25 frames/s"] * 2
    assert not [title for title in scoring if title.startswith(("selection", "pictures", "reference: frame rate"))]
    assert reports[1].scoring is not None
    reports[1].scoring = replace(reports[1].scoring, selection=Selection(subsample=5))
    assert recorded(reports)["selection: subsample"] == ["1", "5"]
    text = page(reports)
    assert '<th scope="col">selection: subsample</th>' in text
    assert "differ: selection: subsample 1 against 5" in text
    reports[1].scoring = None
    assert recorded(reports)["planes"] == ["y", ""]
    assert "it is unknown how" in page(reports)
    reports[0].scoring = None
    assert "planes" not in recorded(reports)
    assert "distorted clip: frame rate" not in page(reports)


def test_names_break_between_their_words() -> None:
    report = page_report()
    report.distorted = "clips/a_first_rung:of=x_400.mp4"
    assert "a_<wbr>first_<wbr>rung:<wbr>of=<wbr>x_<wbr>400<wbr>.mp4" in page([report])


def test_a_warning_of_several_clips_is_said_once() -> None:
    reports = [page_report(number % 2) for number in range(4)]
    for number, report in enumerate(reports):
        report.distorted = f"clips/{number}.mp4"
        report.warnings = [f"clips/{number}.mp4 is shorter"] if number < 3 else ["damaged"]
    text = unescape(page(reports))
    assert re.search(
        r"<b>3 clips</b>: … is shorter <span class=\"note\">0(<wbr>)?.mp4, 1(<wbr>)?.mp4, 2(<wbr>)?.mp4</span>", text
    )
    assert "<b>3.mp4</b>: damaged" in text
    assert text.count("is shorter") == 1


def test_pairs_that_failed_are_in_the_title() -> None:
    failed = [(f"{name}.mp4", f"{name}.mp4 cannot be read") for name in "abcd"]
    text = unescape(page([page_report()], failed=failed))
    assert "<title>5 pairs against ref <b>.mp4, 4 failed – vkssim</title>" in text
    assert "<b>4 pairs</b>: not scored: … cannot be read" in text
    assert "and 1 more" in text


def test_labels_of_the_manifest_are_columns() -> None:
    text = page([page_report(0), page_report(1)], manifest=[{"crf": "22"}, {"crf": "27", "<tune>": "film"}])
    table = text.partition('id="pooled"')[2].partition("</table>")[0]
    assert table.index(">crf</th>") < table.index(">&lt;tune&gt;</th>") < table.index(">mean</th>")
    assert re.findall(r"</span></span></th><td>([^<]*)</td><td>([^<]*)</td>", table) == [("22", "–"), ("27", "film")]


def test_the_rate_chart_is_in_decibels() -> None:
    """As the deltas beside it; its clips have the colour of their ladder, and their own symbols."""
    reports = [page_report(0), page_report(1)]
    for report in reports:
        report.similarities = ("float_ssim",)
    ladders = Ladders((Ladder("x264", reports[0].reference, (Rung(1, 100.0), Rung(0, 200.0))),))
    text = page(reports, ladders=ladders)
    assert "mean float_ssim, dB" in text
    assert 'value="decibels" checked' in text
    data = embedded(text)
    (ladder,) = data["ladders"]
    assert [clip["style"]["classes"] for clip in data["clips"]] == [ladder["style"]["classes"]] * 2
    assert [clip["style"]["marker"] for clip in data["clips"]] == [1, 0]
    assert 'value="linear" checked' in page(reports)


@pytest.mark.parametrize(("feature", "name"), [("vmaf", "vmaf"), ("vmaf=model=vmaf_v0.6.1neg:name=neg", "neg")])
def test_the_axis_of_vmaf_is_its_scale(feature: str, name: str) -> None:
    facts = FeatureFacts("vmaf", "y", {"name": name})
    report = page_report(names=(name,))
    assert report.scoring is not None
    report.scoring = replace(report.scoring, features=(facts,))
    text = page([report])
    assert embedded(text)["metrics"] == [{"name": name, "decibels": False, "scale": [0, 100]}]
    chart = text.partition('class="still"')[2].partition('class="across"')[0]
    assert re.findall(r">(\d+)<", chart) == ["0", "20", "40", "60", "80", "100"]


def test_libvmafs_own_report() -> None:
    """It names neither clips nor device, and its version is not one of vkssim."""
    report = read_report(FIXTURES / "bbb_576x324.libvmaf.json")
    text = page([report], None, "scores/libvmaf.json")
    assert "<title>libvmaf.json – vkssim</title>" in text
    assert "of another tool" in text
    assert "mean dB" not in text  # nobody said which of its scores are similarities
    assert len(embedded(text)["clips"][0]["frames"]) == 48


def test_reports_without_scores() -> None:
    empty = page_report()
    empty.frames = []
    silent = page_report()
    for frame in silent.frames:
        for name in METRICS:
            frame.metrics[name] = math.nan  # type: ignore[index]
    text = page([empty, silent])
    assert text.count("No frame has a finite score.") == len(METRICS)
    assert embedded(text)["clips"][0]["frames"] == []
