"""Test standard streams that are closed, full, or without a reader: no result is lost without an error."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ..support.clips import raw_bytes, raw_flags, write
from ..support.commands import TINY, run_program, vkssim_process
from ..support.pictures import clip

Run = Callable[..., subprocess.CompletedProcess[bytes]]

LUMA = clip(2, 32, 32)

CLOSED = "vkssim: standard output cannot be written: it is closed"
FULL = "vkssim: standard output cannot be written: No space left on device"


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """The words that score a pair of raw clips."""
    path = write(tmp_path / "clip.yuv", raw_bytes(LUMA))
    return ["score", "-r", path, "-d", path, *raw_flags(LUMA), *TINY]


def _closed(descriptors: str, *words: str) -> subprocess.CompletedProcess[bytes]:
    closing = " ".join(f"{descriptor}>&-" for descriptor in descriptors.split(","))
    return run_program("sh", "-c", f'exec "$@" {closing}', "sh", sys.executable, "-m", "vkssim", *words)


def _closed_output(*words: str) -> subprocess.CompletedProcess[bytes]:
    return _closed("1", *words)


def _full(*words: str) -> subprocess.CompletedProcess[bytes]:
    with open("/dev/full", "wb") as full:
        return vkssim_process(*words, stdout=full)


def test_messages_that_cannot_be_written_change_nothing(words: list[str], tmp_path: Path) -> None:
    output = tmp_path / "scores.json"
    whole = _closed("2", *words, "-o", str(output))
    assert (whole.returncode, b"float_ssim" in whole.stdout) == (0, True)
    assert len(json.loads(output.read_text())["frames"]) == len(LUMA)
    with open("/dev/full", "wb") as full:
        again = vkssim_process(*words, "--strict", "--fail-under", "float_ssim=2", stderr=full)
    assert again.returncode == 1


def test_a_table_that_cannot_be_written_costs_no_file(words: list[str], tmp_path: Path) -> None:
    files = [tmp_path / "scores.json", tmp_path / "page.html"]
    process = _closed("1", *words, "-o", str(files[0]), "--html", str(files[1]))
    written = [f"vkssim: wrote {file}" for file in files]
    assert (process.returncode, process.stderr.decode().splitlines()) == (2, [*written, CLOSED])
    assert all(file.stat().st_size for file in files)


def test_nothing_to_print_needs_no_standard_output(words: list[str], tmp_path: Path) -> None:
    process = _closed("0,1,2", *words, "-q", "-o", str(tmp_path / "scores.csv"))
    assert process.returncode == 0
    assert (tmp_path / "scores.csv").read_text().startswith("Frame,float_ssim")


@pytest.mark.parametrize(
    ("more", "message"), [(["--json"], CLOSED), (["--json"], FULL), (["--live"], FULL), ([], FULL)], ids=str
)
def test_a_result_that_cannot_be_written_is_told(words: list[str], more: list[str], message: str) -> None:
    process = _closed("1", *words, *more) if message == CLOSED else _full(*words, *more)
    told = process.stderr.decode()
    assert process.returncode == 2, told
    assert message in told
    assert "Traceback" not in told
    assert "fault of vkssim" not in told


@pytest.mark.parametrize("command", [["features"], ["score", "--help"]], ids=str)
def test_every_command_says_so(command: list[str]) -> None:
    process = _full(*command)
    assert (process.returncode, process.stderr.decode()) == (2, f"{FULL}\n")


def test_a_closed_standard_input_is_no_clip(words: list[str]) -> None:
    process = _closed("0", *words[:4], "-", *words[5:])
    assert process.returncode == 2
    assert b"standard input is closed; pipe the clip into it" in process.stderr


def test_no_file_gets_the_number_of_a_closed_stream(tmp_path: Path) -> None:
    """What a driver prints to standard error must not land in a file that happens to be its descriptor."""
    program = """
import os
from vkssim.cli.streams import install
install()
with open("results", "wb") as file:
    number = file.fileno()
os.write(2, b"a warning of the driver")
raise SystemExit(number)
"""
    words = ("sh", "-c", 'exec "$@" 1>&- 2>&-', "sh", sys.executable, "-c", program)
    process = run_program(*words, cwd=tmp_path)
    assert process.returncode > 2
    assert (tmp_path / "results").read_bytes() == b""
