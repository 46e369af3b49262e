"""Test that an environment of somebody else is not cleared, and that a build names what it lacks."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from .storage.test_writing import contents
from .support.commands import python_process, run_program

ROOT = Path(__file__).parents[1]

ENVIRONMENT = """
source "$1"
cd "$2"
find_python() { echo make; }
make() { mkdir -p .venv/bin; echo made >.venv/pyvenv.cfg; }
make_environment .venv/vkssim-installed
"""


def _environment(folder: Path) -> subprocess.CompletedProcess[str]:
    words = ("-c", ENVIRONMENT, "test", str(ROOT / "scripts" / "environment.sh"), str(folder))
    return run_program("bash", *words, text=True)


@pytest.mark.parametrize("kind", ["link", "folder", "link to one that it made"])
def test_an_environment_of_somebody_else_is_not_cleared(tmp_path: Path, kind: str) -> None:
    folder, others = tmp_path / "checkout", tmp_path / "others"
    others.mkdir()
    (others / "precious").write_bytes(b"precious")
    folder.mkdir()
    if kind == "folder":
        others.rename(folder / ".venv")
    else:
        (folder / ".venv").symlink_to(others)
    if kind == "link to one that it made":
        (others / "vkssim-installed").touch()
    before = contents(tmp_path)
    process = _environment(folder)
    assert process.returncode == 2
    assert "/.venv has no Python that vkssim supports, and this script did not make it. Move it away" in process.stderr
    assert contents(tmp_path) == before


def test_a_build_without_a_compiler_says_what_is_missing(tmp_path: Path) -> None:
    """The sentence is the last thing that is printed, and no traceback is."""
    process = python_process(str(ROOT / "setup.py"), "build_py", environment={"PATH": str(tmp_path)}, cwd=ROOT)
    said = process.stderr.decode()
    assert process.returncode == 1
    assert "Traceback" not in said
    last = said.strip().splitlines()[-1]
    assert last.startswith("The shaders of vkssim cannot be built from source. build_shaders: glslangValidator not found")
    assert "`apt install glslang-tools spirv-tools`" in last
