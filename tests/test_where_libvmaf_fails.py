"""Inputs on which libvmaf's tool crashes or gives wrong results: vkssim scores them, or gives an error that names the cause.

Each test names the behaviour of libvmaf's tool (v3.2.0), where it differs.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from .frames.encoding import encode_frames, flat_chroma
from .support.clips import raw_bytes, raw_flags, write, y4m_bytes
from .support.commands import TINY, vkssim, vkssim_process
from .support.pictures import Picture, clip

LUMA = clip(5)
DISTORTED = np.roll(LUMA, 1, axis=2)


def _frames(output: str) -> list[float]:
    """Return the scores of a JSON report."""
    return [frame["metrics"]["float_ssim"] for frame in json.loads(output)["frames"]]


def _score(reference: str, distorted: str, *words: str) -> list[float]:
    """Return the scores of a run that must succeed."""
    result = vkssim("score", "-r", reference, "-d", distorted, "--json", *TINY, *words)
    assert result.exit_code == 0, result.stderr
    return _frames(result.stdout)


def _expected(folder: Path, reference: Picture, distorted: Picture, bits: int = 8) -> list[float]:
    """Return the scores of the same luma, read from files without chroma."""
    paths = [write(folder / name, raw_bytes(luma, "400")) for name, luma in (("luma_ref", reference), ("luma_dis", distorted))]
    return _score(*paths, *raw_flags(reference, "400", bits))


@pytest.mark.parametrize("bits", [8, 10])
@pytest.mark.parametrize(("width", "height"), [(33, 24), (32, 25), (35, 27)])
def test_odd_width_or_height_420_raw(tmp_path: Path, width: int, height: int, bits: int) -> None:
    """libvmaf's tool crashes; vkssim computes the size of the chroma as ceil(w/2) x ceil(h/2)."""
    luma = clip(3, height, width, bits)
    distorted = np.roll(luma, 1, axis=2)
    reference = write(tmp_path / "ref.yuv", raw_bytes(luma))
    scores = _score(reference, write(tmp_path / "dis.yuv", raw_bytes(distorted)), *raw_flags(luma, "420", bits))
    assert scores == _expected(tmp_path, luma, distorted, bits)


@pytest.mark.parametrize(("space", "pixel_format"), [("422", "422"), ("mono", "400"), ("420paldv", "420")])
def test_y4m_422_8_bit_mono_420paldv(tmp_path: Path, space: str, pixel_format: str) -> None:
    """libvmaf's tool crashes; vkssim scores the luma."""
    reference = write(tmp_path / "ref.y4m", y4m_bytes(LUMA, space, pixel_format))
    distorted = write(tmp_path / "dis.y4m", y4m_bytes(DISTORTED, space, pixel_format))
    assert _score(reference, distorted) == _expected(tmp_path, LUMA, DISTORTED)


def test_w_h_given_with_a_y4m_file(tmp_path: Path) -> None:
    """libvmaf's tool reads the header as pixels; vkssim uses the file's own header, and a contradiction is an error."""
    paths = [write(tmp_path / f"{name}.y4m", y4m_bytes(luma)) for name, luma in (("ref", LUMA), ("dis", DISTORTED))]
    assert _score(*paths, "-w", "32", "-h", "24") == _score(*paths) == _expected(tmp_path, LUMA, DISTORTED)
    for flag, value in (("-w", "48"), ("-h", "48"), ("-b", "10")):
        result = vkssim("score", "-r", paths[0], "-d", paths[1], *TINY, flag, value)
        assert result.exit_code == 2
        assert f"{value} contradicts it" in result.stderr


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
        refused = vkssim(*words)
        assert (refused.exit_code, output.exists()) == (2, False)
        assert "not a whole number of frames: 4 of" in refused.stderr
        words += ("--allow-partial",)
    process = vkssim_process(*words, stdin=data if kind == "pipe" else None)
    assert process.returncode == 2
    assert f"ends at byte {len(data)}, within frame 4".encode() in process.stderr
    assert b"Traceback" not in process.stderr
    assert _frames(output.read_text()) == _expected(tmp_path, LUMA[:4], DISTORTED[:4])


@pytest.mark.parametrize("shorter", ["ref", "dis"])
def test_one_file_shorter(tmp_path: Path, shorter: str) -> None:
    """The overlap is scored, with a warning. --strict gives exit code 1, and the scores are still written."""
    lengths = {"ref": 5, "dis": 5, shorter: 3}
    reference = write(tmp_path / "ref.y4m", y4m_bytes(LUMA[: lengths["ref"]]))
    distorted = write(tmp_path / "dis.y4m", y4m_bytes(DISTORTED[: lengths["dis"]]))
    output = tmp_path / "scores.json"
    words = ("score", "-r", reference, "-d", distorted, *TINY, "-q", "-o", str(output))
    expected = _expected(tmp_path, LUMA[:3], DISTORTED[:3])
    lenient = vkssim(*words)
    assert lenient.exit_code == 0
    assert f"warning: {tmp_path / shorter}.y4m is shorter" in lenient.stderr
    assert _frames(output.read_text()) == expected
    output.unlink()
    strict = vkssim(*words, "--strict")
    assert strict.exit_code == 1
    assert "--strict" in strict.stderr
    assert _frames(output.read_text()) == expected


@pytest.mark.parametrize(
    ("other", "space", "described"),
    [(clip(5, 26, 32), "420", "32x26 with 8 bits"), (clip(5, bits=10), "420p10", "32x24 with 10 bits")],
)
def test_sizes_or_depths_differ(tmp_path: Path, other: Picture, space: str, described: str) -> None:
    """libvmaf's tool exits 255 or crashes; the message of vkssim describes both clips."""
    paths = write(tmp_path / "ref.y4m", y4m_bytes(LUMA)), write(tmp_path / "dis.y4m", y4m_bytes(other, space))
    result = vkssim("score", "-r", paths[0], "-d", paths[1], *TINY)
    assert result.exit_code == 2
    assert "32x24 with 8 bits" in result.stderr
    assert described in result.stderr


@pytest.mark.parametrize("output", ["absent/scores.json", "folder.json"])
def test_output_path_cannot_be_written(tmp_path: Path, output: str) -> None:
    """The error comes before the first frame, and even before the input is opened, which does not exist."""
    (tmp_path / "folder.json").mkdir()
    result = vkssim("score", "-r", "absent.y4m", "-d", "absent.y4m", *TINY, "-o", str(tmp_path / output))
    assert result.exit_code == 2
    assert str(tmp_path / output) in result.stderr
    assert "absent.y4m" not in result.stderr


def test_unknown_flag(tmp_path: Path) -> None:
    """libvmaf's tool exits with 0; vkssim refuses the flag."""
    path = write(tmp_path / "clip.y4m", y4m_bytes(LUMA))
    result = vkssim("score", "-r", path, "-d", path, *TINY, "--no_such_flag")
    assert result.exit_code == 2
    assert "No such option" in result.stderr
    assert "--no_such_flag" in result.stderr


def test_empty_file_all_frames_skipped(tmp_path: Path) -> None:
    """The error names the reason. A Y4M header without a frame counts as empty too."""
    path, empty = write(tmp_path / "clip.y4m", y4m_bytes(LUMA)), write(tmp_path / "empty.y4m", b"")
    header = write(tmp_path / "header.y4m", y4m_bytes(LUMA[:0]))
    for words, said in (
        (("-r", path, "-d", empty), "empty.y4m is empty"),
        (("-r", header, "-d", path), "header.y4m or "),
        (("-r", path, "-d", path, "--frame_skip_ref", "5"), "--frame_skip_ref 5 leaves none of"),
        (("-r", path, "-d", path, "--frame_skip_dist", "9"), "--frame_skip_dist 9 leaves none of"),
    ):
        result = vkssim("score", *words, *TINY)
        assert result.exit_code == 2
        assert said in result.stderr


def test_container_file_given_as_raw(tmp_path: Path) -> None:
    """libvmaf's tool scores garbage; vkssim recognises the container by its first bytes."""
    pairs = [(clip(5, 48, 64, seed=seed), tmp_path / f"{seed}.mkv") for seed in (1, 2)]
    paths = [encode_frames(path, flat_chroma(luma), "ffv1") for luma, path in pairs]
    scores = _score(*paths, *raw_flags(pairs[0][0]))
    assert scores == _expected(tmp_path, pairs[0][0], pairs[1][0])


@pytest.mark.parametrize("command", ["score", "devices"])
@pytest.mark.parametrize(
    ("missing", "named"), [("driver", b"mesa-vulkan-drivers"), ("file", b"absent.json"), ("loader", b"mesa-vulkan-drivers")]
)
def test_no_gpu_or_no_driver(tmp_path: Path, missing: str, named: bytes, command: str) -> None:
    """The error says what to install or to repair, and no other backend replaces the missing one."""
    nowhere = str(tmp_path / "absent.json")
    environment = {"VK_DRIVER_FILES": nowhere, "VK_ICD_FILENAMES": nowhere}
    if missing == "driver":
        environment = {"VK_LOADER_DRIVERS_DISABLE": "*"}
    if missing == "loader":
        (tmp_path / "vulkan.py").write_text("raise OSError('cannot load library libvulkan.so')")
        environment = {"PYTHONPATH": str(tmp_path)}
    path = write(tmp_path / "clip.y4m", y4m_bytes(LUMA))
    words = ("score", "-r", path, "-d", path, "--feature", "float_ssim", "--json") if command == "score" else ("devices",)
    process = vkssim_process(*words, environment=environment)
    assert process.returncode == 3
    assert named in process.stderr
    assert b"`vkssim doctor` finds out what is missing" in process.stderr
    assert b"Traceback" not in process.stderr
    assert process.stdout == b""
