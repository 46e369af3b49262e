"""Test the recipe for conda, a checkout that is not installed, the scripts that install it, and its types once it is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

from vkssim import __version__

from .storage.test_writing import contents
from .support.commands import python_process, run_program

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
RECIPE: dict[str, Any] = yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text(encoding="utf-8"))


def test_recipe_and_citation_are_of_this_version_and_the_recipe_has_every_requirement() -> None:
    project, context = PROJECT["project"], RECIPE["context"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (citation["version"], citation["license"]) == (__version__, project["license"])
    assert (context["name"], context["version"]) == (project["name"], __version__)
    assert f">={context['python_min']}" == project["requires-python"]
    run = [line for line in RECIPE["requirements"]["run"] if not line.startswith(("python ", "libvulkan-loader"))]
    assert sorted(run) == sorted(f"{need.name} {need.specifier}" for need in map(Requirement, project["dependencies"]))
    assert RECIPE["build"]["python"]["entry_points"] == [f"vkssim = {project['scripts']['vkssim']}"]
    (setuptools,) = map(Requirement, PROJECT["build-system"]["requires"])
    assert f"{setuptools.name} {setuptools.specifier}" in RECIPE["requirements"]["host"]
    assert {"glslang", "spirv-tools"} == set(RECIPE["requirements"]["build"])


def test_every_script_in_python_is_linted() -> None:
    """Ruff finds only files that end with .py, and those that the project names."""
    files = [file for folder in ("bench", "ci", "scripts", "tests/stress", "tools") for file in (ROOT / folder).iterdir()]
    scripts = [
        file for file in files if not file.suffix and file.is_file() and b"python" in file.read_bytes().partition(b"\n")[0]
    ]
    named = PROJECT["tool"]["ruff"]["extend-include"]
    assert sorted(named) == sorted(file.relative_to(ROOT).as_posix() for file in scripts)


@pytest.mark.parametrize("words", [("-m", "vkssim", "features"), ("-c", "import vkssim")])
def test_a_checkout_that_is_not_installed_says_what_installs_it(words: tuple[str, ...]) -> None:
    """Without site-packages, Python finds the folder vkssim alone, and neither host/ nor a dependency."""
    process = run_program(sys.executable, "-S", *words, cwd=ROOT, environment={"PYTHONPATH": ""}, text=True)
    assert process.returncode == 1
    *_, line = process.stderr.splitlines()
    assert "vkssim is not installed for this Python: `pip install -e .`" in line
    assert ("Traceback" in process.stderr) == (words[0] == "-c")


def test_the_recipe_of_a_release_has_the_sdist_as_its_source(tmp_path: Path) -> None:
    sdist = tmp_path / "vkssim-0.1.0.tar.gz"
    sdist.write_bytes(b"sdist")
    words = (str(ROOT / "tools" / "make_recipe"), str(sdist), "--maintainer", "somebody")
    made = yaml.safe_load(python_process(*words, check=True).stdout)
    assert made.pop("source") == {
        "url": "https://pypi.org/packages/source/v/vkssim/vkssim-${{ version }}.tar.gz",
        "sha256": "714772a9f82b2aeb4fa5f7092d00fe4ac4c9cdeb6800840b6ed39ea64c4d785a",
    }
    assert made.pop("extra") == {"recipe-maintainers": ["somebody"]}
    assert made == {key: value for key, value in RECIPE.items() if key != "source"}


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


CLIENT = """
import typing, vkssim, vkssim.host.devices
typing.assert_type(vkssim.score_files("a.y4m", "b.y4m").pooled()["float_ssim"]["mean"], float)
typing.assert_type(vkssim.host.devices.NVIDIA, int)
"""


def test_a_type_checker_finds_the_types_of_a_checkout_that_is_installed(tmp_path: Path) -> None:
    """`mypy --strict` of a client succeeds after `pip install -e .`, also with types of host/, outside the folder vkssim."""
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    for name in ("vkssim", "host", "shaders"):
        shutil.copytree(ROOT / name, checkout / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE", "docs/vkssim.1"):
        (checkout / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, checkout / name)
    (checkout / "scripts").mkdir()
    (checkout / "scripts" / "build_shaders").touch()  # a type checker reads no shader
    build = "import sys; from setuptools.build_meta import build_editable; build_editable(sys.argv[1])"
    python_process("-c", build, str(tmp_path), cwd=checkout, check=True)

    python = tmp_path / "environment" / "bin" / "python"
    venv.create(python.parents[1])
    query = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site_packages = Path(run_program(str(python), "-c", query, text=True).stdout.strip())
    (wheel,) = tmp_path.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(
        site_packages
    )  # alone: the types of what vkssim requires take longer to read than its own

    (tmp_path / "client.py").write_text(CLIENT)
    options = ("--strict", "--config-file=", f"--python-executable={python}", f"--cache-dir={os.devnull}")
    checked = python_process("-m", "mypy", *options, "client.py", cwd=tmp_path)
    assert checked.returncode == 0, checked.stdout.decode()
