"""The pages that users read: their blocks, and whether what a page shows is what was printed."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([ROOT / "README.md", *DOCS.glob("*.md")])

SCORE = re.compile(r"(?<![\w.])-?\d+\.(?:\d{2,}(?![\w.])|\d(?= ?%))")
"""A number of two decimals or more, or a percentage. Seconds and frames a second, which differ by run, have one decimal."""
SHOWN = re.compile(rf"{SCORE.pattern}|(?<![\w.])[A-Za-z_]{{2,}}(?![\w.])")
"""A score or a word."""
MESSAGE = re.compile(r"^vkssim: .*", re.MULTILINE)
RESULT = re.compile(r"^(?!vkssim: |.* frames/s on ).*", re.MULTILINE)
"""A line of a result, except the one that names the device."""
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def page_blocks(page: Path, *languages: str) -> list[str]:
    """Return the blocks of a page that are in these languages; "" stands for none."""
    return [text for language, text in BLOCK.findall(page.read_text("utf-8")) if language in languages]


def check_shown(shown: str, printed: str, name: str) -> None:
    """Compare words and numbers with those that were printed: the same, in the same order; the page may leave some out.

    Messages and results are two streams, which a terminal may mix in another way.
    """
    for stream in (MESSAGE, RESULT):
        left = iter(SHOWN.findall("\n".join(stream.findall(printed))))
        for text in SHOWN.findall("\n".join(stream.findall(shown))):
            assert any(_is_alike(text, other) for other in left), f"{name}\n{text} is not in\n{printed}"


def _is_alike(text: str, other: str) -> bool:
    """Return whether two words are equal, or two numbers to the last decimal of the first; devices differ by up to 1e-6."""
    if not (SCORE.fullmatch(text) and SCORE.fullmatch(other)):
        return text == other
    unit = max(10.0 ** -len(text.partition(".")[2]), 1e-6)
    return abs(float(text) - float(other)) < 1.5 * unit
