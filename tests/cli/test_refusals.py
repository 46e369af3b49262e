"""Places that cannot be written and machines without a driver: `vkssim score` says so at once, with its exit code."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..support.clips import write, y4m_bytes
from ..support.commands import TINY, vkssim, vkssim_process
from ..support.pictures import clip


@pytest.mark.parametrize("output", ["absent/scores.json", "folder.json"])
def test_output_path_cannot_be_written(tmp_path: Path, output: str) -> None:
    """The error comes before the first frame, and even before the input is opened, which does not exist."""
    (tmp_path / "folder.json").mkdir()
    result = vkssim("score", "-r", "absent.y4m", "-d", "absent.y4m", *TINY, "-o", str(tmp_path / output))
    assert result.exit_code == 2
    assert str(tmp_path / output) in result.stderr
    assert "absent.y4m" not in result.stderr


@pytest.mark.parametrize(
    ("missing", "named"), [("driver", b"mesa-vulkan-drivers"), ("file", b"absent.json"), ("loader", b"mesa-vulkan-drivers")]
)
def test_no_gpu_or_no_driver(tmp_path: Path, missing: str, named: bytes) -> None:
    """The error says what to install or to repair, and no other backend replaces the missing one."""
    nowhere = str(tmp_path / "absent.json")
    environment = {"VK_DRIVER_FILES": nowhere, "VK_ICD_FILENAMES": nowhere}
    if missing == "driver":
        environment = {"VK_LOADER_DRIVERS_DISABLE": "*"}
    if missing == "loader":
        (tmp_path / "vulkan.py").write_text("raise OSError('cannot load library libvulkan.so')")
        environment = {"PYTHONPATH": str(tmp_path)}
    path = write(tmp_path / "clip.y4m", y4m_bytes(clip(2)))
    process = vkssim_process("score", "-r", path, "-d", path, "--feature", "float_ssim", "--json", environment=environment)
    assert process.returncode == 3
    assert named in process.stderr
    assert b"Traceback" not in process.stderr
    assert process.stdout == b""
