"""The page in a real browser, clicked through and typed at."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal
from xml.etree import ElementTree

import numpy as np
import pytest
from playwright.sync_api import Browser, FloatRect, Locator, Page, expect, sync_playwright

from vkssim.page.answer import AnswerPage, Copied, Curve, Mark, Plot, Rule, Table, TableRow, render_answer
from vkssim.page.ladders import Delta, Ladder, Ladders, Rung
from vkssim.page.pictures import ClipView, FrameGroup, FrameView, Gallery, data_uri, encode, no_pictures
from vkssim.page.render import PageDetails, render_page
from vkssim.page.tables import Limit, Tile
from vkssim.report import write
from vkssim.report.results import ScoreReport
from vkssim.types import BackendInfo

from .browser import keep_priority, launch, visit, visit_in
from .pages import HOSTILE, METRICS, NULL_FRAME, TERMS, gallery, page_report

FRAMES = 12
REPORTS = [page_report(number, FRAMES, (*METRICS, *TERMS)) for number in range(2)]
SHOWN = (7, 3)  # frames with pictures, in the order of the page
RATES = (100.0, 400.0)
LADDERS = Ladders(
    (Ladder("av1", REPORTS[0].reference, tuple(Rung(number, rate) for number, rate in enumerate(RATES))),),
    (Delta("float_ssim", REPORTS[0].reference, "av1", "vp9", -12.5, 0.5, decibels=True),),
)
LIMITS = [[Limit("float_ssim mean ≥ 0.85", "0.9", True)], [Limit("float_ssim mean ≥ 0.85", "0.7", False)]]
DETAILS = PageDetails(limits=LIMITS, ladders=LADDERS, rates=RATES)
READOUT = "#over-frames .readout"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    keep_priority()
    with sync_playwright() as playwright, launch(playwright) as opened:
        yield opened


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("page") / "page.html"
    pictures = gallery(*SHOWN, clips=(0, 1))
    text = render_page(REPORTS, pictures, DETAILS)
    made.write_text(text, encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def shared_window(browser: Browser) -> Iterator[Page]:
    with browser.new_context() as context:
        yield context.new_page()


@pytest.fixture
def window(shared_window: Page) -> Page:
    """A window as a new one is: empty, of Playwright's size, light, with nothing under the pointer."""
    shared_window.goto("about:blank")
    shared_window.mouse.move(0, 0)
    shared_window.set_viewport_size({"width": 1280, "height": 720})
    shared_window.emulate_media(media="null", color_scheme="light")
    return shared_window


@pytest.fixture
def page(window: Page, path: Path) -> Iterator[Page]:
    """The page of both clips, opened."""
    with visit_in(window, path) as opened:
        yield opened


@pytest.fixture
def show(window: Page, tmp_path: Path) -> Iterator[Callable[[str], Page]]:
    """A function that opens the page of a text."""
    with ExitStack() as stack:

        def shown(text: str) -> Page:
            write(text, tmp_path / "page.html")
            return stack.enter_context(visit_in(window, tmp_path / "page.html"))

        yield shown


def chart(page: Page) -> Locator:
    """The one chart of scores that is to be seen."""
    return page.get_by_role("slider", name=re.compile("^Frame of the chart"))


def box_of(element: Locator) -> FloatRect:
    """Return the place of an element, which is to be seen."""
    box = element.bounding_box()
    assert box is not None
    return box


def many(count: int) -> list[ScoreReport]:
    """Reports of clips that have names of their own."""
    reports = []
    for number in range(count):
        report = page_report(0, FRAMES, ("float_ssim",))
        report.distorted = f"clip{number:02d}.mp4"
        report.scoring = None
        reports.append(report)
    return reports


def choose_metric(page: Page, name: str) -> None:
    """Choose a metric by its label, which may be hostile."""
    page.get_by_label("Metric", exact=True).select_option(label=name)


def score(series: int, frame: int, name: str) -> str:
    value = REPORTS[series].frames[frame].metrics[name]
    return "null" if value != value else f"{value:.6f}"


def test_arrow_keys_move_the_cursor(page: Page) -> None:
    plot = chart(page)
    readout = page.locator(READOUT)
    plot.focus()
    for keys, frame in (((), 0), (("ArrowRight",) * 3, 3), (("ArrowLeft",), 2), (("End",), 11), (("ArrowRight",), 11)):
        for key in keys:
            plot.press(key)
        expect(readout).to_contain_text(f"Frame {frame} · 00:00:00.{frame * 40:03d}")
        for series, label in enumerate(HOSTILE):
            expect(readout).to_contain_text(f"{label} {score(series, frame, 'float_ms_ssim')}")
        expect(plot).to_have_attribute("aria-valuenow", str(frame))
        expect(plot).to_have_attribute("aria-valuetext", re.compile(f"^Frame {frame} "))
    plot.press("Home")
    expect(readout).to_contain_text("Frame 0 ")
    for _ in range(NULL_FRAME):
        plot.press("ArrowRight")
    expect(readout).to_contain_text(f"{HOSTILE[0]} null")
    assert plot.locator(".dot").count() == 0


def test_a_click_on_a_point_opens_that_frame_of_that_clip(page: Page) -> None:
    plot = chart(page)
    plot.scroll_into_view_if_needed()
    for frame, series in ((3, 1), (7, 0), (3, 0)):
        page.locator("#over-frames .plot").scroll_into_view_if_needed()
        box = box_of(plot)
        page.mouse.move(box["x"] + box["width"] * frame / (FRAMES - 1), box["y"])
        dot = box_of(plot.locator(".dot").nth(series))
        page.mouse.click(dot["x"] + dot["width"] / 2, dot["y"] + dot["height"] / 2)
        expect(page.locator("article.frame:not(.off)")).to_have_attribute("data-frame", str(frame))
        expect(page.get_by_label("B", exact=True).first).to_have_value(f"distorted {series}")
        expect(page.locator(".stage")).to_be_in_viewport()
    page.get_by_role("button", name="Back to the chart").click()
    expect(plot).to_be_focused()
    plot.press("End")
    plot.press("Enter")
    expect(page.locator("#opened")).to_have_text("Frame 11 has no pictures; frame 7 is the nearest that has.")


def test_zoom_by_drag_and_by_keys(page: Page) -> None:
    plot = chart(page)
    plot.scroll_into_view_if_needed()
    box = box_of(plot)
    page.mouse.move(box["x"] + box["width"] * 3 / 11, box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 8 / 11, box["y"] + 90, steps=3)
    page.mouse.up()
    expect(page.locator("#zoom-range")).to_have_text("Frames 3 to 8")
    ticks = page.locator("#scores .across g").first.locator("text")
    assert (ticks.first.text_content(), ticks.last.text_content()) == ("3", "8")
    drawn = plot.locator('[data-series="1"] path').first.get_attribute("d") or ""
    assert len(re.findall("[ML]", drawn)) == 5  # one of the six frames has no score
    for key, text in (("+", "Frames 3 to 7"), ("0", ""), ("+", re.compile("^Frames ")), ("-", "")):
        plot.press(key)
        expect(page.locator("#zoom-range")).to_have_text(text)
    expect(page.get_by_role("button", name="All frames")).to_be_disabled()


def test_decibels(show: Callable[[str], Page]) -> None:
    """Scores near 1 are far apart in dB; what is no similarity has none. A tile has both units, the other one below."""
    report = page_report(0, FRAMES, ("float_ssim", "float_ssim_l"))
    report.similarities = ("float_ssim",)
    for number, frame in enumerate(report.frames):
        frame.metrics["float_ssim"] = 1 - 10.0 ** -(number % 4 + 1)  # type: ignore[index]
    mean = report.pooled()["float_ssim"]["mean"]
    texts = [f"{mean:.4f}", f"{-10 * math.log10(1 - mean):.2f} dB"]
    page = show(render_page([report], gallery()))
    plot = chart(page)
    tile = page.locator(".tile", has=page.get_by_text("mean float_ssim", exact=True))
    for label, (value, other) in (("linear", texts), ("dB", reversed(texts))):
        page.get_by_label(label, exact=True).check()
        expect(tile.locator(".value")).to_have_text(value)
        expect(tile.locator(".other")).to_have_text(other)
    plot.focus()
    for decibels in (10, 20, 30, 40):
        expect(page.locator(READOUT)).to_contain_text(f"{decibels}.000 dB (0.9")
        plot.press("ArrowRight")
    expect(page.locator("#scores .axis-title").first).to_have_text("float_ssim, dB")
    assert page.locator("#scores .up text").all_text_contents() == ["10", "15", "20", "25", "30", "35", "40"]
    choose_metric(page, "float_ssim_l")
    expect(page.get_by_label("dB")).to_be_disabled()
    expect(page.locator("#scores .axis-title").first).to_have_text("float_ssim_l")


def dipping(*dips: int, frames: int = 200) -> ScoreReport:
    """A report with dips of one frame, each less deep than the one before it."""
    report = page_report(0, frames, ("float_ssim",))
    for frame in report.frames:
        deep = dips.index(frame.index) if frame.index in dips else None
        frame.metrics["float_ssim"] = 0.9 if deep is None else 0.5 + 0.05 * deep  # type: ignore[index]
    return report


def test_the_worst_moments_are_marked_and_listed(show: Callable[[str], Page]) -> None:
    """By rank on the line, where a single line has no other marks; without pictures they are a table."""
    report, dips = dipping(60, 120, 62, 180), (60, 120, 180)  # 62 belongs to the moment of 60
    page = show(render_page([report], no_pictures([report], "none are wanted")))
    marks = page.locator("#scores .moment")
    expect(page.locator("#scores .mark")).to_have_count(0)
    expect(page.locator("#distribution .mark")).to_have_count(0)
    ranks = marks.locator("text").all_text_contents()
    assert ranks[:3] == ["1", "2", "3"]
    for place, frame in enumerate(dips):
        circle = marks.nth(place).locator("circle")
        assert float((circle.get_attribute("cx") or "").rstrip("%")) == pytest.approx(100 * frame / 199, abs=0.01)
    rows = page.locator("#worst tbody tr")
    expect(rows).to_have_count(len(ranks))
    assert [row.locator("td").first.text_content() for row in rows.all()[:3]] == [str(frame) for frame in dips]
    expect(page.locator("#worst")).to_contain_text("No pictures: none are wanted.")


def test_at_most_twelve_clips_are_drawn_at_first_and_the_one_at_the_pointer_stands_out(show: Callable[[str], Page]) -> None:
    page = show(render_page(many(14), no_pictures(many(14), "none")))
    boxes = page.locator(".legend input")
    assert [box.is_checked() for box in boxes.all()] == [True] * 12 + [False] * 2
    lines = page.locator("#scores .plot > svg").first.locator("[data-series]")
    expect(lines).to_have_count(12)
    looks = [tuple(line.get_attribute(name) for name in ("class", "stroke-dasharray")) for line in lines.all()]
    assert len(set(looks)) == 12
    expect(page.locator(".legend input:visible")).to_have_count(12)
    page.get_by_role("button", name="Others", exact=True).click()
    expect(page.locator(".legend input:visible")).to_have_count(14)
    page.locator('.legend [data-clip="3"]').hover()
    expect(lines.nth(3)).to_have_class(re.compile(r"\bhot\b"))
    expect(lines.nth(2)).to_have_css("opacity", "0.2")
    page.get_by_role("button", name="All", exact=True).click()
    expect(lines).to_have_count(14)
    page.get_by_role("button", name="None", exact=True).click()
    expect(lines).to_have_count(0)
    expect(page.locator("#clip-count")).to_have_text("0 of 14 are drawn")


def test_tables_are_sorted_by_their_headings(page: Page) -> None:
    choose_metric(page, "float_ssim")
    table = page.locator("details.of-metric[open] table").first
    heading = table.locator("th[scope=col]", has_text="kbit/s")
    for order, first in (("ascending", "100"), ("descending", "400")):
        heading.get_by_role("button").press("Enter")
        expect(heading).to_have_attribute("aria-sort", order)
        expect(table.locator("tbody tr").first).to_contain_text(first)


def test_the_first_screen_has_verdict_rate_and_scores(window: Page, path: Path) -> None:
    window.set_viewport_size({"width": 1280, "height": 720})
    with visit_in(window, path) as page:
        choose_metric(page, "float_ssim")
        pooled = [report.pooled()["float_ssim"] for report in REPORTS]
        page.evaluate("scrollTo(0, 0)")
        for name, value in (
            ("limits", "1 of 2 fail"),
            ("bit rate, kbit/s", "100 – 400"),
            ("lowest mean float_ssim", f"{min(values['mean'] for values in pooled):.4f}"),
            ("lowest p5 float_ssim", f"{min(values['p5'] for values in pooled):.4f}"),
            ("lowest min float_ssim", f"{min(values['min'] for values in pooled):.4f}"),
        ):
            tile = page.locator(".tile:visible", has=page.get_by_text(name, exact=True))
            expect(tile.locator(".value")).to_have_text(value)


def test_a_ladder_is_a_curve_with_its_deltas(page: Page) -> None:
    choose_metric(page, "float_ssim")
    marks = page.locator('#rates .marks [data-series="ladder"] path')
    expect(marks).to_have_count(2)
    assert page.locator("#rates .across g").first.locator("text").all_text_contents() == ["100", "200"]
    marks.nth(1).hover(force=True)
    mean = REPORTS[1].pooled()["float_ssim"]["mean"]
    expect(page.locator("#rung")).to_have_text(f"{HOSTILE[1]}: 400 kbit/s, {mean:.6f}")
    expect(page.locator(".part:visible table")).to_contain_text("-12.50 %")
    expect(page.locator(".part:visible table")).to_contain_text("+0.500")


def test_one_choice_of_the_reference_holds_for_the_whole_page(show: Callable[[str], Page]) -> None:
    """The headline and the table of titles stay; a title there is a choice, and so is a clip of a tile."""
    reports = many(8)
    for number, report in enumerate(reports):
        report.reference = f"title{number // 4}.mp4"
        report.frames = report.frames[: 6 + 3 * (number // 4)]
        report.frames[NULL_FRAME].metrics["float_ssim"] = 0.8  # type: ignore[index]
    ladders = Ladders(
        tuple(
            Ladder(
                name, reports[4 * title].reference, (Rung(4 * title + 2 * place, 100.0), Rung(4 * title + 2 * place + 1, 200.0))
            )
            for title in range(2)
            for place, name in enumerate(("fast", "slow"))
        ),
        (
            *(Delta("float_ssim", f"title{title}.mp4", "slow", "fast", 10.0 * title - 7, 0.1) for title in range(2)),
            Delta("float_ssim", "", "slow", "fast", -2.0, 0.1),
        ),
    )
    reports[4].frames[5].metrics["float_ssim"] = 0.1  # type: ignore[index]
    pictures = gallery(5, 3, clips=(0, 4))
    groups = tuple(
        FrameGroup((clip,), tuple(replace(frame, clips=(frame.clips[place],)) for frame in pictures.groups[0].frames))
        for place, clip in enumerate((0, 4))
    )
    details = PageDetails(ladders=ladders, rates=(100.0, 200.0) * 4)
    page = show(render_page(reports, replace(pictures, groups=groups), details))
    expect(page.locator("h1")).to_have_text(
        "slow needs 2.0\N{NO-BREAK SPACE}% less bit rate than fast for the same float_ssim: 1 title better, 1 worse"
    )
    chooser, lines = (
        page.get_by_label("Reference", exact=True),
        page.locator("#scores .plot > svg").first.locator("[data-series]"),
    )
    for choose, title in (
        (lambda: None, 0),
        (lambda: chooser.select_option(label="title1.mp4"), 1),
        (lambda: page.locator(".deltas").get_by_role("button", name="title0.mp4").click(), 0),
    ):
        choose()
        expect(chooser).to_have_value(str(title))
        assert [line.get_attribute("data-series") for line in lines.all()] == [str(4 * title + place) for place in range(4)]
        expect(page.locator("#over-frames [role=slider]")).to_have_attribute("aria-valuemax", str(5 + 3 * title))
        expect(page.locator(".legend input:visible")).to_have_count(4)
        expect(page.locator("details.of-metric[open] tbody tr:visible")).to_have_count(4)
        expect(page.locator('#rates .marks [data-series="ladder"] path')).to_have_count(4)
    expect(page.locator(".deltas tbody tr:visible")).to_have_count(2)
    colours = {page.locator("#rates .plot > svg [data-series]").nth(place).get_attribute("class") for place in range(2)}
    assert colours == {"line c0", "line c1"}
    expect(page.locator(".right-name")).to_have_text("clip00.mp4")
    page.get_by_role("button", name="Show it").locator("visible=true").click()
    expect(chooser).to_have_value("1")
    expect(page.locator("#opened")).to_have_text("Frame 5")
    expect(page.locator(".right-name")).to_have_text("clip04.mp4")


def test_clips_of_other_frames_and_metrics(show: Callable[[str], Page]) -> None:
    """A clip says nothing of frames and metrics that it was not scored of; metrics may have names that objects have."""
    reports = [page_report(0, FRAMES, ("constructor", "float_ssim")), page_report(1, FRAMES, ("float_ssim",))]
    del reports[1].frames[1::2]
    page = show(render_page(reports, gallery()))
    plot, readout = chart(page), page.locator(READOUT)
    plot.focus()
    expect(readout).to_contain_text(HOSTILE[0])
    expect(readout).not_to_contain_text(HOSTILE[1])
    choose_metric(page, "float_ssim")
    for frame in range(3):
        expect(readout).to_contain_text(f"Frame {frame} ")
        expect(readout.locator("span")).to_have_count(1 if frame == 1 else 2)
        chart(page).press("ArrowRight")


def test_metric_and_legend(page: Page) -> None:
    assert page.get_by_label("Metric", exact=True).locator("option").all_inner_texts() == [*METRICS, *TERMS]
    chart(page).focus()
    choose_metric(page, "float_ssim")
    readout = page.locator(READOUT)
    expect(page.locator("#scores .axis-title").first).to_have_text("float_ssim")
    expect(readout).to_contain_text(score(1, 0, "float_ssim"))
    line = page.locator('#scores [data-series="1"], #distribution [data-series="1"]')
    drawn = line.count()
    assert drawn > 2
    page.get_by_role("checkbox", name=HOSTILE[1]).press("Space")
    expect(line).to_have_count(0)
    expect(readout).not_to_contain_text(score(1, 0, "float_ssim"))
    expect(readout).to_contain_text(score(0, 0, "float_ssim"))
    page.get_by_role("checkbox", name=HOSTILE[1]).press("Space")
    expect(line).to_have_count(drawn)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_theme(window: Page, path: Path, scheme: Literal["light", "dark"]) -> None:
    """The button is called what a click brings."""
    window.emulate_media(color_scheme=scheme)
    with visit_in(window, path) as page:
        button = page.locator("#theme")

        def is_dark() -> bool:
            colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
            return sum(map(int, re.findall(r"\d+", colour)[:3])) < 384

        assert is_dark() == (scheme == "dark")
        expect(button).to_have_text("Light theme" if is_dark() else "Dark theme")
        button.press("Enter")
        assert is_dark() == (scheme == "light")
        expect(button).to_have_text("Light theme" if is_dark() else "Dark theme")


def test_the_comparison_by_keyboard_and_by_mouse(page: Page) -> None:
    slider = page.get_by_role("slider", name=f"Border between Reference and {HOSTILE[1]}")
    left = page.locator(".stage .left-layer")

    def width() -> float:
        """Per cent of the left picture that are to be seen."""
        clip = left.evaluate("image => getComputedStyle(image).clipPath")
        hidden = re.match(r"inset\(0px (\S+)% 0px 0px\)|inset\(0px calc\(100% - (\S+)%\) 0px 0px\)", clip)
        assert hidden is not None, clip
        return 100 - float(hidden[1]) if hidden[1] else float(hidden[2])

    assert width() == 50
    slider.focus()
    for _ in range(5):
        slider.press("ArrowLeft")
    assert width() == 45
    slider.press("End")
    assert width() == 100
    stage = page.locator(".stage")
    stage.scroll_into_view_if_needed()
    box = box_of(stage)
    page.mouse.click(box["x"] + 0.25 * box["width"], box["y"] + box["height"] / 2)
    assert abs(int(stage.locator("input").input_value()) - 25) <= 1
    divider = box_of(stage.locator(".divider"))
    assert divider["x"] + divider["width"] / 2 == pytest.approx(box["x"] + 0.25 * box["width"], abs=0.02 * box["width"])
    page.get_by_label("B", exact=True).first.select_option(f"SSIM map of {HOSTILE[0]}")
    chosen = page.locator("article.frame:not(.off)")
    shown = page.locator(".stage .right")
    assert shown.get_attribute("src") == chosen.locator('[data-kind="map"][data-clip="0"] img').get_attribute("src")
    expect(page.get_by_role("slider", name=f"Border between Reference and SSIM map of {HOSTILE[0]}")).to_have_count(1)


def test_one_picture_at_a_time_by_keys(page: Page) -> None:
    page.get_by_label("B", exact=True).first.select_option(HOSTILE[0])
    page.locator(".stage input").focus()
    for key, kind, clip in (("r", "reference", None), ("b", "distorted", 0), ("m", "map", 0), ("a", "reference", None)):
        page.keyboard.press(key)
        expect(page.locator(".stage")).to_have_class(re.compile("alone"))
        place = f'[data-kind="{kind}"]' + ("" if clip is None else f'[data-clip="{clip}"]')
        picture = page.locator(f"article.frame:not(.off) {place} img").get_attribute("src")
        assert page.locator(".stage .left").get_attribute("src") == picture
        if key != "a":
            page.locator(".thumbs input:checked").focus()
    page.keyboard.press("s")
    expect(page.locator(".stage")).not_to_have_class(re.compile("alone"))
    page.keyboard.press(".")
    expect(page.locator("article.frame:not(.off)")).to_have_attribute("data-frame", str(SHOWN[1]))
    expect(page.get_by_label("B", exact=True).first).to_have_value("distorted 0")


def test_a_sample_is_a_pixel_and_the_picture_is_moved(window: Page, tmp_path: Path) -> None:
    large = data_uri(encode(np.zeros((900, 1600, 3), np.uint8), 1600, 90))
    pictures = Gallery((large,), (FrameGroup((0,), (FrameView(3, 0, (ClipView(0, 0, 0),)),)),))
    report = replace(page_report(), width=3200, height=1800)
    large_path = tmp_path / "page.html"
    write(render_page([report], pictures), large_path)
    window.set_viewport_size({"width": 700, "height": 800})
    with visit_in(window, large_path) as page:
        expect(page.locator("#scale")).to_have_text("The pictures are stored 1600 pixels wide; the clip has 3200.")
        button = page.locator("#actual")
        stage, picture = page.locator(".stage"), page.locator(".stage .left")
        button.click()
        expect(button).to_have_attribute("aria-pressed", "true")
        stage.scroll_into_view_if_needed()
        shown, before = box_of(stage), box_of(picture)
        assert (before["width"], before["height"]) == (1600, 900)
        assert before["x"] + 800 == pytest.approx(shown["x"] + shown["width"] / 2, abs=1)
        middle = shown["x"] + shown["width"] / 2, shown["y"] + shown["height"] / 2
        page.mouse.move(*middle)
        page.mouse.down()
        page.mouse.move(middle[0] - 120, middle[1] + 30, steps=4)
        page.mouse.up()
        after = box_of(picture)
        assert (after["x"] - before["x"], after["y"] - before["y"]) == pytest.approx((-120, 30), abs=1)
        stage.press("ArrowLeft")
        moved = box_of(picture)
        assert moved["x"] - after["x"] == pytest.approx(40, abs=1)
        for _ in range(50):
            stage.press("ArrowLeft")
        edge = box_of(picture)
        assert edge["x"] == pytest.approx(shown["x"], abs=1)
        assert page.evaluate("document.documentElement.scrollWidth") <= 700
        stage.press("1")
        expect(button).to_have_attribute("aria-pressed", "false")


def test_charts_are_saved_as_svg_and_their_data_as_csv(page: Page) -> None:
    choose_metric(page, "float_ssim")
    for figure, series in (("figure[data-csv=rates]", 1), ("#over-frames", 2), ("figure:has(> #distribution)", 2)):
        with page.expect_download() as saved:
            page.locator(figure).get_by_role("button", name="Save SVG").click()
        assert saved.value.suggested_filename.endswith(".svg")
        root = ElementTree.fromstring(Path(saved.value.path()).read_text(encoding="utf-8"))
        lines = [part for part in root.iter(f"{SVG}g") if part.get("data-series") and part.find(f"{SVG}path") is not None]
        assert len({part.get("data-series") for part in lines}) == series
        (stroke,) = {path.get("stroke") for part in lines for path in part.findall(f"{SVG}path")}  # of one ladder
        assert re.match(r"rgb\(\d+, \d+, \d+\)$", stroke or "")
        assert any(part.text == "mean float_ssim" or part.text == "float_ssim" for part in root.iter(f"{SVG}text"))
    with page.expect_download() as saved:
        page.locator("#over-frames").get_by_role("button", name="Save CSV").click()
    rows = list(csv.reader(Path(saved.value.path()).read_text(encoding="utf-8").splitlines()))
    assert len(rows) == 1 + FRAMES
    assert rows[0] == ["frame", "time", *(f"{label} float_ssim" for label in HOSTILE)]
    assert [float(cell) for cell in rows[4][2:]] == pytest.approx(
        [report.frames[3].metrics["float_ssim"] for report in REPORTS]
    )
    with page.expect_download() as saved:
        page.locator("figure[data-csv=rates]").get_by_role("button", name="Save CSV").click()
    rows = list(csv.reader(Path(saved.value.path()).read_text(encoding="utf-8").splitlines()))
    assert [float(row[3]) for row in rows[1:]] == list(RATES)


ANSWER = AnswerPage(
    title="clip.mp4: crf 27 meets <b>",
    lead=HOSTILE[0],
    tiles=[Tile("setting", "crf 27", HOSTILE[1])],
    table=Table("The ladder", ("size", "crf"), (TableRow(("576×324", "27"), 0), TableRow(("416×234", "30"), 1))),
    copied=[Copied("The command", f"first {HOSTILE[0]}\nsecond", is_open=True), Copied("JSON", "{}")],
    notes=[HOSTILE[1]],
    plots=[
        Plot(
            "Rate and quality",
            "kbit/s",
            "float_ssim, dB",
            (Curve(((100.0, 10.0), (400.0, 20.0))), Curve(((100.0, 10.0),), "chosen")),
            (Mark(100.0, 10.0, 0, HOSTILE[0], "crf 30", chosen=True), Mark(400.0, 20.0, 0, HOSTILE[1])),
            (Rule(15.0, "target 0.9"),),
            (("size", 0, "576×324"), ("chosen", 0, "the new ladder")),
        )
    ],
    folded=[Table("All trials", ("size", "kbit/s"), (TableRow(("576×324", "1,100")), TableRow(("=1+1", "400"))))],
)


@pytest.fixture(scope="module")
def answer_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("answer") / "answer.html"
    made.write_text(render_answer(ANSWER), encoding="utf-8")
    return made


def test_the_answer_is_copied_and_its_trials_are_saved(window: Page, answer_path: Path) -> None:
    with visit_in(window, answer_path) as page:
        assert page.title() == f"{ANSWER.title} – vkssim"
        page.evaluate(
            "navigator.clipboard.writeText = (text) => ((document.documentElement.dataset.copied = text), Promise.resolve())"
        )
        button = page.get_by_role("button", name="Copy The command")
        button.click()
        expect(button).to_have_text("Copied")
        expect(page.locator("html")).to_have_attribute("data-copied", ANSWER.copied[0].text)
        expect(page.locator("pre").first).to_be_visible()
        expect(page.locator("pre").nth(1)).not_to_be_visible()
        expect(page.locator("#trials table")).not_to_be_visible()
        with page.expect_download() as saved:
            page.get_by_role("button", name="Save CSV").click()
        rows = list(csv.reader(Path(saved.value.path()).read_text(encoding="utf-8").splitlines()))
        assert rows == [["size", "kbit/s"], ["576×324", "1100"], ["'=1+1", "400"]]
        with page.expect_download() as saved:
            page.get_by_role("button", name="Save SVG").click()
        root = ElementTree.fromstring(Path(saved.value.path()).read_text(encoding="utf-8"))
        texts = [part.text for part in root.iter(f"{SVG}text")]
        assert {"crf 30", "target 0.9", "kbit/s", "float_ssim, dB", "the new ladder"} <= set(texts)


@pytest.mark.parametrize("width", [360, 1400])
def test_the_first_screen_of_an_answer_is_the_answer(window: Page, answer_path: Path, width: int) -> None:
    window.set_viewport_size({"width": width, "height": 844})
    with visit_in(window, answer_path) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for part in (".tile .value", "section table", "section pre"):
            box = box_of(page.locator(part).first)
            assert box["y"] + box["height"] < 844


def test_the_worst_frame_is_first_and_others_are_chosen_by_arrow_keys(page: Page) -> None:
    radios = page.locator(".thumbs input")
    assert radios.count() == len(SHOWN)
    expect(radios.first).to_be_checked()
    expect(page.locator("article.frame:not(.off)")).to_have_attribute("data-frame", str(SHOWN[0]))
    before = page.locator(".stage .left").get_attribute("src")
    radios.first.focus()
    page.keyboard.press("ArrowRight")
    chosen = page.locator("article.frame:not(.off)")
    expect(chosen).to_have_attribute("data-frame", str(SHOWN[1]))
    expect(chosen).to_contain_text("frame 3 · 00:00:00.120")
    expect(chosen).to_contain_text(f"{REPORTS[0].frames[3].metrics['float_ssim']:.4f}")
    expect(chosen).to_contain_text(f"{REPORTS[1].frames[3].metrics['float_ssim']:.4f}")
    assert page.locator(".stage .left").get_attribute("src") not in (None, before)


def test_tab_reaches_every_control_and_shows_where_it_is(page: Page) -> None:
    in_order = ("theme", "metric", "axis", "sort", "plot", "zoom-in", "frame", "side-a", "side-b", "view", "range")
    reached: list[str] = []
    while len(reached) < 80 and in_order[-1] not in reached:
        page.keyboard.press("Tab")
        name, outlined = page.evaluate(
            """() => {
                const at = document.activeElement;
                let shown = at;
                if (at.matches(".stage input")) shown = at.parentNode;
                if (at.matches(".thumbs input")) shown = at.nextSibling;
                const name = at.id || at.name || at.className || at.type || at.tagName;
                return [name, getComputedStyle(shown).outlineStyle !== "none"];
            }"""
        )
        assert outlined, name
        reached.append(name)
    assert "scroll" in reached
    assert [name for name in dict.fromkeys(reached) if name in in_order] == list(in_order)


def test_nothing_hostile_runs_or_is_fetched(window: Page, tmp_path: Path) -> None:
    """Wherever text from outside stands: `visit` fails where anything is said, asked for or fetched."""
    url = "http://127.0.0.1:9/"
    texts = (
        f"</script><script src={url}></script><!--<script>",
        f"</style><style>@import url({url})</style>",
        f"</title><link rel=stylesheet href={url}><meta http-equiv=refresh content='0;url={url}'>",
        f'"\' onfocus=alert(1) autofocus style=background:url({url}) x="',
        "javascript:alert(1)//{{7*7}}{%raw%}${7*7}",
        "\u2028\u2029\0\x1b[2J\udcff\u202etxt.exe",
    )
    reports = []
    for text in texts:
        report = page_report(0, FRAMES, ("float_ssim", text))
        report.reference = report.distorted = report.version = text
        report.backend = BackendInfo(text, text, text)
        report.warnings, report.notes = [text], [text]
        reports.append(report)
    path = tmp_path / "page.html"
    pictures = replace(gallery(3, clips=(0, 1, 2)), reasons={3 + number: text for number, text in enumerate(texts[3:])})
    ladders = Ladders(
        tuple(Ladder(text, text, (Rung(number, 1.0),)) for number, text in enumerate(texts)),
        tuple(Delta(text, text, text, text, 1.0, 1.0, warnings=(text,)) for text in texts),
        texts[0],
    )
    limits = [[Limit(text, text, met=False)] for text in texts]
    more: dict[str, Any] = {
        "limits": limits,
        "ladders": ladders,
        "rates": [1.0] * len(texts),
        "failed": [(text, text) for text in texts],
        "manifest": [{text: text} for text in texts],
    }
    write(render_page(reports, replace(pictures, note=texts[0]), PageDetails(texts, **more)), path)
    with visit_in(window, path) as page:
        chart(page).focus()
        for option in page.get_by_label("Metric", exact=True).locator("option").all_inner_texts()[:3]:
            choose_metric(page, option)
            chart(page).press("End")
        expect(page.locator("script, style, link")).to_have_count(3)
        attributes = page.evaluate("[...document.querySelectorAll('*')].flatMap(at => at.getAttributeNames())")
        assert not [name for name in attributes if re.match("on|href$", name)]
        page.evaluate("document.querySelectorAll('details').forEach(fold => fold.open = true)")
        shown = "".join(page.locator(".facts").all_inner_texts())
        assert "{{7*7}}" in shown
        assert r"\u202etxt.exe" in shown
        assert not set(shown) & set("\0\x1b\u2028\u202e\ufffd")


def test_injected_script_would_not_run(browser: Browser, path: Path, tmp_path: Path) -> None:
    """Were something not escaped, the page's policy would still stop it."""
    broken = tmp_path / "broken.html"
    text = path.read_text(encoding="utf-8")
    broken.write_text(text.replace("<main>", "<main><script>document.title = 'run'</script>"), encoding="utf-8")
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(broken.as_uri())
        assert page.title() != "run"


def test_without_javascript_everything_is_shown(browser: Browser, path: Path) -> None:
    with visit(browser, path, java_script_enabled=False) as page:
        mean = REPORTS[0].pooled()["float_ssim"]["mean"]
        expect(page.locator("section", has=page.locator("#pooled"))).to_contain_text(f"{mean:.6f}")
        lines = page.locator('section.still .plot [data-series="0"]')
        assert lines.count() == 2 * (len(METRICS) + len(TERMS))
        for place in range(lines.count()):
            box = box_of(lines.nth(place))
            assert box["width"] > 100
        assert page.locator("article.frame").count() == len(SHOWN)
        assert all(frame.is_visible() for frame in page.locator("article.frame").all())
        for control in page.locator("button, select, input").all():
            assert not control.is_visible()


def test_print_is_laid_out_without_controls(window: Page, path: Path) -> None:
    window.emulate_media(color_scheme="dark")
    with visit_in(window, path) as page:
        pdf = page.pdf(format="A4")
        assert 4 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 20
        page.emulate_media(media="print")
        for control in page.locator("#theme, select, input, #scores, .readout, .stage").all():
            assert not control.is_visible()
        assert all(panel.is_visible() for panel in page.locator("section.still, article.frame").all())
        folded = page.locator("details:not([open])")
        before = folded.count()
        for event, count in (("beforeprint", 0), ("afterprint", before)):
            page.evaluate(f"dispatchEvent(new Event('{event}'))")
            expect(folded).to_have_count(count)
        assert before > 0
        assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light"


@pytest.mark.parametrize("width", [360, 800, 1400])
def test_no_width_scrolls_sideways_and_tables_say_that_they_do(window: Page, path: Path, width: int) -> None:
    window.set_viewport_size({"width": width, "height": 800})
    with visit_in(window, path) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        table = page.locator("details.of-metric[open] .scroll").first
        wider = table.evaluate("box => box.scrollWidth > box.clientWidth + 1")
        assert wider or width > 360
        said = table.evaluate("box => getComputedStyle(box, '::before').content")
        assert ("scroll it" in said) == wider
        choose_metric(page, "float_ssim")
        ticks = page.locator("#rates .across g").first.locator("text")
        expect(ticks).to_have_count(2)  # an axis with every other label left out would have a single one here
        assert [tick.is_visible() for tick in ticks.all()] == [True, True]


def test_twenty_thousand_frames(window: Page, tmp_path: Path) -> None:
    long = tmp_path / "long.html"
    report = page_report(0, 20_000)
    long.write_text(render_page([report], gallery()), encoding="utf-8")
    assert long.stat().st_size < 1.2e6
    with visit_in(window, long) as page:
        plot = chart(page)
        plot.focus()
        plot.press("End")
        readout = page.locator(READOUT)
        expect(readout).to_contain_text("Frame 19999 · 00:13:19.960")
        expect(readout).to_contain_text(f"{report.frames[-1].metrics['float_ms_ssim']:.6f}")
        detail = page.locator(".detail")
        expect(detail).to_contain_text("Frames 19939 to 19999")
        plot.press("Home")
        expect(detail).to_contain_text("Frames 0 to 60")
        drawn = detail.locator(".line path").get_attribute("d") or ""
        assert (drawn.count("M"), drawn.count("L")) == (2, 58)  # each frame, but for the one without a score
