"""float_psnr from files to every output: a score in dB, which no part takes for a similarity."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from vkssim import Selection, score_files
from vkssim.errors import OptionError

from ..support.clips import write, y4m_bytes
from ..support.commands import vkssim
from ..support.golden import clip_paths
from ..support.pictures import clip

BOTH = ("--backend", "cpu", "--worst", "2", "--feature", "float_psnr", "--feature", "float_ssim=scale=1")


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str, str]:
    """A reference, a distorted clip whose third frame is the worst, and one that is worse by a little."""
    folder = tmp_path_factory.mktemp("clips")
    luma = clip(5, 48, 64)
    coarse, coarser = luma // 4 * 4, luma // 8 * 8
    coarse[2] = luma[2] // 32 * 32
    names = ("ref", luma), ("dis", coarse), ("worse", coarser)
    return tuple(write(folder / f"{name}.y4m", y4m_bytes(picture)) for name, picture in names)  # type: ignore[return-value]


def _score(clips: tuple[str, ...], *words: str) -> tuple[int, str, str]:
    result = vkssim("score", "-r", clips[0], "-d", clips[1], *BOTH, *words)
    return result.exit_code, result.stdout, result.stderr


def _json(clips: tuple[str, ...], path: Path) -> Path:
    assert _score(clips, "-o", str(path))[0] == 0
    return path


def test_a_report_has_decibels_of_similarities_alone(clips: tuple[str, str, str], tmp_path: Path) -> None:
    path = _json(clips, tmp_path / "scores.json")
    found = json.loads(path.read_text("utf-8"))
    assert "mean_db" in found["pooled_metrics"]["float_ssim"]
    assert "mean_db" not in found["pooled_metrics"]["float_psnr"]
    facts = {feature["name"]: feature for feature in found["scoring"]["features"]}
    assert (facts["float_psnr"]["options"], facts["float_psnr"]["limit_db"]) == ({}, 60.0)
    scores = [frame["metrics"]["float_psnr"] for frame in found["frames"]]
    assert 20 < min(scores) < max(scores) < 60
    values = np.array(scores)
    expected = len(values) / np.sum(1 / (values + 1)) - 1  # as libvmaf pools it, whatever the scale
    assert found["pooled_metrics"]["float_psnr"]["harmonic_mean"] == pytest.approx(expected, abs=2e-6)


def test_limits_are_in_its_own_scale(clips: tuple[str, str, str]) -> None:
    assert _score(clips, "--fail-under", "float_psnr=30")[0] == 0
    code, _, said = _score(clips, "--fail-under", "float_psnr:min=40")
    assert (code, "min of float_psnr is" in said) == (1, True)
    code, _, said = _score(clips, "--fail-under", "float_psnr:mean_db=3")
    assert (code, "float_psnr has no mean_db" in said) == (2, True)


def test_the_worst_frames_are_those_of_the_least_decibels(clips: tuple[str, str, str]) -> None:
    _, shown, _ = _score(clips)
    table = shown.partition("worst frames by float_psnr")[2]
    assert next(line for line in table.splitlines() if "│" in line).split("│")[1].strip() == "2"


def test_two_reports_are_compared_in_decibels(clips: tuple[str, str, str], tmp_path: Path) -> None:
    before = _json(clips, tmp_path / "before.json")
    after = _json((clips[0], clips[2]), tmp_path / "after.json")
    result = vkssim("compare", str(before), str(after), "--max-frame-drop", "float_psnr=1")
    assert (result.exit_code, "float_psnr" in result.stderr) == (1, True)
    assert vkssim("compare", str(before), str(after), "--max-frame-drop", "float_psnr=10").exit_code == 0


def test_a_page_offers_no_decibels_of_decibels(clips: tuple[str, str, str], tmp_path: Path) -> None:
    scores, target = _json(clips, tmp_path / "scores.json"), tmp_path / "page.html"
    assert vkssim("report", str(scores), "-o", str(target), "--worst", "0").exit_code == 0
    page = target.read_text("utf-8")
    assert '{"name":"float_psnr","decibels":false,"scale":null},{"name":"float_ssim","decibels":true,"scale":null}' in page


def test_the_defaults_are_two_similarities(clips: tuple[str, str, str]) -> None:
    with pytest.raises(OptionError, match="float_psnr is not scored"):
        score_files(clips[0], clips[1], features="float_ssim=scale=1", backend="cpu", pooled=["float_psnr"])
    assert "float_psnr" in vkssim("features").stdout
    assert "Default: float_ms_ssim and float_ssim" in " ".join(vkssim("score", "--help").stdout.split())


def test_all_is_the_average_of_ffmpegs_psnr_filter() -> None:
    """FFmpeg n9.0.2, `-lavfi psnr=stats_file=FILE` of the clips in fixtures/, which writes two decimals."""
    report = score_files(*clip_paths("bbb_576x324"), features="float_psnr", planes="all", selection=Selection(count=2))
    expected = {"y": (31.15, 31.07), "cb": (37.13, 37.10), "cr": (40.89, 40.86), "all": (32.54, 32.46)}
    for plane, scores in expected.items():
        np.testing.assert_allclose(report.column(f"float_psnr_{plane}"), scores, rtol=0, atol=0.005)
