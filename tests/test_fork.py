"""A fork of a process that has opened Vulkan: an error that says what to do, no hang, and the parent goes on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from .forking import USES
from .support.commands import python_process

INHERITED = ("feed", "flush", "mapper", "engine")


def _run(*modes: str) -> Any:
    process = python_process("-m", "tests.forking", *modes, cwd=Path(__file__).parent.parent)
    assert process.returncode == 0, process.stderr.decode()
    return json.loads(process.stdout)


@pytest.fixture(scope="module")
def seen() -> Any:
    return _run("while_reading", "while_another_thread_scores", "after_opening", "pools")


@pytest.mark.parametrize("use", [*USES, *INHERITED, "torch", "grandchild"])
def test_a_child_is_told_what_to_do(seen: Mapping[str, Any], use: str) -> None:
    """A device that the child opens is refused, and so is one from its parent."""
    said = seen["after_opening"][use]
    assert said.startswith("ForkError: process "), said
    assert f"was forked from process {seen['pid']}, which had opened Vulkan" in said
    assert 'get_context("spawn")' in said


def test_parents_go_on_and_children_wait_for_nothing(seen: Mapping[str, Any]) -> None:
    """With the same bits, of the frames too that were on their way at a fork, and that children meant to write over.

    A child has neither the threads of its parent's readers nor the one that was in a scorer.
    """
    assert seen["after_opening"]["parent"] == "True"
    assert seen["while_reading"] == {"child": "ends", "parent": "48"}
    assert seen["while_another_thread_scores"] == {"child": "None", "parent": "1"}
    assert float(seen["after_opening"]["cpu"]) == pytest.approx(float(seen["pools"]["parent"]), abs=1e-6)


def test_workers_that_were_forked_or_spawned(seen: Mapping[str, Any]) -> None:
    """The error comes back to the caller; a backend without a device needs no spawned process."""
    pools = seen["pools"]
    for how in ("fork", "DataLoader"):
        assert pools[f"{how}, device"].startswith("ForkError")
        assert "spawn" in pools[f"{how}, device"]
    assert pools["spawn, device"] == pools["parent"]
    assert {pools[f"{how}, cpu"] for how in ("fork", "DataLoader", "spawn")} == {seen["after_opening"]["cpu"]}


def test_forks_from_before_each_open_their_own() -> None:
    seen = _run("before_opening")["before_opening"]
    assert seen["child"] == seen["parent"]
