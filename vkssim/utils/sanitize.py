"""Make text from outside, such as names of files, labels and drivers, harmless for terminals, spreadsheets and files."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

_CONTROL = "\0-\x1f\x7f-\x9f"  # ESC is among them, which begins the control sequences of terminals
_DIRECTION = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # characters that reverse the direction: gpj.exe looks like exe.jpg
# Line ends, bytes of names that are not UTF-8, and characters that XML forbids.
_NO_TEXT = "\u2028\u2029\ud800-\udfff\ufffe\uffff"
_HIDDEN = re.compile(f"[{_CONTROL}{_DIRECTION}{_NO_TEXT}]")
_HIDDEN_IN_LINES = re.compile(f"(?![\n\t])[{_CONTROL}{_DIRECTION}{_NO_TEXT}]")

_NOT_PLAIN = re.compile(rf"{_HIDDEN.pattern}|['\\]")

_FORMULA = re.compile(r"'*(?:\s*[=+\-@＝＋－＠]|[\t\r\n])")


def visible(text: str, *, lines: bool = False) -> str:
    r"""Return text without control characters, changes of direction, line separators and lone surrogates.

    Each of them is written as an escape of Python, such as ``\x1b``. With `lines`, line feeds and tabs stay.
    """
    hidden = _HIDDEN_IN_LINES if lines else _HIDDEN
    return hidden.sub(lambda character: character[0].encode("unicode_escape").decode(), text)


def shell_line(words: Iterable[str]) -> str:
    r"""Return words as a line for a shell, which `visible` leaves as it is.

    A word with characters that it would escape, as names of files can have, is written as bytes in ``$'\033'``, which bash
    knows and other shells may not.
    """
    return " ".join("$'" + _NOT_PLAIN.sub(_octal, word) + "'" if _HIDDEN.search(word) else shlex.quote(word) for word in words)


def needs_bash(line: str) -> bool:
    """Return whether a line of `shell_line` may have a word that other shells do not know."""
    return "$'" in line


def encodable(text: str) -> str:
    r"""Return text that UTF-8 can encode: bytes of file names that are not UTF-8 are written like ``\udcff``."""
    return text.encode("utf-8", "backslashreplace").decode()


def cell(text: str) -> str:
    """Return text as a cell of CSV, with an apostrophe in front if a spreadsheet would read it as a formula."""
    return f"'{text}" if _FORMULA.match(text) else text


def text_of_cell(text: str) -> str:
    """Return the text from which `cell` made this text."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def _octal(character: re.Match[str]) -> str:
    """Return the bytes of a character in octal: bash reads three digits at most."""
    errors = "surrogateescape" if "\udc80" <= character[0] <= "\udcff" else "surrogatepass"
    return "".join(f"\\{byte:03o}" for byte in character[0].encode("utf-8", errors))
