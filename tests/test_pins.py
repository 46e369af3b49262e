"""Test the versions in CI: those of ci/requirements fit the project. pip checks their hashes, zizmor the actions."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "ci" / "requirements"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PYTHONS = ("3.11", "3.12", "3.13", "3.14")


def _environment(python: str) -> dict[str, str]:
    return {
        "python_version": python,
        "python_full_version": f"{python}.1",
        "sys_platform": "linux",
        "platform_system": "Linux",
        "os_name": "posix",
        "platform_machine": "x86_64",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
    }


def _pins(*names: str) -> list[Requirement]:
    lines = [line for name in names for line in (FOLDER / name).read_text(encoding="utf-8").splitlines()]
    return [Requirement(line.rstrip(" \\")) for line in lines if re.match(r"[a-z0-9]", line)]


def _wanted(texts: list[str], python: str) -> list[Requirement]:
    """Return the requirements for a Python, with the extras of vkssim itself replaced by their packages."""
    found = []
    for requirement in map(Requirement, texts):
        if requirement.name == PROJECT["project"]["name"]:
            for extra in requirement.extras:
                found += _wanted(PROJECT["project"]["optional-dependencies"][extra], python)
        elif requirement.marker is None or requirement.marker.evaluate(_environment(python)):
            found.append(requirement)
    return found


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize(("kind", "files"), [("run", ["run.txt"]), ("test", ["test.txt", "torch.txt"]), ("docs", ["docs.txt"])])
def test_pins_satisfy_the_project(python: str, kind: str, files: list[str]) -> None:
    """If this fails, run tools/pin_requirements."""
    wanted = [*PROJECT["project"]["dependencies"]]
    if kind == "test":
        wanted += [*PROJECT["project"]["optional-dependencies"]["test"], *PROJECT["build-system"]["requires"]]
    elif kind == "docs":
        wanted += PROJECT["project"]["optional-dependencies"]["docs"]
    counting = [pin for pin in _pins(*files) if pin.marker is None or pin.marker.evaluate(_environment(python))]
    versions = {canonicalize_name(pin.name): str(pin.specifier).removeprefix("==") for pin in counting}
    assert len(versions) == len(counting), "a package is pinned twice for one Python"
    for requirement in _wanted(wanted, python):
        pinned = versions.get(canonicalize_name(requirement.name))
        assert pinned is not None, f"{requirement} is not pinned for Python {python}"
        assert requirement.specifier.contains(pinned, prereleases=True), f"{requirement} is pinned to {pinned}"


def test_a_wheel_is_tried_with_what_the_tests_run_with() -> None:
    assert {str(pin) for pin in _pins("run.txt")} <= {str(pin) for pin in _pins("test.txt")}
