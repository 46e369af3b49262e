"""Test what zizmor and the schema leave open: which jobs may write, and that scripts and actions that are named exist."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from .test_pins import PYTHONS

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
WRITING = {
    ("docs.yml", "publish"): {"pages": "write", "id-token": "write"},
    ("release.yml", "publish"): {"id-token": "write", "attestations": "write"},
}
"""The jobs that may write something, and what. Each other job can only read the repository."""

SCRIPT = re.compile(r"(?<![\w/.-])(?:\./)?((?:\.ci|ci|scripts|tools)/[\w./-]*\w)")


def _load(path: Path) -> dict[Any, Any]:
    loaded: dict[Any, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return loaded


def _steps(workflow: Path) -> Iterator[dict[str, Any]]:
    for job in _load(workflow)["jobs"].values():
        yield from job["steps"]


def _name(path: Path) -> str:
    return path.name


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=_name)
def test_only_jobs_that_publish_may_write(workflow: Path) -> None:
    """A job that may write runs no script: it hands on what another job built."""
    loaded = _load(workflow)
    assert loaded["permissions"] == {"contents": "read"}
    for name, job in loaded["jobs"].items():
        allowed = WRITING.get((workflow.name, name), {})
        assert job.get("permissions", {}) == allowed, name
        if allowed:
            assert [step for step in job["steps"] if "run" in step or "checkout" in step.get("uses", "")] == [], name


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=_name)
def test_every_step_calls_what_is_there(workflow: Path) -> None:
    for step in _steps(workflow):
        script = step.get("run", "")
        for called in SCRIPT.findall(script):
            assert os.access(ROOT / called, os.X_OK), called
        action = step.get("uses", "")
        if action.startswith("./"):
            assert (ROOT / action / "action.yml").is_file()
            declared = _load(ROOT / action / "action.yml")["inputs"]
            assert set(step["with"]) <= set(declared)
            assert set(step["with"]) >= {name for name, entry in declared.items() if entry.get("required")}


def test_a_release_is_tried_on_every_python_before_it_is_published() -> None:
    jobs = _load(ROOT / ".github" / "workflows" / "release.yml")["jobs"]
    assert tuple(jobs["try"]["strategy"]["matrix"]["python"]) == PYTHONS
    releases = dict(re.findall(r"(3\.\d+):(\w+)", (ROOT / "ci" / "pythons").read_text(encoding="utf-8")))
    assert tuple(releases) == PYTHONS, "ci/pythons tries the same ones without GitHub"
    assert set(jobs["publish"]["needs"]) == {"build", "try"}
    uploaded = {step["with"]["name"] for step in jobs["build"]["steps"] if "upload-artifact" in step.get("uses", "")}
    fetched = {
        step["with"]["name"]
        for job in ("try", "publish")
        for step in jobs[job]["steps"]
        if "download-artifact" in step.get("uses", "")
    }
    assert fetched == uploaded
