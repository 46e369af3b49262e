"""The text of a page: tables, data and policy. test_page_in_browser.py looks at it."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import math
import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from PIL import Image

from vkssim import __version__
from vkssim.report.page import render_page, tables
from vkssim.report.page.pictures import Gallery, encode
from vkssim.report.reading import read_report
from vkssim.results import ScoreReport
from vkssim.selection import Selection

from ..golden import FIXTURES
from .pages import HOSTILE, METRICS, NULL_FRAME, TERMS, gallery, page_report

WITHOUT = Gallery(reason="the clips <are> gone")


class _Elements(HTMLParser):
    """All start tags, and the text of the elements that are data to HTML."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.raw: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.cdata_elem:
            self.raw.append(data)


def embedded(text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(re.findall(r'<script type="application/json" id="data">(.*?)</script>', text)[0])
    return found


def test_the_page_needs_nothing_beside_it() -> None:
    elements = _Elements(render_page([page_report()], [gallery(1)]))
    addresses = [
        value
        for _, attributes in elements.tags
        for key, value in attributes.items()
        if key in ("src", "href", "srcset", "data")
    ]
    assert len(addresses) == 4  # a frame's three pictures and the colours of its map
    assert all(value and value.startswith("data:image/webp;base64,") for value in addresses)
    assert "url(" not in "".join(elements.raw)
    assert not any(key.startswith("on") or key == "style" for _, attributes in elements.tags for key in attributes)


def test_the_policy_permits_this_style_and_script_alone() -> None:
    text = render_page([page_report()], [WITHOUT])
    policy = next(
        unescape(attributes["content"] or "")
        for tag, attributes in _Elements(text).tags
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none'; ")
    for element in ("style", "script"):
        content = re.findall(f"<{element}>(.*?)</{element}>", text, re.DOTALL)[0]
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{element}-src 'sha256-{digest}';" in policy
    assert "unsafe" not in policy


def test_the_data_are_all_scores() -> None:
    report = page_report()
    (column,) = embedded(render_page([report], [WITHOUT]))
    assert column["frames"] == list(range(12))
    assert column["times"] == pytest.approx([index / 25 for index in range(12)])
    assert list(column["scores"]) == list(METRICS)
    assert column["scores"]["float_ssim"] == pytest.approx(report.column("float_ssim"), abs=5e-7)
    assert column["scores"]["float_ms_ssim"][NULL_FRAME] is None


def test_nothing_from_outside_becomes_markup() -> None:
    text = render_page([page_report(0), page_report(1)], [gallery(2), WITHOUT])
    plain = render_page([ScoreReport("a", "b", 1, 1, 8, ("c",), page_report().backend)], [WITHOUT])
    tags = {tag for tag, _ in _Elements(text).tags}
    assert tags - {tag for tag, _ in _Elements(plain).tags} <= {
        *(
            "table",
            "caption",
            "thead",
            "tbody",
            "tr",
            "th",
            "td",
            "svg",
            "g",
            "path",
            "text",
            "figure",
            "figcaption",
            "img",
            "b",
            "details",
            "summary",
        ),
        *(
            "select",
            "option",
            "label",
            "input",
            "fieldset",
            "legend",
            "article",
            "dl",
            "dt",
            "dd",
            "ul",
            "li",
            "h3",
            "div",
            "br",
        ),
    }
    assert text.count("<script") == plain.count("<script") == 2
    assert "alert(1)>" not in text
    assert "clips &lt;are&gt; gone" in text


def test_pooled_values_are_the_reports() -> None:
    report = page_report()
    report.similarities = METRICS
    pooled = {group.metric: group.rows for group in tables.pooled_groups([report, page_report(1)], METRICS)}
    assert list(pooled) == list(METRICS)
    series, values = pooled["float_ssim"][0]
    assert series == 0
    assert dict(zip(tables.POOLED, values, strict=True)) == {
        key: f"{report.pooled()['float_ssim'][key]:.6f}" for key in tables.POOLED
    }
    assert set(pooled["float_ms_ssim"][0][1]) == {"null"}  # one of its frames has no score
    assert dict(zip(tables.POOLED, pooled["float_ssim"][1][1], strict=True))["mean_db"] == ""  # as in reports of libvmaf


def test_terms_are_told_from_metrics() -> None:
    reports = [page_report(0, names=(*METRICS, *TERMS)), page_report(1)]
    assert tables.split_names(reports) == (list(METRICS), list(TERMS))
    (table,) = tables.term_tables(reports, TERMS)
    assert table.scales == ("0", "1", "2", "3", "4")
    assert [term for term, _ in table.groups] == ["luminance", "contrast", "structure"]
    structure = table.groups[2][1]
    assert len(structure) == 1  # the other clip has none
    cells = [cell for cell in structure[0][1] if cell is not None]
    assert [float(cell.text) for cell in cells] == pytest.approx(
        [reports[0].column(f"float_ms_ssim_s_scale{scale}").mean() for scale in range(5)], abs=1e-6
    )
    assert [cell.shade for cell in cells] == sorted(cell.shade for cell in cells)


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
    [(0.0, "00:00:00.000"), (3725.0416, "01:02:05.042"), (59.9996, "00:01:00.000"), (-0.04, "-00:00:00.040"), (None, "")],
)
def test_time_codes(seconds: float | None, text: str) -> None:
    assert tables.time_code(seconds) == text


def test_times_come_from_the_rate_where_frames_have_none() -> None:
    report = page_report()
    report.frames = [type(frame)(frame.index, frame.metrics) for frame in report.frames]
    assert embedded(render_page([report], [WITHOUT]))[0]["times"][5] == pytest.approx(5 / 25)
    report.rate = None
    text = render_page([report], [gallery(3)])
    assert embedded(text)[0]["times"] is None
    assert "00:00" not in text


def test_what_was_compared() -> None:
    reports = [page_report(0), page_report(1)]
    reports[1].selection = Selection(2)
    facts = dict(tables.facts(reports))
    assert facts["size"] == ["96×64"] * 2
    assert facts["skipped at the start"] == ["", "2 of the reference, 0 of the distorted clip"]
    text = render_page(reports, [WITHOUT, WITHOUT])
    for said in (
        "distorted scaled",
        "Made Up &lt;9000&gt;",
        "driver 1.2",
        f"vkssim {__version__}",
        "float_ms_ssim is null in 1 frame",
    ):
        assert said in text
    assert unescape(text).count(HOSTILE[1]) > 1


def test_how_it_was_scored() -> None:
    """What all clips left alone has no row; what the clips are has one for each fact."""
    reports = [page_report(0), page_report(1)]
    scoring = dict(tables.scoring(reports))
    assert scoring["planes"] == ["y", "y"]
    assert scoring["features"][0].startswith("float_ms_ssim=enable_lcs=false:enable_db=false:exact=true")
    assert scoring["distorted clip: frame rate"] == ["25 frames/s"] * 2
    assert not [title for title in scoring if title.startswith(("selection", "pictures", "reference: frame rate"))]
    assert reports[1].scoring is not None
    reports[1].scoring = replace(reports[1].scoring, selection=Selection(subsample=5))
    assert dict(tables.scoring(reports))["selection: subsample"] == ["1", "5"]
    text = render_page(reports, [WITHOUT, WITHOUT])
    assert "How it was scored" in text
    assert "differ: selection: subsample 1 against 5" in text
    reports[1].scoring = None
    assert dict(tables.scoring(reports))["planes"] == ["y", ""]
    assert "it is unknown how" in render_page(reports, [WITHOUT, WITHOUT])
    reports[0].scoring = None
    assert tables.scoring(reports) == []
    assert "How it was scored" not in render_page(reports, [WITHOUT, WITHOUT])


def test_large_pictures_are_shrunk() -> None:
    for size, shrunk in (((1080, 1920), (960, 540)), ((20_000, 11), (1, 1920)), ((11, 4096), (960, 3))):
        data = base64.b64decode(encode(np.zeros((*size, 3), np.uint8)).partition(",")[2])
        assert Image.open(io.BytesIO(data)).size == shrunk


def test_libvmafs_own_report() -> None:
    """It names neither clips nor device, and its version is not one of vkssim."""
    report = read_report(FIXTURES / "bbb_576x324.libvmaf.json")
    text = render_page([report], [WITHOUT], ["scores/libvmaf.json"])
    assert "<title>libvmaf.json – vkssim</title>" in text
    assert "of another tool" in text
    assert len(embedded(text)[0]["frames"]) == 48


def test_reports_without_scores() -> None:
    empty = page_report()
    empty.frames = []
    silent = page_report()
    for frame in silent.frames:
        for name in METRICS:
            frame.metrics[name] = math.nan  # type: ignore[index]
    text = render_page([empty, silent], [WITHOUT, WITHOUT])
    assert text.count("No frame has a finite score.") == len(METRICS)
    assert embedded(text)[0]["frames"] == []
