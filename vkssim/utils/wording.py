"""Make phrases that many messages share: counted nouns, alternatives, and the likely meaning of a mistyped name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, such as "1 frame" or "3 frames"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def listed(texts: Sequence[str], *, most: int = 5, separator: str = ", ") -> str:
    """Return the first `most` texts in a line; an ellipsis stands for those that are left out."""
    return separator.join([*texts[:most], *["…"] * (len(texts) > most)])


def either(words: Sequence[str]) -> str:
    """Return words as alternatives, such as "a, b or c"."""
    return " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return " (did you mean NAME?)" for the one of `names` that is most similar to `name`; empty if none is similar.

    Case, `-` and `_` do not count. A name that contains `name`, as "float_ssim" contains "ssim", is similar too.
    """
    candidates = {_plain(candidate): candidate for candidate in names}
    plain = _plain(name)
    close = difflib.get_close_matches(plain, candidates, n=1)
    if not close and len(plain) >= 3:
        close = sorted((candidate for candidate in candidates if plain in candidate), key=len)[:1]
    return f" (did you mean {candidates[close[0]]}?)" if close else ""


def _plain(name: str) -> str:
    return name.lower().replace("-", "_")
