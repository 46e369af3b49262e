"""The page in a real browser, clicked through and typed at."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

from vkssim.backends.base import BackendInfo
from vkssim.report import write
from vkssim.report.page import render_page
from vkssim.report.page.pictures import Gallery

from ..browser import keep_priority, launch, visit
from .pages import HOSTILE, METRICS, NULL_FRAME, TERMS, gallery, page_report

FRAMES = 12
REPORTS = [page_report(number, FRAMES, (*METRICS, *TERMS)) for number in range(2)]
SHOWN = (3, 7)  # frames of each clip


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    keep_priority()
    with sync_playwright() as playwright, launch(playwright) as opened:
        yield opened


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("page") / "page.html"
    made.write_text(render_page(REPORTS, [gallery(*SHOWN), gallery(*SHOWN)]), encoding="utf-8")
    return made


def chart(page: Page) -> Locator:
    """The one chart of scores that is to be seen."""
    return page.get_by_role("slider", name=re.compile("^Frame of the chart"))


def score(series: int, frame: int, name: str) -> str:
    value = REPORTS[series].frames[frame].metrics[name]
    return "null" if value != value else f"{value:.6f}"


def test_arrow_keys_move_the_cursor(browser: Browser, path: Path) -> None:
    with visit(browser, path) as visited:
        plot = chart(visited.page)
        readout = visited.page.locator(".metric:not(.off) .readout")
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


def test_a_frame_without_a_score_is_null(browser: Browser, path: Path) -> None:
    with visit(browser, path) as visited:
        plot = chart(visited.page)
        plot.focus()
        for _ in range(NULL_FRAME):
            plot.press("ArrowRight")
        expect(visited.page.locator(".metric:not(.off) .readout")).to_contain_text(f"{HOSTILE[0]} null")
        assert plot.locator(".dot").count() == 0


def test_the_pointer_moves_the_cursor_and_dots_lie_on_the_lines(browser: Browser, path: Path) -> None:
    with visit(browser, path) as visited:
        plot = chart(visited.page)
        plot.scroll_into_view_if_needed()
        box = plot.bounding_box()
        assert box is not None
        visited.page.mouse.move(box["x"] + box["width"] * 7.2 / (FRAMES - 1), box["y"] + 20)
        expect(visited.page.locator(".metric:not(.off) .readout")).to_contain_text("Frame 7 ")
        for series in range(2):
            drawn = plot.locator(f'[data-series="{series}"] path').first.get_attribute("d") or ""
            points = dict(re.findall(r"(\d+\.\d) (\d+\.\d)", drawn))
            dot = re.match(r"M(\S+) (\S+)h0", plot.locator(".dot").nth(series).get_attribute("d") or "")
            assert dot is not None
            assert float(dot[2]) == pytest.approx(float(points[f"{float(dot[1]):.1f}"]), abs=0.06)


def test_clips_of_other_frames_and_metrics(browser: Browser, tmp_path: Path) -> None:
    """A clip says nothing of frames and metrics that it was not scored of; metrics may have names that objects have."""
    reports = [page_report(0, FRAMES, ("constructor", "float_ssim")), page_report(1, FRAMES, ("float_ssim",))]
    del reports[1].frames[1::2]
    path = tmp_path / "page.html"
    path.write_text(render_page(reports, [gallery(), gallery()]), encoding="utf-8")
    with visit(browser, path) as visited:
        plot, readout = chart(visited.page), visited.page.locator(".metric:not(.off) .readout")
        plot.focus()
        expect(readout).to_contain_text(HOSTILE[0])
        expect(readout).not_to_contain_text(HOSTILE[1])
        visited.page.get_by_label("Metric", exact=True).select_option("float_ssim")
        for frame in range(3):
            expect(readout).to_contain_text(f"Frame {frame} ")
            expect(readout.locator("span")).to_have_count(1 if frame == 1 else 2)
            chart(visited.page).press("ArrowRight")


def test_metric_and_legend(browser: Browser, path: Path) -> None:
    with visit(browser, path) as visited:
        page = visited.page
        assert page.get_by_label("Metric", exact=True).locator("option").all_inner_texts() == [*METRICS, *TERMS]
        chart(page).focus()
        page.get_by_label("Metric", exact=True).select_option("float_ssim")
        readout = page.locator(".metric:not(.off) .readout")
        expect(page.locator(".metric:not(.off) h3")).to_have_text("float_ssim")
        expect(readout).to_contain_text(score(1, 0, "float_ssim"))
        line = page.locator('.metric:not(.off) [data-series="1"]')
        page.get_by_role("checkbox", name=HOSTILE[1]).press("Space")
        assert [line.nth(place).is_visible() for place in range(line.count())] == [False, False]
        expect(readout).not_to_contain_text(score(1, 0, "float_ssim"))
        expect(readout).to_contain_text(score(0, 0, "float_ssim"))
        page.get_by_role("checkbox", name=HOSTILE[1]).press("Space")
        assert [line.nth(place).is_visible() for place in range(line.count())] == [True, True]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_theme(browser: Browser, path: Path, scheme: str) -> None:
    with visit(browser, path, color_scheme=scheme) as visited:
        button = visited.page.get_by_role("button", name="Dark theme")

        def is_dark() -> bool:
            colour = visited.page.evaluate("getComputedStyle(document.body).backgroundColor")
            return sum(map(int, re.findall(r"\d+", colour)[:3])) < 384

        assert is_dark() == (scheme == "dark")
        expect(button).to_have_attribute("aria-pressed", str(is_dark()).lower())
        button.press("Enter")
        assert is_dark() == (scheme == "light")
        expect(button).to_have_attribute("aria-pressed", str(is_dark()).lower())


def test_the_comparison_by_keyboard(browser: Browser, path: Path) -> None:
    with visit(browser, path) as visited:
        page = visited.page
        slider = page.get_by_role("slider", name="Border between Reference and Distorted")
        left = page.locator(".stage .left")

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
        page.get_by_label("reference and SSIM map").check()
        pictures = page.locator("article.frame:not(.off) .triple img")
        assert page.locator(".stage .right").get_attribute("src") == pictures.nth(2).get_attribute("src")
        expect(page.get_by_role("slider", name="Border between Reference and SSIM map")).to_have_count(1)


def test_the_comparison_by_mouse(browser: Browser, path: Path) -> None:
    with visit(browser, path) as visited:
        stage = visited.page.locator(".stage")
        stage.scroll_into_view_if_needed()
        box = stage.bounding_box()
        assert box is not None
        visited.page.mouse.click(box["x"] + 0.25 * box["width"], box["y"] + box["height"] / 2)
        assert abs(int(stage.locator("input").input_value()) - 25) <= 1
        divider = stage.locator(".divider").bounding_box()
        assert divider is not None
        assert divider["x"] + divider["width"] / 2 == pytest.approx(box["x"] + 0.25 * box["width"], abs=0.02 * box["width"])


def test_worst_frames_are_chosen_by_arrow_keys(browser: Browser, path: Path) -> None:
    with visit(browser, path) as visited:
        page = visited.page
        radios = page.locator(".thumbs input")
        assert radios.count() == 2 * len(SHOWN)
        expect(page.locator("article.frame:not(.off)")).to_have_attribute("data-frame", str(SHOWN[0]))
        before = page.locator(".stage .left").get_attribute("src")
        radios.first.focus()
        page.keyboard.press("ArrowRight")
        chosen = page.locator("article.frame:not(.off)")
        expect(chosen).to_have_attribute("data-frame", str(SHOWN[1]))
        expect(chosen).to_contain_text(f"{HOSTILE[0]}, frame 7 · 00:00:00.280")
        expect(chosen).to_contain_text(score(0, 7, "float_ssim"))
        assert page.locator(".stage .left").get_attribute("src") not in (None, before)


def test_tab_reaches_every_control_and_shows_where_it_is(browser: Browser, path: Path) -> None:
    with visit(browser, path) as visited:
        reached = []
        for _ in range(25):
            visited.page.keyboard.press("Tab")
            reached.append(
                visited.page.evaluate(
                    """() => {
                        const at = document.activeElement;
                        let shown = at;
                        if (at.matches(".stage input")) shown = at.parentNode;
                        if (at.matches(".thumbs input")) shown = at.nextSibling;
                        const name = at.id || at.name || at.className || at.type || at.tagName;
                        return [name, getComputedStyle(shown).outlineStyle !== "none"];
                    }"""
                )
            )
        names = [name for name, _ in reached]
        for wanted in ("theme", "metric", "plot", "frame", "sides", "range"):
            assert wanted in names
        assert names.index("theme") < names.index("metric") < names.index("plot") < names.index("frame") < names.index("range")
        assert all(outlined for name, outlined in reached if name != "BODY")


def test_hostile_names_are_text(browser: Browser, path: Path) -> None:
    with visit(browser, path) as visited:
        page = visited.page
        assert page.evaluate("document.querySelectorAll('[onerror], [onload], img[src=x]').length") == 0
        for label in HOSTILE:
            expect(page.locator(".legend")).to_contain_text(label)
        assert page.title() == "2 renditions against ref <b>.mp4 – vkssim"


def test_nothing_hostile_runs_or_is_fetched(browser: Browser, tmp_path: Path) -> None:
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
    write(render_page(reports, [*[gallery(3)] * 3, *[Gallery(reason=text) for text in texts[3:]]], texts), path)
    with visit(browser, path) as visited:
        page = visited.page
        chart(page).focus()
        for option in page.get_by_label("Metric", exact=True).locator("option").all_inner_texts()[:3]:
            page.get_by_label("Metric", exact=True).select_option(option)
            page.get_by_role("slider", name=re.compile("^Frame of the chart")).first.press("End")
        expect(page.locator("script, style, link")).to_have_count(3)
        attributes = page.evaluate("[...document.querySelectorAll('*')].flatMap(at => at.getAttributeNames())")
        assert not [name for name in attributes if re.match("on|href$", name)]
        for fold in page.locator("summary").all():
            fold.click()
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
    with visit(browser, path, java_script_enabled=False) as visited:
        page = visited.page
        mean = REPORTS[0].pooled()["float_ssim"]["mean"]
        expect(page.locator(".numbers").first).to_contain_text(f"{mean:.6f}")
        lines = page.locator('.plot[data-metric] [data-series="0"]')
        assert lines.count() == len(METRICS) + len(TERMS)
        for place in range(lines.count()):
            box = lines.nth(place).bounding_box()
            assert box is not None
            assert box["width"] > 100
        assert page.locator("article.frame").count() == 2 * len(SHOWN)
        assert all(frame.is_visible() for frame in page.locator("article.frame").all())
        for control in page.locator("button, select, input").all():
            assert not control.is_visible()


def test_print_is_laid_out_without_controls(browser: Browser, path: Path) -> None:
    with visit(browser, path, color_scheme="dark") as visited:
        page = visited.page
        pdf = page.pdf(format="A4")
        assert 4 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 20
        page.emulate_media(media="print")
        for control in page.locator("button, select, input, .readout").all():
            assert not control.is_visible()
        assert all(panel.is_visible() for panel in page.locator(".metric, article.frame").all())
        assert all(fold.get_attribute("open") is not None for fold in page.locator("details").all())
        assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light"


@pytest.mark.parametrize("width", [360, 800, 1400])
def test_no_width_scrolls_sideways(browser: Browser, path: Path, width: int) -> None:
    with visit(browser, path, viewport={"width": width, "height": 800}) as visited:
        assert visited.page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_hundred_thousand_frames(browser: Browser, tmp_path: Path) -> None:
    long = tmp_path / "long.html"
    report = page_report(0, 100_000)
    long.write_text(render_page([report], [gallery()]), encoding="utf-8")
    assert long.stat().st_size < 5e6
    with visit(browser, long) as visited:
        plot = chart(visited.page)
        plot.focus()
        plot.press("End")
        readout = visited.page.locator(".metric:not(.off) .readout")
        expect(readout).to_contain_text("Frame 99999 · 01:06:39.960")
        expect(readout).to_contain_text(f"{report.frames[-1].metrics['float_ms_ssim']:.6f}")
        detail = visited.page.locator(".metric:not(.off) .detail")
        expect(detail).to_contain_text("Frames 99939 to 99999")
        plot.press("Home")
        expect(detail).to_contain_text("Frames 0 to 60")
        drawn = detail.locator(".line path").get_attribute("d") or ""
        assert (drawn.count("M"), drawn.count("L")) == (2, 58)  # each frame, but for the one without a score
