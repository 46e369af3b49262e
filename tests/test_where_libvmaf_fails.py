"""Inputs on which libvmaf's tool crashes or gives wrong results: vkssim scores them, or gives an error that names the cause.

Each test names the behaviour of libvmaf's tool (v3.2.0), if it differs. The tool also crashes at odd sizes of 4:2:0, 4:2:2 and
grey Y4M, or if sizes or depths differ, and scores containers as raw samples: tests/frames/ has these.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from vkssim.cli import main

from .support.clips import raw_bytes, raw_flags, write, y4m_bytes
from .support.commands import TINY, fail, refuse, succeed, vkssim_process
from .support.pictures import clip

LUMA = clip(5)
DISTORTED = np.roll(LUMA, 1, axis=2)


def _frames(output: str) -> list[float]:
    """Return the scores of a JSON report."""
    return [frame["metrics"]["float_ssim"] for frame in json.loads(output)["frames"]]


def _score(reference: str, distorted: str, *words: str) -> list[float]:
    """Return the scores of a run that must succeed."""
    return _frames(succeed("score", "-r", reference, "-d", distorted, "--json", *TINY, *words).stdout)


def _expected(folder: Path, frames: int = 5) -> list[float]:
    """Return the scores of the same luma, read from files without chroma."""
    sides = ((folder / "luma_ref", LUMA), (folder / "luma_dis", DISTORTED))
    return _score(*(write(path, raw_bytes(luma[:frames], "400")) for path, luma in sides), *raw_flags(LUMA, "400"))


def test_w_h_given_with_a_y4m_file(tmp_path: Path) -> None:
    """libvmaf's tool reads the header as pixels; vkssim uses the file's own header, and a contradiction is an error."""
    paths = [write(tmp_path / f"{name}.y4m", y4m_bytes(luma)) for name, luma in (("ref", LUMA), ("dis", DISTORTED))]
    assert _score(*paths, "-w", "32", "-h", "24") == _score(*paths) == _expected(tmp_path)
    for flag, value in (("-w", "48"), ("-h", "48"), ("-b", "10")):
        refuse(f"{value} contradicts it", "score", *paths, *TINY, flag, value)


@pytest.mark.parametrize("kind", ["raw", "y4m", "pipe"])
def test_last_frame_cut_short(tmp_path: Path, kind: str) -> None:
    """libvmaf's tool exits 234 and drops every score; vkssim writes the scores of the complete frames and names the byte.

    A raw file, whose size is known beforehand, has to be allowed to end so: its description is most likely wrong.
    """
    make = y4m_bytes if kind == "y4m" else raw_bytes
    data = make(LUMA)[:-7]
    reference = write(tmp_path / "ref", data)
    distorted = write(tmp_path / "dis", make(DISTORTED))
    output = tmp_path / "scores.json"
    flags = () if kind == "y4m" else raw_flags(LUMA)
    words = ("score", "-r", "-" if kind == "pipe" else reference, "-d", distorted, *TINY, *flags, "-q", "-o", str(output))
    if kind == "raw":
        refuse("not a whole number of frames: 4 of", *words)
        assert not output.exists()
        words += ("--allow-partial",)
    result = CliRunner().invoke(main, words, input=data if kind == "pipe" else None)
    assert result.exit_code == 2
    assert isinstance(result.exception, SystemExit), "and no traceback"
    assert f"ends at byte {len(data)}, within frame 4" in result.stderr
    assert _frames(output.read_text()) == _expected(tmp_path, 4)


@pytest.mark.parametrize("shorter", ["ref", "dis"])
def test_one_file_shorter(tmp_path: Path, shorter: str) -> None:
    """The overlap is scored, with a warning. --strict gives exit code 1, and the scores are still written."""
    sides = (("ref", LUMA), ("dis", DISTORTED))
    paths = [write(tmp_path / f"{name}.y4m", y4m_bytes(luma[: 3 if name == shorter else 5])) for name, luma in sides]
    output = tmp_path / "scores.json"
    words = ("score", *paths, *TINY, "-q", "-o", str(output))
    assert f"warning: {tmp_path / shorter}.y4m is shorter" in succeed(*words).stderr
    assert _frames(output.read_text()) == _expected(tmp_path, 3)
    output.unlink()
    fail(1, "--strict", *words, "--strict")
    assert _frames(output.read_text()) == _expected(tmp_path, 3)


@pytest.mark.parametrize("output", ["absent/scores.json", "folder.json"])
def test_output_path_cannot_be_written(tmp_path: Path, output: str) -> None:
    """The error comes before the first frame, and even before the input is opened, which does not exist."""
    (tmp_path / "folder.json").mkdir()
    path = str(tmp_path / output)
    assert "absent.y4m" not in refuse(path, "score", "absent.y4m", "absent.y4m", *TINY, "-o", path).stderr


def test_unknown_flag() -> None:
    """libvmaf's tool exits with 0; vkssim refuses the flag."""
    assert "--no_such_flag" in refuse("No such option", "score", "a.y4m", "a.y4m", "--no_such_flag").stderr


def test_empty_file_all_frames_skipped(tmp_path: Path) -> None:
    """The error names the reason. A Y4M header without a frame counts as empty too."""
    path, empty = write(tmp_path / "clip.y4m", y4m_bytes(LUMA)), write(tmp_path / "empty.y4m", b"")
    header = write(tmp_path / "header.y4m", y4m_bytes(LUMA[:0]))
    for words, said in (
        ((path, empty), "empty.y4m is empty"),
        ((header, path), "header.y4m or "),
        ((path, path, "--frame_skip_ref", "5"), "--frame_skip_ref 5 leaves none of"),
        ((path, path, "--frame_skip_dist", "9"), "--frame_skip_dist 9 leaves none of"),
    ):
        refuse(said, "score", *words, *TINY)


@pytest.mark.parametrize("missing", ["driver", "file", "loader"])
def test_no_gpu_or_no_driver(tmp_path: Path, missing: str) -> None:
    """The error says what to install or to repair, and no other backend replaces the missing one."""
    (tmp_path / "vulkan.py").write_text("raise OSError('cannot load library libvulkan.so')")
    environment = {
        "driver": {"VK_LOADER_DRIVERS_DISABLE": "*"},
        "file": dict.fromkeys(("VK_DRIVER_FILES", "VK_ICD_FILENAMES"), str(tmp_path / "absent.json")),
        "loader": {"PYTHONPATH": str(tmp_path)},
    }[missing]
    path = write(tmp_path / "clip.y4m", y4m_bytes(LUMA))
    process = vkssim_process("score", path, path, "--feature", "float_ssim", "--json", environment=environment)
    assert (process.returncode, process.stdout) == (3, b"")
    assert (b"absent.json" if missing == "file" else b"mesa-vulkan-drivers") in process.stderr
    assert b"Run `vkssim doctor` for a fix" in process.stderr
    assert b"Traceback" not in process.stderr
