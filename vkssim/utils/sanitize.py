"""Make text from outside, such as names of files, labels and drivers, harmless for what will read it."""

from __future__ import annotations

import re

_CONTROL = "\0-\x1f\x7f-\x9f"  # ESC among them, which begins what moves a terminal's cursor and more
_DIRECTION = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # with which gpj.exe looks like exe.jpg
_NO_TEXT = "\u2028\u2029\ud800-\udfff\ufffe\uffff"  # ends of lines, bytes of names that are no UTF-8, what XML forbids
_HIDDEN = re.compile(f"[{_CONTROL}{_DIRECTION}{_NO_TEXT}]")
_HIDDEN_IN_LINES = re.compile(f"(?![\n\t])[{_CONTROL}{_DIRECTION}{_NO_TEXT}]")

_FORMULA = re.compile(r"'*(?:\s*[=+\-@＝＋－＠]|[\t\r\n])")


def visible(text: str, *, lines: bool = False) -> str:
    r"""Return text without control characters, changes of direction, line separators and lone surrogates.

    Each is spelt as Python spells it, such as ``\x1b``, and nothing else changes. `lines` leaves line feeds and tabs.
    """
    return (_HIDDEN_IN_LINES if lines else _HIDDEN).sub(lambda found: _spelt(found[0]), text)


def encodable(text: str) -> str:
    r"""Return text that UTF-8 can encode: bytes of file names that are no UTF-8 are spelt as in ``\udcff``."""
    return text.encode("utf-8", "backslashreplace").decode()


def cell(text: str) -> str:
    """Return text as a cell of CSV, with an apostrophe before what a spreadsheet would take for a formula."""
    return f"'{text}" if _FORMULA.match(text) else text


def text_of_cell(text: str) -> str:
    """Return what `cell` was given, from what it gave."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def _spelt(character: str) -> str:
    return character.encode("unicode_escape").decode()
