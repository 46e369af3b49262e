"""docs/vkssim.1: what tools/make_man writes now, and roff that every reader takes."""

from __future__ import annotations

import re
from pathlib import Path

from ..support.commands import python_process

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "vkssim.1"
REQUESTS = {".TH": 6, ".SH": None, ".SS": None, ".PP": 0, ".TP": 0}
"""The requests of man(7) that the page uses, and how many arguments each takes at most."""


def test_up_to_date() -> None:
    process = python_process(str(ROOT / "tools" / "make_man"), "--check")
    assert process.returncode == 0, process.stderr.decode()


def test_roff() -> None:
    """Known requests only, escapes only where one is meant, and text behind every heading and tag."""
    lines = PAGE.read_text().splitlines()
    assert lines[0].startswith(".TH VKSSIM 1 ")
    for line, following in zip(lines, [*lines[1:], ".end"], strict=True):
        assert line, "an empty line is a paragraph by accident"
        assert not line.startswith("'")
        if line.startswith("."):
            assert line.split()[0] in REQUESTS
        if line.split()[0] in (".SH", ".PP", ".TP"):
            assert not following.startswith(".") or line.startswith(".SH")
        assert set(re.findall(r"\\(.)", line)) <= {"-", "&", "f"}, "no help has a backslash"
