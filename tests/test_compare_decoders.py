"""tools/compare_decoders: it notices a decoder that gives other frames, and one that does not report damage."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from runpy import run_path
from types import SimpleNamespace
from typing import Any

import av
import numpy as np
import pytest
from click.testing import CliRunner

import vkssim
from vkssim.errors import InputError

from .support.children import in_child
from .support.coded import corpus
from .support.coded.clip import CodedClip

tool: Any = SimpleNamespace(**run_path(str(Path(__file__).parents[1] / "tools" / "compare_decoders"), run_name="tool"))
SOUND = "h264_pyramid.mkv"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the clip."""
    folder = tmp_path_factory.mktemp("clips")
    next(clip for clip in corpus.CLIPS if clip.name == SOUND).write(folder)
    return folder


CLIPS = corpus.shortened([clip for clip in corpus.SOUND if clip not in corpus.HEVC], 28)
"""All but those of HEVC, which frames/test_damage.py makes and decodes. Their second key frame is the 25th."""


@in_child
def _written(folder: Path) -> dict[str, str]:
    """Write the clips, and return why some cannot be written, by name."""
    reasons = {}
    for clip in CLIPS:
        if _has_own_child(clip):
            continue
        try:
            clip.write(folder)
        except Exception as error:
            reasons[clip.name] = repr(error)
    return reasons


def _has_own_child(clip: CodedClip) -> bool:
    """Return whether it must not share a child: SVT-AV1 raises the priority of what comes after it."""
    return getattr(clip, "encoder", None) == "libsvtav1"


def test_every_sound_clip_is_made_and_decodes(tmp_path: Path) -> None:
    """One child writes them: a fork takes longer than most clips do."""
    wrong = _written(tmp_path)
    for clip in (clip for clip in CLIPS if clip.name not in wrong):
        if _has_own_child(clip):
            clip.write(tmp_path)
        with av.open(str(tmp_path / clip.name)) as container:
            frames: list[Any] = list(container.decode(video=0))
        interlaced = any(frame.interlaced_frame for frame in frames)
        if (len(frames), interlaced) != (clip.frames, clip.field_order is not None):
            wrong[clip.name] = f"{len(frames)} of {clip.frames} frames, interlaced: {interlaced}"
    assert wrong == {}


def _by(decoder: str) -> Callable[[Any], Any]:
    def change(report: Any) -> Any:
        scoring = replace(report.scoring, distorted=replace(report.scoring.distorted, decoder=decoder))
        return replace(report, scoring=scoring)

    return change


def _one_bit(report: Any) -> Any:
    report.frames[9].metrics["float_ssim"] = float(np.nextafter(report.frames[9].metrics["float_ssim"], 0))
    return _by("device")(report)


def _fail(report: Any) -> Any:
    error = InputError("the device is gone")
    error.report = report
    raise error


@pytest.fixture(scope="module")
def score() -> Callable[..., Any]:
    """Return a score_files that scores each pair of clips once."""
    reports: dict[str, Any] = {}

    def score(reference: Path, distorted: Path, **words: Any) -> Any:
        key = repr((reference.name, distorted.name, words))
        if key not in reports:
            reports[key] = vkssim.score_files(reference, distorted, **words)
        return deepcopy(reports[key])

    return score


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        (_by("device"), 0, ["1 of 1 clips were decoded in hardware"]),
        (_one_bit, 1, [f"{SOUND}: scores differ", "from 9, by up to 1"]),
        (_fail, 1, [f"{SOUND}: only one of the two fails", "error: the device is gone"]),
        (_by("h264"), 2, ["nothing was compared"]),
    ],
    ids=["equal", "the last bit of a score", "an error of one", "the CPU decodes everything"],
)
def test_outcomes(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    score: Callable[..., Any],
    change: Callable[[Any], Any],
    code: int,
    said: list[str],
) -> None:
    """A vkssim stands in that decodes on a device, and whose report is changed by a function."""

    def stand_in(reference: Path, distorted: Path, *, decode: str, **words: Any) -> Any:
        report = score(reference, distorted, **words)
        return report if decode == "cpu" else change(report)

    monkeypatch.setitem(tool.score.__globals__, "score_files", stand_in)
    table = tmp_path / "table.json"
    words = ["--folder", str(folder), "--backend", "cpu", "--clip", SOUND, "--json", str(table)]
    result = CliRunner().invoke(tool.main, words)
    assert result.exit_code == code, result.output
    assert [text for text in said if text not in result.output] == []
    (row,) = json.loads(table.read_text())["clips"]
    assert (row["frames"], bool(row["wrong"])) == ([48, 48], code == 1)


def test_what_counts_as_a_difference() -> None:
    nan = float("nan")
    assert tool.differ({0: {"a": nan, "b": None}}, {0: {"a": nan, "b": None}}).equal
    assert tool.differ({0: {"a": 0.0}}, {0: {"a": -0.0}}).first == 0
    assert tool.differ({0: {"a": 0.5}, 1: {"a": 0.5}}, {0: {"a": 0.5}}).first == 1
    assert tool.differ({0: {"a": 0.5}}, {0: {"a": None}}).first == 0
    assert tool.differ({0: {"a": 0.5}, 1: {"a": 0.25}}, {0: {"a": 0.5}, 1: {"a": 0.5}}).greatest == 0.25


def test_damage_is_noticed_by_a_complaint_beyond_those_of_the_sound_clip() -> None:
    cpu = tool.Outcome({0: {"a": 0.5}}, [], "h264", 0)
    other = tool.Outcome({0: {"a": 0.25}}, ["usual"], "device", 0)
    assert tool.verdict(cpu, other, damaged=True, usual=["usual"]) == "damage is not noticed"
    assert tool.verdict(cpu, other, damaged=True, usual=[]) is None
    assert tool.verdict(cpu, cpu, damaged=True, usual=[]) is None
    refused = tool.Outcome({}, [f"error: CLIP: the cuda {tool.REFUSED}: its frames are yuv422p"], "", 0)
    assert tool.verdict(cpu, refused, damaged=False, usual=[]) is None
    assert tool.verdict(cpu, replace(refused, complaints=["error: no"]), damaged=False, usual=[]) == "scores differ"
