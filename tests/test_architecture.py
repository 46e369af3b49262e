"""Pages that say where things are: they name every layer that import-linter holds, and no file that is not there."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
LINTER = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
LAYERS = [line.split(" | ") for line in LINTER["contracts"][0]["layers"]]
PLACEHOLDER = re.compile(r"NAME|KERNEL|METRIC")
PATH = re.compile(r"`((?:vkssim|host|shaders|tests|scripts|bench|tools|ci|docs|fixtures|examples)/[\w./*-]*)(?=[` :])")
BESIDE = ("README.md", "CONTRIBUTING.md", "bench/README.md", "tests/README.md", "tools/README.md")
PAGES = sorted([*ROOT.glob("docs/*.md"), *(ROOT / name for name in BESIDE)])


def test_the_drawing_has_the_layers_from_the_top_down() -> None:
    drawing = re.search(r"```\n(.*?)```", PAGE, re.DOTALL)
    assert drawing is not None
    lines = [re.split(r"\s{3,}", line.strip())[0] for line in drawing[1].splitlines() if "───" not in line]
    assert [re.split(r"\s*│\s*", line) for line in lines] == LAYERS


def test_every_layer_has_one_sentence() -> None:
    section = PAGE.split("\n## ")[1]
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", section, re.MULTILINE)
    assert [name for name, _ in rows] == [name for line in LAYERS for name in line]
    assert all(sentence.endswith(".") for _, sentence in rows)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_file_that_a_page_names_is_there(page: Path) -> None:
    named = [path for path in PATH.findall(page.read_text(encoding="utf-8")) if not PLACEHOLDER.search(path)]
    assert [path for path in named if not any(ROOT.glob(path))] == []
