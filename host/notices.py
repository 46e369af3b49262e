"""Notices about long waits, for whoever shows them to the user. Commands import this module, so it imports nothing heavy."""

from __future__ import annotations

from collections.abc import Callable

listener: Callable[[str], object] | None = None
"""The function that gets each notice, a sentence; without one, notices are dropped."""


def notify(sentence: str) -> None:
    """Give a notice to the listener, if there is one."""
    if (current := listener) is not None:  # another thread may set it
        current(sentence)
