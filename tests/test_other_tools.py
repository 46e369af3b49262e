"""Run the command lines of docs/python.md, with the FFmpeg of the wheel imageio-ffmpeg.

The backend is NumPy, because the lines are about pipes and exit codes: kernels would be compiled for every process.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import imageio_ffmpeg
import pytest

import vkssim

from .ladder.ladders import RATE, encode
from .support.commands import run_program
from .support.pictures import clip

PAGE = (Path(__file__).parents[1] / "docs" / "python.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
FRAMES = 4
SKIPPED = 2
"""The frames before the chunk."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The clips that the page names, and a folder `programs` with `ffmpeg` and `vkssim`."""
    made = tmp_path_factory.mktemp("tools")
    luma = clip(FRAMES, 192, 192)
    encode(made / "reference.mp4", luma, crf="1", preset="ultrafast")
    encode(made / "distorted.mp4", luma, crf="40", preset="ultrafast")
    (made / "programs").mkdir()
    (made / "programs" / "ffmpeg").symlink_to(imageio_ffmpeg.get_ffmpeg_exe())
    program = made / "programs" / "vkssim"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m vkssim "$@" --backend cpu\n')
    program.chmod(0o755)
    return made


def _run(folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": f"{folder / 'programs'}:{os.environ['PATH']}"}
    return run_program("bash", "-o", "pipefail", "-c", script, cwd=folder, environment=environment, text=True)


def _block(word: str) -> str:
    found: list[str] = [block for block in BLOCKS if word in block]
    assert len(found) == 1
    return found[0]


def _score(folder: Path, pooling: str, distorted: str = "distorted.mp4", skip: int = 0) -> str:
    selection = vkssim.Selection(skip_reference=skip, count=FRAMES - skip)
    clips = (str(folder / "reference.mp4"), str(folder / distorted))
    report = vkssim.score_files(*clips, features=["float_ms_ssim"], selection=selection, backend="cpu")
    return f"{report.pooled()['float_ms_ssim'][pooling]:.6f}"


def test_a_clip_from_ffmpegs_pipe_has_the_scores_of_the_file(folder: Path) -> None:
    process = _run(folder, _block("-d - "))
    assert (process.returncode, process.stdout) == (0, _score(folder, "mean") + "\n"), process.stderr


def test_the_reference_may_come_from_the_pipe(folder: Path) -> None:
    process = _run(folder, _block("-r - "))
    assert process.returncode == 0, process.stderr
    report = json.loads((folder / "scores.json").read_text())
    assert len(report["frames"]) == FRAMES
    assert f"{report['pooled_metrics']['float_ms_ssim']['mean']:.6f}" == _score(folder, "mean")


def test_the_loop_ends_with_the_first_setting_that_meets_the_limit(folder: Path) -> None:
    process = _run(folder, _block("for crf in"))
    assert process.returncode == 0, process.stderr
    scores = [float(line) for line in process.stdout.splitlines()]
    assert len(scores) > 1, "the clip has to make the loop go round"
    assert [score >= 0.98 for score in scores] == [False] * (len(scores) - 1) + [True]
    assert process.stdout.splitlines()[-1] == _score(folder, "p5", "encoded.mp4")


def test_the_loop_ends_if_a_clip_cannot_be_read(folder: Path) -> None:
    process = _run(folder, _block("for crf in").replace("-d encoded.mp4", "-d missing.mp4"))
    assert process.returncode != 0
    assert process.stderr.count("missing.mp4") == 1


def test_a_chunk_is_compared_with_its_part_of_the_reference(folder: Path) -> None:
    lines = (
        _block("chunk.mp4")
        .replace("0.96", str(float(SKIPPED / RATE)))
        .replace("20", str(FRAMES - SKIPPED))
        .replace("24", str(SKIPPED))
    )
    process = _run(folder, lines)
    assert process.returncode == 0, process.stderr
    assert (process.stdout, process.stderr) == (_score(folder, "p5", "chunk.mp4", SKIPPED) + "\n", "")


def test_every_block_of_the_page_is_run() -> None:
    assert len(BLOCKS) == 4
