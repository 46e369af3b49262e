"""What the pages show: their Python runs and prints what stands under it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parent.parent / "docs"
NUMBER = re.compile(r"\d+\.\d+")


def test_python(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The same text around the same numbers, to what differs between devices."""
    monkeypatch.chdir(DOCS.parent)
    page = (DOCS / "python.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```\n+```\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == page.count("```python")
    names: dict[str, Any] = {}
    for code, shown in blocks:
        exec(code, names)
        printed = capsys.readouterr().out
        assert NUMBER.sub("#", printed) == NUMBER.sub("#", shown)
        assert [float(text) for text in NUMBER.findall(printed)] == pytest.approx(
            [float(text) for text in NUMBER.findall(shown)], rel=5e-4
        )
