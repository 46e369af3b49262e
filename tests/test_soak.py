"""A short soak of every load. Its memory is noise, and not looked at; what is counted must come back to what it was."""

from __future__ import annotations

import json
from pathlib import Path

from .commands import python_process

SOAK = Path(__file__).resolve().parent.parent / "scripts" / "soak"
FEW = ("--frames", "300", "--scorers", "60", "--engines", "10", "--containers", "60", "--limit", "1000")


def test_nothing_that_is_counted_grows(tmp_path: Path) -> None:
    output = tmp_path / "soak.json"
    process = python_process(str(SOAK), *FEW, "--json", str(output))
    assert process.returncode == 0, process.stdout.decode() + process.stderr.decode()
    summary = json.loads(output.read_text())
    assert not summary["left"]
    for load in summary["loads"]:
        assert (load["descriptors"], load["threads"], load["vulkan"]) == (0, 0, 0), load["name"]
        assert load["done"] >= load["asked"]


def test_what_grows_is_told(tmp_path: Path) -> None:
    """The scores of a report grow by design: against no limit at all they fail."""
    output = tmp_path / "soak.json"
    process = python_process(str(SOAK), "--load", "results", "--frames", "20000", "--limit", "-100", "--json", str(output))
    assert process.returncode == 1, process.stderr.decode()
    assert [load["grew"] for load in json.loads(output.read_text())["loads"]] == [["memory"]]
    assert b"grew: memory" in process.stdout
