"""The decisions in docs/adr: every page has the one form and stands in the index."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "adr"
PAGES = sorted(page for page in FOLDER.glob("*.md") if page.name != "README.md")
HEADINGS = ("Context", "Decision", "Alternatives", "Measurement", "Consequences")
OPTIONAL = "Measurement"
HEAD = re.compile(
    r"# (?P<number>\d{4}): (?P<title>.+)\n\n"
    r"- Status: (?P<status>accepted|superseded by \[\d{4}\]\(.+\))\n- Date: (?P<date>.+)\n\n"
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_decision_has_the_form(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    head = HEAD.match(text)
    assert head is not None, "the page must begin with its number and title, its status and its date, as other pages do"
    assert page.name.startswith(head["number"] + "-")
    date.fromisoformat(head["date"])
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert [*headings] in ([*HEADINGS], [name for name in HEADINGS if name != OPTIONAL])
    for section in re.split(r"^## .+$", text, flags=re.MULTILINE)[1:]:
        assert section.strip(), "a section is empty"


def test_every_decision_has_a_number_of_its_own() -> None:
    numbers = [page.name[:4] for page in PAGES]
    assert len(set(numbers)) == len(numbers)


def test_the_index_lists_every_decision_with_its_title_and_date() -> None:
    rows = re.findall(r"^\| \[(\d{4}: .+)\]\((.+\.md)\) \| (.+) \| (.+) \|$", (FOLDER / "README.md").read_text(), re.MULTILINE)
    found = []
    for page in PAGES:
        head = HEAD.match(page.read_text(encoding="utf-8"))
        assert head is not None
        found.append((f"{head['number']}: {head['title']}", page.name, head["date"]))
    assert [(title, name, day) for title, name, _question, day in rows] == found
