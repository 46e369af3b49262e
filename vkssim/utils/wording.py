"""Word what many messages share: counted nouns, alternatives, and the name that a mistyped one was meant to be."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, such as "1 frame" or "3 frames"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def either(words: Sequence[str]) -> str:
    """Return words as alternatives, such as "a, b or c"."""
    return " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return " (did you mean KNOWN?)" for the known name that is most like `name`; empty where none is.

    Case, `-` and `_` do not count. A known name of which `name` is a part, as "ssim" is of "float_ssim", is alike too.
    """
    plain = {_plain(other): other for other in known}
    wanted = _plain(name)
    close = difflib.get_close_matches(wanted, plain, n=1)
    if not close and len(wanted) >= 3:
        close = sorted((other for other in plain if wanted in other), key=len)[:1]
    return f" (did you mean {plain[close[0]]}?)" if close else ""


def _plain(name: str) -> str:
    return name.lower().replace("-", "_")
