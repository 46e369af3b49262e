"""tools/compare_decoders: it notices a decoder that gives other frames, and one that says nothing of damage."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import vkssim
from vkssim.errors import InputError

from .support import compared_scores
from .support.coded_clips import CLIPS
from .support.compared_scores import REFUSED, Outcome, differ, verdict

TOOL = Path(__file__).parents[1] / "tools" / "compare_decoders"
SOUND = "h264_pyramid.mkv"

Change = Callable[[Any], Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the clip."""
    folder = tmp_path_factory.mktemp("clips")
    next(clip for clip in CLIPS if clip.name == SOUND).write(folder)
    return folder


@pytest.fixture(scope="module")
def tool() -> Any:
    loader = SourceFileLoader("compare_decoders", str(TOOL))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def _run(tool: Any, folder: Path, *words: str) -> Result:
    return CliRunner().invoke(tool.main, ["--folder", str(folder), "--backend", "cpu", *words])


@pytest.fixture
def hardware(monkeypatch: pytest.MonkeyPatch) -> Callable[[Change], None]:
    """Stand in for a vkssim that decodes on a device, and whose report is changed by a function."""
    score_files: Any = vkssim.score_files
    options = {"backend": "cpu", "features": "float_ssim"}

    def use(change: Change) -> None:
        def stand_in(reference: Path, distorted: Path, *, decode: str, **words: Any) -> Any:
            report = score_files(reference, distorted, **{**words, **options})
            return report if decode == "cpu" else change(_by("device", report))

        monkeypatch.setattr(compared_scores, "score_files", stand_in)

    return use


def _by(decoder: str, report: Any) -> Any:
    scoring = replace(report.scoring, distorted=replace(report.scoring.distorted, decoder=decoder))
    return replace(report, scoring=scoring)


def _one_bit(report: Any) -> Any:
    report.frames[9].metrics["float_ssim"] = float(np.nextafter(report.frames[9].metrics["float_ssim"], 0))
    return report


def test_equal_scores(tool: Any, folder: Path, hardware: Callable[[Change], None], tmp_path: Path) -> None:
    hardware(lambda report: report)
    result = _run(tool, folder, "--clip", SOUND, "--json", str(tmp_path / "table.json"))
    assert result.exit_code == 0, result.output
    assert "1 of 1 clips were decoded in hardware" in result.stdout
    (row,) = json.loads((tmp_path / "table.json").read_text())["clips"]
    assert (row["decoder"], row["frames"], row["equal"], row["wrong"]) == ("device", [48, 48], True, None)


def test_a_score_that_differs_in_its_last_bit(tool: Any, folder: Path, hardware: Callable[[Change], None]) -> None:
    hardware(_one_bit)
    result = _run(tool, folder, "--clip", SOUND)
    assert result.exit_code == 1
    assert f"{SOUND}: scores differ" in result.stderr
    assert "from 9, by up to 1" in result.stdout


def test_an_error_of_one_alone(tool: Any, folder: Path, hardware: Callable[[Change], None]) -> None:
    def fail(report: Any) -> Any:
        error = InputError("the device is gone")
        error.report = report
        raise error

    hardware(fail)
    result = _run(tool, folder, "--clip", SOUND)
    assert result.exit_code == 1
    assert f"{SOUND}: only one of the two fails" in result.stderr
    assert "error: the device is gone" in result.stdout


def test_nothing_is_proved_where_the_cpu_decodes_everything(
    tool: Any, folder: Path, hardware: Callable[[Change], None]
) -> None:
    hardware(lambda report: _by("h264", report))
    result = _run(tool, folder, "--clip", SOUND)
    assert result.exit_code == 2
    assert "nothing was compared" in result.stderr


def test_what_counts_as_a_difference() -> None:
    nan = float("nan")
    assert differ({0: {"a": nan, "b": None}}, {0: {"a": nan, "b": None}}).equal
    assert differ({0: {"a": 0.0}}, {0: {"a": -0.0}}).first == 0
    assert differ({0: {"a": 0.5}, 1: {"a": 0.5}}, {0: {"a": 0.5}}).first == 1
    assert differ({0: {"a": 0.5}}, {0: {"a": None}}).first == 0
    assert differ({0: {"a": 0.5}, 1: {"a": 0.25}}, {0: {"a": 0.5}, 1: {"a": 0.5}}).greatest == 0.25


def test_damage_is_noticed_where_there_is_a_complaint_that_the_sound_clip_does_not_draw() -> None:
    cpu = Outcome({0: {"a": 0.5}}, [], "h264", 0)
    other = Outcome({0: {"a": 0.25}}, ["usual"], "device", 0)
    assert verdict(cpu, other, damaged=True, usual=["usual"]) == "damage is not noticed"
    assert verdict(cpu, other, damaged=True, usual=[]) is None
    assert verdict(cpu, other, damaged=False, usual=[]) == "scores differ"
    assert verdict(cpu, cpu, damaged=True, usual=[]) is None
    refused = Outcome({}, [f"error: CLIP: the cuda {REFUSED}: its frames are yuv422p"], "", 0)
    assert verdict(cpu, refused, damaged=False, usual=[]) is None
    assert verdict(cpu, replace(refused, complaints=["error: no"]), damaged=False, usual=[]) == "scores differ"
