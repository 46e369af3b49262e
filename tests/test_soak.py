"""A short soak. Its memory is noise, and not looked at; what is counted must come back to what it was."""

from __future__ import annotations

import json
from pathlib import Path

from .support.commands import python_process

SOAK = Path(__file__).resolve().parent / "stress" / "soak"
FEW = ("--frames", "100", "--scorers", "20", "--engines", "5", "--containers", "20", "--limit", "1000")
LOADS = ("files", "scorer", "arrays", "gradients", "scorers", "engines", "containers")


def test_nothing_that_is_counted_grows(tmp_path: Path) -> None:
    output = tmp_path / "soak.json"
    process = python_process(str(SOAK), *FEW, *(f"--load={name}" for name in LOADS), "--json", str(output))
    assert process.returncode == 0, process.stdout.decode() + process.stderr.decode()
    summary = json.loads(output.read_text())
    assert [load["name"] for load in summary["loads"]] == list(LOADS)
    for load in summary["loads"]:
        assert not load["left"], load["name"]
        assert (load["descriptors"], load["threads"], load["vulkan"]) == (0, 0, 0), load["name"]
        assert load["done"] >= load["asked"]


def test_what_grows_is_told(tmp_path: Path) -> None:
    """The scores that a report holds grow by design, which is taken off: by less than -1 MB nothing grows."""
    output = tmp_path / "soak.json"
    process = python_process(str(SOAK), "--load", "results", "--frames", "5000", "--limit", "-1", "--json", str(output))
    assert process.returncode == 1, process.stderr.decode()
    assert [load["grew"] for load in json.loads(output.read_text())["loads"]] == [["memory", "heap"]]
    assert b"grew: memory, heap" in process.stdout
