"""vkssim report and vkssim score --html."""

from __future__ import annotations

import base64
import io
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from vkssim.backends.cpu import CpuBackend
from vkssim.frames.options import Selection
from vkssim.maps import frames as maps
from vkssim.report.results import ScoreReport

from ..support.clips import raw_bytes, raw_flags, write, y4m_bytes
from ..support.commands import TINY, fail, python_process, refuse, succeed, vkssim, vkssim_process
from ..support.golden import FIXTURES, clip_paths
from ..support.pictures import clip

pytestmark = pytest.mark.usefixtures("shared_device")

LUMA = clip(6)
DISTORTED = np.roll(LUMA, 1, axis=2)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Selection]:
    """How the clips of each report were read to have their pictures."""
    selections: list[Selection] = []
    real = maps.scored_pictures

    def noted(report: ScoreReport, *arguments: Any, **where: Any) -> Iterator[maps.FramePictures]:
        selections.append(report.selection)
        return real(report, *arguments, **where)

    monkeypatch.setattr(maps, "scored_pictures", noted)
    return selections


@pytest.fixture
def pair(tmp_path: Path) -> tuple[str, str]:
    """Clips of a frame every two seconds, so that every frame is a moment of its own."""
    slow = [y4m_bytes(luma).replace(b" F30:1 ", b" F1:2 ", 1) for luma in (LUMA, DISTORTED)]
    return write(tmp_path / "ref.y4m", slow[0]), write(tmp_path / "dis.y4m", slow[1])


@pytest.fixture
def words(pair: tuple[str, str]) -> tuple[str, ...]:
    """The words that score the pair."""
    return ("score", "-r", pair[0], "-d", pair[1], *TINY)


@pytest.fixture
def page(tmp_path: Path) -> Path:
    return tmp_path / "page.html"


@pytest.fixture
def scores(tmp_path: Path) -> Path:
    return tmp_path / "scores.json"


def frames_shown(page: Path) -> list[int]:
    return [int(number) for number in re.findall(r'<article class="frame[^>]* data-frame="(\d+)"', page.read_text())]


def worst(scores: Path, count: int) -> list[int]:
    frames = json.loads(scores.read_text())["frames"]
    ordered = sorted(frames, key=lambda frame: frame["metrics"]["float_ssim"])
    return [frame["frameNum"] for frame in ordered[:count]]


def test_score_writes_a_page(pair: tuple[str, str], page: Path, scores: Path, asked: list[Selection]) -> None:
    words = ("-r", pair[0], "-d", pair[1], *TINY, "--frame_skip_ref", "1", "--frame_skip_dist", "1")
    succeed("score", *words, "--html", str(page), "-o", str(scores))
    assert frames_shown(page) == worst(scores, 6)
    assert asked == [Selection(1, 1)]
    encoded = re.findall(r'<img src="data:image/webp;base64,([^"]*)" alt="[^"]*" data-picture', page.read_text())
    sizes = [Image.open(io.BytesIO(base64.b64decode(picture))).size for picture in encoded]
    assert set(sizes) == {(32, 24)}  # the map too, which has no values at the border
    repeated = page.read_text().count('<p class="elsewhere"')
    assert (len(set(encoded)), len(encoded) + repeated) == (len(encoded), 15)
    mean = json.loads(scores.read_text())["pooled_metrics"]["float_ssim"]["mean"]
    assert f"<td>{mean:.6f}</td>" in page.read_text()


def tiles(page: Path) -> dict[str, str]:
    """The tiles of a page: what they are called, with what they say."""
    cells = re.findall(r"<dt>([^<]*)</dt>\s*<dd class=.value.>([^<]*)</dd>", page.read_text())
    return dict(cells)


def test_the_page_of_score_has_frames_and_verdicts(words: tuple[str, ...], page: Path, scores: Path) -> None:
    words = (*words, "-q", "--html", str(page), "-o", str(scores), "--worst", "2")
    limits = ("--fail-under", "float_ssim:p5=0.999", "--fail-under", "float_ssim=0.01", "--strict")
    assert vkssim(*words, *limits).exit_code == 1
    assert frames_shown(page) == worst(scores, 2)
    pooled = json.loads(scores.read_text())["pooled_metrics"]["float_ssim"]
    assert tiles(page) == {
        "limits": "fail",
        "mean float_ssim": f"{pooled['mean']:.4f}",
        "p5 float_ssim": f"{pooled['p5']:.4f}",
        "min float_ssim": f"{pooled['min']:.4f}",
    }
    text = page.read_text()
    assert f"float_ssim p5 ≥ 0.999: {pooled['p5']:.6f}" in text
    assert '<td>clips of equal length and pace (--strict)</td><td>they are</td><td class="pass">pass</td>' in text
    succeed(*words, "--fail-under", "float_ssim=0.01")
    assert tiles(page)["limits"] == "pass"


def test_equal_inputs_give_equal_pages(words: tuple[str, ...], page: Path, scores: Path) -> None:
    """Whenever the page is made, and whenever the scores were written."""
    pages = []
    for written in (0, 86_400 * 365):
        succeed(*words, "-q", "-o", str(scores), "--html", str(page))
        os.utime(scores, (0, written))
        pages.append(page.read_bytes())
        succeed("report", str(scores), "-o", str(page))
        pages.append(page.read_bytes())
    assert pages[:2] == pages[2:]


def test_pictures_are_embedded_once_and_keep_within_their_budget(pair: tuple[str, str], page: Path, tmp_path: Path) -> None:
    """Two clips have one reference: its pictures, and those of equal clips, are in the page once."""
    copy = shutil.copy(pair[1], tmp_path / "copy.y4m")
    scores = [str(tmp_path / name) for name in ("a.json", "b.json")]
    for path, distorted in zip(scores, (pair[1], str(copy)), strict=True):
        succeed("score", "-r", pair[0], "-d", distorted, *TINY, "-q", "-o", path)
    succeed("report", *scores, "-o", str(page), "--worst", "3")
    embedded = re.findall(r"data:image/webp;base64,[^\"]*", page.read_text())
    assert len(embedded) == len(set(embedded)) == 3 * 3 + 1  # reference, distorted clip and map; the colours of maps
    assert frames_shown(page) == worst(Path(scores[0]), 3)
    least = 0.000_001 * sum(map(len, embedded)) / 2
    succeed("report", *scores, "-o", str(page), "--worst", "3", "--picture-budget", str(least))
    assert 0 < len(frames_shown(page)) < 3
    assert "of 3 frames are left out." in page.read_text()
    succeed("report", *scores, "-o", str(page), "--picture-budget", "0")
    assert "they did not fit into the budget" in page.read_text()


def test_maps_of_an_even_window_lie_over_the_pictures(pair: tuple[str, str], page: Path) -> None:
    words = ("--backend", "cpu", "--feature", "float_ssim=scale=1:window=uniform8", "-q", "--worst", "1")
    succeed("score", "-r", pair[0], "-d", pair[1], *words, "--html", str(page))
    encoded = re.findall(r'<img src="data:image/webp;base64,([^"]*)" alt="[^"]*" data-picture', page.read_text())
    sizes = [Image.open(io.BytesIO(base64.b64decode(picture))).size for picture in encoded]
    assert sizes == [(32, 24)] * 3


def test_a_page_of_several_files(pair: tuple[str, str], page: Path, tmp_path: Path, asked: list[Selection]) -> None:
    scores = [tmp_path / name for name in ("a.json", "b.json")]
    for path, skip in zip(scores, ("0", "2"), strict=True):
        words = ("-r", pair[0], "-d", pair[1], *TINY, "-q", "--frame_skip_ref", skip, "--frame_skip_dist", skip)
        succeed("score", *words, "-o", str(path))
    result = vkssim("report", *map(str, scores), "-o", str(page), "--worst", "2")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "differ: selection: frames skipped of the reference 0 against 2" in result.stderr
    assert frames_shown(page) == worst(scores[0], 2) + worst(scores[1], 2)
    assert asked == [Selection(0, 0), Selection(2, 2)]
    assert "dis.y4m (2)" in page.read_text()


def test_files_that_were_not_scored_alike(pair: tuple[str, str], page: Path, tmp_path: Path) -> None:
    """A page puts them side by side, so it says so where somebody insists."""
    scores = [tmp_path / name for name in ("a.json", "b.json")]
    for path, feature in zip(scores, ("float_ssim=scale=1", "float_ssim=scale=2:window=uniform8"), strict=True):
        words = ("-r", pair[0], "-d", pair[1], "--backend", "cpu", "-q", "--feature", feature)
        succeed("score", *words, "-o", str(path))
    report = ("report", *map(str, scores), "-o", str(page), "--worst", "0")
    result = vkssim(*report)
    told = "were not scored alike: features: float_ssim scale 1 against 2, float_ssim window gaussian11 against uniform8"
    assert (result.exit_code, told in result.stderr.replace("exact true against false, float_ssim ", "")) == (2, True)
    assert not page.exists()
    succeed(*report, "--force")
    assert "dis.y4m (2) were not scored alike: features: float_ssim" in page.read_text()
    succeed("report", str(scores[0]), "-o", str(page), "--worst", "0")
    assert "not scored alike" not in page.read_text()


def test_raw_clips_are_described(page: Path, scores: Path, tmp_path: Path) -> None:
    reference, distorted = write(tmp_path / "ref.yuv", raw_bytes(LUMA)), write(tmp_path / "dis.yuv", raw_bytes(DISTORTED))
    words = ("-r", reference, "-d", distorted, *raw_flags(LUMA), *TINY, "-q")
    succeed("score", *words, "-o", str(scores))
    succeed("report", str(scores), "-o", str(page))
    assert frames_shown(page) == []
    assert "if it is raw YUV, give --width" in page.read_text()
    succeed("report", str(scores), "-o", str(page), *raw_flags(LUMA))
    assert len(frames_shown(page)) == 1, "the frames of less than a second are one moment"


def test_clips_that_are_gone_are_a_reason(words: tuple[str, ...], pair: tuple[str, str], page: Path, scores: Path) -> None:
    succeed(*words, "-q", "-o", str(scores))
    Path(pair[1]).unlink()
    succeed("report", str(scores), "-o", str(page))
    assert f"No pictures: {pair[1]} cannot be read: No such file or directory." in page.read_text()


@pytest.mark.parametrize("frames", ["[]", '[{"frameNum": 0, "metrics": {}}]'])
def test_a_report_without_scores_has_no_pictures(scores: Path, tmp_path: Path, frames: str) -> None:
    (tmp_path / "scores.json").write_text(f'{{"frames": {frames}, "reference": "a.mp4", "distorted": "b.mp4"}}')
    succeed("report", str(tmp_path / "scores.json"), "-o", str(tmp_path / "page.html"))
    assert "the report has no scores of frames" in (tmp_path / "page.html").read_text()


def test_a_pipe_has_no_pictures(pair: tuple[str, str], page: Path) -> None:
    words = ("score", "-r", pair[0], "-d", "-", *TINY, "--html", str(page), "-q")
    result = vkssim_process(*words, stdin=Path(pair[1]).read_bytes())
    assert (result.returncode, result.stderr) == (0, b"")
    assert "No pictures: one of the clips came from standard input" in page.read_text()


def test_the_page_to_standard_output() -> None:
    result = succeed("report", str(FIXTURES / "bbb_576x324.libvmaf.json"), "-o", "-")
    assert result.stdout.startswith("<!DOCTYPE html>")
    assert "No pictures: the report does not name its clips" in result.stdout


@pytest.mark.parametrize("words", [("search",), ("ladder", "--heights", "324")], ids=lambda words: words[0])
def test_pages_of_searches_need_a_file(words: tuple[str, ...]) -> None:
    refuse("--html - is no file", *words, str(clip_paths("bbb_576x324")[0]), "--html", "-")


def test_an_error_is_shown_with_what_was_scored(
    words: tuple[str, ...], pair: tuple[str, str], page: Path, asked: list[Selection]
) -> None:
    Path(pair[1]).write_bytes(Path(pair[1]).read_bytes()[:-10])
    result = vkssim(*words, "-q", "--html", str(page))
    assert result.exit_code == 2
    (message,) = re.findall(r"vkssim: (.*)", result.stderr)
    assert f"<li>{message}</li>" in page.read_text()
    assert len(frames_shown(page)) == 5


def test_an_interrupted_run_has_no_pictures(words: tuple[str, ...], page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    collect, calls = CpuBackend.collect, []

    def interrupted(self: CpuBackend, batch: Any) -> Any:
        calls.append(batch)
        if len(calls) > 1:
            raise KeyboardInterrupt
        return collect(self, batch)

    monkeypatch.setattr(CpuBackend, "collect", interrupted)
    result = vkssim(*words, "-q", "--html", str(page))
    assert result.exit_code == 130
    assert "No pictures: the run was stopped" in page.read_text()


def test_what_cannot_be_written_is_said_first(
    words: tuple[str, ...], pair: tuple[str, str], scores: Path, tmp_path: Path
) -> None:
    for target, message in (
        (str(tmp_path / "none" / "page.html"), "none does not exist"),
        (str(tmp_path), "is a folder"),
        (pair[0], "would overwrite another file"),
        (str(scores), "would overwrite another file"),
        ("-", "--html - is no file; give it the name of a file"),
    ):
        fail(2, message, *words, "-o", str(scores), "--html", target)
        assert not scores.exists()
    shutil.copy(FIXTURES / "bbb_576x324.libvmaf.json", scores)
    before = scores.read_bytes()
    fail(2, "would overwrite another file", "report", str(scores), "-o", str(scores))
    assert scores.read_bytes() == before


@pytest.mark.parametrize(("module", "package"), [("jinja2", "jinja2"), ("PIL", "pillow"), ("matplotlib", "matplotlib")])
def test_a_missing_extra_is_named_first(
    words: tuple[str, ...], page: Path, scores: Path, monkeypatch: pytest.MonkeyPatch, module: str, package: str
) -> None:
    import importlib.util

    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == module else find_spec(name))
    report = ("report", str(FIXTURES / "bbb_576x324.libvmaf.json"), "-o", str(page))
    for asked in ((*words, "-o", str(scores), "--html", str(page)), report):
        assert "pip install 'vkssim[report]'" in fail(2, f"needs {package}", *asked).stderr
        assert not page.exists()
        assert not scores.exists()


def test_scoring_without_a_page_imports_nothing_of_it(pair: tuple[str, str]) -> None:
    code = (
        "import sys\nfrom vkssim.cli import main\n"
        f"main({['score', '-r', pair[0], '-d', pair[1], *TINY, '-q']!r}, standalone_mode=False)\n"
        "assert not {'jinja2', 'PIL', 'matplotlib', 'vkssim.page.render'} & set(sys.modules)"
    )
    result = python_process("-c", code)
    assert result.returncode == 0, result.stderr.decode()
