"""--live: a line of JSON for each frame, as soon as it is scored."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest

from ..support.clips import raw_bytes, raw_flags
from ..support.commands import pair_words, refuse, start_vkssim, succeed, vkssim, vkssim_process
from ..support.pictures import clip

LUMA = clip(5, 40, 48)
DISTORTED = np.roll(LUMA, 1, axis=2)
PATIENCE = 60  # seconds until a run that waits for what it will not get is ended


@pytest.fixture
def words(tmp_path: Path) -> tuple[str, ...]:
    """The words that score a pair of raw clips."""
    return pair_words(tmp_path, LUMA, DISTORTED)


def test_lines_are_the_frames_of_the_report(words: tuple[str, ...], tmp_path: Path) -> None:
    result = succeed(*words, "--live", "-o", str(tmp_path / "scores.json"))
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [list(line) for line in lines] == [["frameNum", "time", "metrics"]] * len(LUMA)
    frames = json.loads((tmp_path / "scores.json").read_text())["frames"]
    assert [(line["frameNum"], line["metrics"]) for line in lines] == [
        (frame["frameNum"], frame["metrics"]) for frame in frames
    ]
    assert "worst frames" in result.stderr, "the summary makes way"


def test_what_has_no_score_is_null(words: tuple[str, ...]) -> None:
    same = [words[2] if word == words[4] else word for word in words[:-1]]
    result = vkssim(*same, "float_ssim=scale=1:enable_db=true", "--live", "-q")
    assert [json.loads(line)["metrics"] for line in result.stdout.splitlines()] == [{"float_ssim": None}] * len(LUMA)


@pytest.mark.parametrize("backend", ["cpu", "vulkan"])
def test_a_line_does_not_wait_for_the_next_frame(words: tuple[str, ...], backend: str) -> None:
    """Each frame is written to the pipe only after the line of the one before it was read."""
    command = [*words[:4], "-", *raw_flags(LUMA), "--live", "-q", "--backend", backend, "--feature", "float_psnr"]
    with start_vkssim(*command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        guard = threading.Timer(PATIENCE, process.kill)
        guard.start()
        try:
            for number, frame in enumerate(DISTORTED):
                process.stdin.write(raw_bytes(frame[None]))
                process.stdin.flush()
                assert json.loads(process.stdout.readline())["frameNum"] == number
            process.stdin.close()
            assert process.stdout.read() == b""
        except BaseException:
            process.kill()
            raise
        finally:
            guard.cancel()
    assert process.returncode == 0


@pytest.mark.parametrize("output", [("--json",), ("-o", "-"), ("-o", "/dev/stdout"), ("-o", "-", "--csv")])
def test_report_on_standard_output_is_in_the_way(words: tuple[str, ...], output: tuple[str, ...]) -> None:
    refuse("give the report a file with --output", *words, "--live", *output)


def test_reader_that_goes_away(words: tuple[str, ...], tmp_path: Path) -> None:
    """The run goes on for the sake of its other outputs; where it has none it ends."""
    output = tmp_path / "scores.json"
    told = [_without_reader(*words, "--live", "-q", *more).stderr.decode() for more in (("-o", str(output)), ())]
    reason = "vkssim: standard output cannot be written: nobody reads it any more; "
    assert told == [f"{reason}the run went on without it\n", f"{reason}the run ended there\n"]
    assert len(json.loads(output.read_text())["frames"]) == len(LUMA)
    assert not output.with_name("scores.json.journal").exists()


def _without_reader(*words: str) -> subprocess.CompletedProcess[bytes]:
    reader, writer = os.pipe()
    os.close(reader)
    process = vkssim_process(*words, stdout=writer)
    os.close(writer)
    assert process.returncode == 2
    return process
