"""Test the Dockerfile and the recipe for conda: they install what the package needs. `ci/lint_packages` runs their linters."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

from vkssim import __version__

from .support.commands import python_process, run_program

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
LAST_STAGE = DOCKERFILE[DOCKERFILE.rindex("\nFROM ") :]
RECIPE: dict[str, Any] = yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text(encoding="utf-8"))


def _instructions(name: str, text: str = DOCKERFILE) -> list[str]:
    return re.findall(rf"^{name} +(.*)$", text, re.MULTILINE)


def test_the_image_has_a_driver_for_cpus_and_the_libraries_of_nvidias() -> None:
    installed = " ".join(_instructions("RUN", LAST_STAGE)).split()
    assert {"libvulkan1", "mesa-vulkan-drivers", "libx11-6", "libxext6"} <= set(installed)
    settings = dict(re.findall(r"(\w+)=(\S+)", " ".join(_instructions("ENV", LAST_STAGE))))
    assert set(settings["NVIDIA_DRIVER_CAPABILITIES"].split(",")) == {"compute", "video", "graphics", "utility"}
    nvidia, lavapipe = settings["VK_DRIVER_FILES"].split(":")
    assert f"docker/nvidia_icd.json {nvidia}" in _instructions("COPY", LAST_STAGE)
    assert lavapipe == "/usr/share/vulkan/icd.d/lvp_icd.json", "Debian 13 names it so"
    assert "-trixie" in _instructions("FROM")[-1]


def test_the_image_is_built_from_what_the_wheel_is_built_from() -> None:
    let_through = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert [name for name in let_through if not (ROOT / name).exists()] == []
    project, tools = PROJECT["project"], PROJECT["tool"]["setuptools"]
    needed = {
        project["readme"],
        *project["license-files"],
        *tools["package-dir"].values(),
        *tools["data-files"]["share/man/man1"],
    }
    needed |= {"pyproject.toml", "setup.py", "MANIFEST.in"}
    needed |= set((ROOT / "MANIFEST.in").read_text().split("include ")[1].split("\n")[0].split())
    needed |= set(re.findall(r"ci/requirements/\S+", DOCKERFILE))
    needed |= {line.split()[0] for line in _instructions("COPY") if not line.startswith(("--from", ". "))}
    assert needed <= let_through


def test_the_recipe_is_of_this_version_and_has_every_requirement() -> None:
    project, context = PROJECT["project"], RECIPE["context"]
    assert (context["name"], context["version"]) == (project["name"], __version__)
    assert f">={context['python_min']}" == project["requires-python"]
    run = [line for line in RECIPE["requirements"]["run"] if not line.startswith(("python ", "libvulkan-loader"))]
    assert sorted(run) == sorted(f"{need.name} {need.specifier}" for need in map(Requirement, project["dependencies"]))
    assert RECIPE["build"]["python"]["entry_points"] == [f"vkssim = {project['scripts']['vkssim']}"]
    (setuptools,) = map(Requirement, PROJECT["build-system"]["requires"])
    assert f"{setuptools.name} {setuptools.specifier}" in RECIPE["requirements"]["host"]
    assert {"glslang", "spirv-tools"} == set(RECIPE["requirements"]["build"])


def test_the_citation_is_of_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (citation["version"], citation["license"]) == (__version__, PROJECT["project"]["license"])


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
