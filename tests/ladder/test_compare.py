"""vkssim compare: what changed, and the verdict."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vkssim.frames.options import PictureOptions, Selection
from vkssim.ladder.compare import DropLimit, compare_reports
from vkssim.report import render
from vkssim.report.reading import read_report
from vkssim.report.results import FrameScores, ScoreReport
from vkssim.types import BackendInfo

from ..support.commands import TINY, fail, refuse, succeed, vkssim
from ..support.golden import FIXTURES
from .ladders import ladder

BEFORE = [0.9, 0.8, 0.95, 0.85]
AFTER = [0.9, 0.75, 0.96, 0.83]  # the mean falls by 0.015, the worst frame, 1, by 0.05


def _report(
    path: Path,
    scores: Sequence[float],
    name: str = "float_ssim",
    first: int = 0,
    width: int = 32,
    reference: str = "r",
    **read: Any,
) -> str:
    report = ScoreReport(reference, "d", width, 24, 8, (name,), BackendInfo("cpu", "", ""), **read)
    report.frames = [FrameScores(number, {name: score}) for number, score in enumerate(scores, first)]
    path.write_text(render(report, "json", "max"))
    return str(path)


@pytest.fixture
def pair(tmp_path: Path) -> tuple[str, ...]:
    return "compare", _report(tmp_path / "a.json", BEFORE), _report(tmp_path / "b.json", AFTER)


@pytest.mark.parametrize("text", ["Infinity", "1e400", "2", "-5", "true", '"0.9"'])
def test_a_score_that_cannot_be_passes_nothing(tmp_path: Path, text: str) -> None:
    """Neither a drop nor a limit; a mean of infinity would pass both."""
    good, bad = _report(tmp_path / "good.json", BEFORE), tmp_path / "bad.json"
    bad.write_text(Path(good).read_text().replace("0.95", text, 1))
    refuse("float_ssim of frame 2 is", "compare", good, str(bad), "--max-drop", "float_ssim=0.01")
    refuse("float_ssim of frame 2 is", "compare", str(bad), good, "--max-drop", "float_ssim=0.01")
    refuse("float_ssim of frame 2 is", "report", str(bad), "-o", "-", "--fail-under", "float_ssim=0.5")


def test_figures(pair: tuple[str, ...]) -> None:
    answer = json.loads(succeed(*pair, "--json").stdout)
    change = answer["scores"]["float_ssim"]
    assert change["before"]["mean"] == pytest.approx(0.875)
    assert change["after"]["min"] == 0.75
    assert change["max_drop"] == pytest.approx(0.05)
    assert (change["max_drop_frame"], answer["frames"], answer["lost"]) == (1, 4, 0)
    assert (answer["demands"], answer["passed"], answer["warnings"]) == ([], True, [])
    for word in ("float_ssim", "0.875000", "0.860000", "-0.015000", "0.050000"):
        assert word in vkssim(*pair).stdout
    assert "-0.000000" not in vkssim("compare", pair[1], pair[1]).stdout


def test_scores_that_rise_have_no_drop(tmp_path: Path, pair: tuple[str, ...]) -> None:
    better = _report(tmp_path / "better.json", [score + 0.01 for score in BEFORE])
    shown = succeed("compare", pair[1], better).stdout
    assert "-0." not in shown
    assert "none" in shown


def test_identical_frames_in_decibels_do_not_drop(tmp_path: Path) -> None:
    path = _report(tmp_path / "a.json", [0.9, 0.8])
    infinite = ScoreReport("r", "d", 32, 24, 8, ("float_ssim",), BackendInfo("cpu", "", ""))
    infinite.frames = [FrameScores(number, {"float_ssim": math.inf}) for number in range(2)]
    thresholds = [DropLimit.parse("float_ssim=0"), DropLimit.parse("float_ssim=0", frame=True)]
    assert all(limit.met(compare_reports(infinite, infinite)) for limit in thresholds)
    assert not any(limit.met(compare_reports(infinite, read_report(Path(path)))) for limit in thresholds)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--max-drop", "float_ssim=0.016"), 0),
        (("--max-drop", "float_ssim=0.014"), 1),
        (("--max-drop", "float_ssim=0"), 1),
        (("--max-drop", "float_ssim:max=0"), 0),
        (("--max-drop", "float_ssim:min=0.049"), 1),
        (("--max-drop", "float_ssim:p5=0.051"), 0),
        (("--max-drop", "float_ssim:p5=0.04"), 1),
        (("--max-drop", "float_ssim:max=0", "--max-drop", "float_ssim=0.001"), 1),
        (("--max-frame-drop", "float_ssim=0.051"), 0),
        (("--max-frame-drop", "float_ssim=0.049"), 1),
    ],
)
def test_demands(pair: tuple[str, ...], words: tuple[str, ...], code: int) -> None:
    result = vkssim(*pair, *words)
    assert result.exit_code == code
    assert ("drops by" in result.stderr) == (code == 1)
    assert "float_ssim" in result.stdout, "the table is there whatever the verdict"
    answer = json.loads(vkssim(*pair, *words, "--json").stdout)
    assert answer["passed"] == (code == 0)
    assert len(answer["demands"]) == len(words) // 2


def test_a_miss_is_not_rounded_to_a_hit(tmp_path: Path, pair: tuple[str, ...]) -> None:
    after = _report(tmp_path / "c.json", [score - 0.0010000004 for score in BEFORE])
    fail(1, "drops by 0.0010000004, allowed are 0.001\n", "compare", pair[1], after, "--max-drop", "float_ssim=0.001")
    succeed("compare", after, pair[1], "--max-drop", "float_ssim=0")


def test_a_score_that_does_not_exist_meets_none(tmp_path: Path, pair: tuple[str, ...]) -> None:
    missing = _report(tmp_path / "c.json", [0.9, math.nan, 0.95, 0.85])
    for words in (("--max-drop", "float_ssim=1"), ("--max-frame-drop", "float_ssim=1")):
        for pairing in ((pair[1], missing), (missing, pair[1])):
            fail(1, "drops by null", "compare", *pairing, *words)
    assert json.loads(vkssim("compare", pair[1], missing, "--json").stdout)["scores"]["float_ssim"]["max_drop_frame"] is None


def test_frames_that_both_have_are_compared(tmp_path: Path, pair: tuple[str, ...]) -> None:
    later = _report(tmp_path / "c.json", [0.7, 0.95, 0.85, 0.99], first=1)
    result = vkssim("compare", pair[1], later, "--json")
    assert "has 4 frames, " in result.stderr
    assert "the 3 that both have are compared" in result.stderr
    answer = json.loads(result.stdout)
    change = answer["scores"]["float_ssim"]
    assert (answer["frames"], answer["lost"], change["max_drop_frame"]) == (3, 1, 1)
    assert change["max_drop"] == pytest.approx(0.1)
    assert change["before"]["mean"] == pytest.approx(np.mean(BEFORE[1:]))
    assert change["after"]["mean"] == pytest.approx(np.mean([0.7, 0.95, 0.85]))


def test_lost_frames_meet_no_limit(tmp_path: Path, pair: tuple[str, ...]) -> None:
    """The frames that are left may all be better than before."""
    shorter = _report(tmp_path / "c.json", [0.91, 0.81])
    for limit in ("--max-drop", "--max-frame-drop"):
        lost = f"{shorter} lacks 2 frames of {pair[1]}, and frames that are lost meet no limit"
        result = fail(1, lost, "compare", pair[1], shorter, limit, "float_ssim=0.5", "--json")
        assert "drops by" not in result.stderr
        answer = json.loads(result.stdout)
        assert (answer["passed"], answer["lost"], answer["demands"][0]["met"]) == (False, 2, False)
        succeed("compare", shorter, pair[1], limit, "float_ssim=0.5")  # frames that are new are no loss
    succeed("compare", pair[1], shorter)  # nothing was demanded


def test_frames_are_matched_by_their_number_in_the_reference(tmp_path: Path, pair: tuple[str, ...]) -> None:
    later = _report(tmp_path / "c.json", BEFORE[2:], selection=Selection(skip_reference=1, offset=-1))
    result = vkssim("compare", pair[1], later, "--json")
    answer = json.loads(result.stdout)
    assert (answer["frames"], answer["lost"], answer["scores"]["float_ssim"]["max_drop"]) == (2, 2, 0)
    succeed("compare", later, pair[1], "--max-frame-drop", "float_ssim=0")


def test_another_reference_is_refused(tmp_path: Path, pair: tuple[str, ...]) -> None:
    other = _report(tmp_path / "c.json", BEFORE, reference="folder/s")
    words = ("compare", pair[1], other, "--max-drop", "float_ssim=1")
    refuse(f"the reference of {pair[1]} is r; the reference of {other} is s. --force compares them all the same", *words)
    assert "vkssim: warning: the reference of " in succeed(*words, "--force").stderr
    for reference in ("C:\\folder\\r", ""):
        succeed("compare", pair[1], _report(tmp_path / "d.json", BEFORE, reference=reference))


@pytest.mark.parametrize(
    ("read", "warning"),
    [
        ({"width": 64}, "a.json is of pictures of 32x24, "),
        ({"pictures": PictureOptions("32x24+0+2")}, "a.json is of pictures cropped to nothing, "),
    ],
)
def test_other_pictures_are_warned_of(tmp_path: Path, pair: tuple[str, ...], read: dict[str, Any], warning: str) -> None:
    assert warning in succeed(*pair[:2], _report(tmp_path / "b.json", BEFORE, **read)).stderr


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Scores a clip by some options, and gives the name of the report."""
    folder = tmp_path_factory.mktemp("scored")
    (row,) = ladder(folder, crfs=(30,))
    clips = [str(folder / row[name]) for name in ("reference", "distorted")]

    def score(*words: str) -> str:
        path = folder / f"scores{'_'.join(words)}.json"
        if not path.exists():
            words = words if "--feature" in words else (*TINY[2:], *words)
            succeed("score", "-r", clips[0], "-d", clips[1], "-o", str(path), "-q", "--backend", "cpu", *words)
        return str(path)

    return score


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--feature", "float_ssim=window=uniform8:scale=2"), "features: float_ssim"),
        (("--feature", "float_ssim=scale=1:window=uniform8"), "window gaussian11 against uniform8"),
        (("--feature", "float_ssim=scale=1:enable_db=true"), "features: float_ssim enable_db false against true"),
        (("--planes", "yuv"), "planes y against yuv"),
        (("--sync", "pts"), "sync index against pts"),
        (("--crop", "80x48+8+8"), "cropped to none against 80x48+8+8"),
        (("--scale", "48x32"), "width compared 96 against 48, height compared 64 against 32"),
    ],
)
def test_what_was_not_scored_alike_is_refused(scored: Callable[..., str], words: tuple[str, ...], said: str) -> None:
    pair = scored(), scored(*words)
    result = refuse(f"{pair[0]} and {pair[1]} were not scored alike: ", "compare", *pair, "--max-drop", "float_ssim=1")
    assert said in result.stderr
    forced = succeed("compare", *pair, "--force", "--json")
    assert "vkssim: warning: " in forced.stderr
    assert said in json.loads(forced.stdout)["warnings"][0]


@pytest.mark.parametrize(
    "words",
    [
        ("--feature", "float_ssim=scale=1:enable_lcs=true"),
        ("--feature", "float_ssim=scale=1:precision=exact"),
        ("--crop", "auto"),
        ("--scale", "reference"),
    ],
    ids=" ".join,
)
def test_what_comes_to_the_same_is_compared(scored: Callable[..., str], words: tuple[str, ...]) -> None:
    result = vkssim("compare", scored(), scored(*words), "--max-frame-drop", "float_ssim=0", "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    assert [json.loads(result.stdout)[key] for key in ("warnings", "notes")] == [[], []]


def test_frames_that_differ_are_warned_of_only(scored: Callable[..., str]) -> None:
    result = succeed("compare", scored("--subsample", "2"), scored(), "--max-frame-drop", "float_ssim=0")
    assert "differ: selection: subsample 2 against 1" in result.stderr
    assert "the 3 that both have are compared" in result.stderr


def test_reports_that_do_not_say_are_noted(tmp_path: Path, scored: Callable[..., str]) -> None:
    """Those of libvmaf's tools, and of versions that did not write it."""
    old = tmp_path / "old.json"
    old.write_text(
        json.dumps({key: value for key, value in json.loads(Path(scored()).read_text()).items() if key != "scoring"})
    )
    for name in (str(old), str(FIXTURES / "bbb_576x324.libvmaf.json")):
        result = succeed("compare", scored(), name, "--json")
        note = f"it is unknown how {name} was scored, by another tool or an older version"
        assert f"vkssim: note: {note}\n" in result.stderr
        assert json.loads(result.stdout)["notes"] == [note]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--max-drop", "float_ssim"), "--max-drop 'float_ssim'; it must be NAME=X or NAME:POOLING=X"),
        (("--max-drop", "float_ssim=-1"), "X a number of 0 or more"),
        (("--max-drop", "float_ssim=nan"), "X a number of 0 or more"),
        (("--max-drop", "float_ssim:=1"), "it must be NAME=X or NAME:POOLING=X"),
        (("--max-frame-drop", "float_ssim:min=1"), "--max-frame-drop 'float_ssim:min=1'; it must be NAME=X,"),
        (("--max-drop", "psnr=1"), "no score psnr in both reports. Available scores: float_ssim"),
        (("--max-drop", "float_ssim:p7=1"), "no pooled value p7. Available: min, max, mean"),
    ],
)
def test_impossible_demands(pair: tuple[str, ...], words: tuple[str, ...], message: str) -> None:
    fail(2, message, *pair, *words)


def test_reports_that_have_nothing_in_common(tmp_path: Path, pair: tuple[str, ...]) -> None:
    fail(2, "one has float_ssim, the other psnr", "compare", pair[1], _report(tmp_path / "c.json", AFTER, "psnr"))
    fail(2, "no frame is in both", "compare", pair[1], _report(tmp_path / "d.json", AFTER, first=9))
    fail(2, "cannot be read", "compare", pair[1], str(tmp_path / "none.json"))
