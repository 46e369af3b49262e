"""Notices about long waits, for whoever shows them to the user. Commands import this module, so it imports nothing heavy."""

from __future__ import annotations

from collections.abc import Callable

Listener = Callable[[str], None]

_listener: Listener | None = None


def set_listener(listener: Listener | None) -> None:
    """Have a function called with each notice from now on; None has none called. There is no listener at first."""
    global _listener
    _listener = listener


def notify(sentence: str) -> None:
    """Give a notice to the listener, if there is one."""
    listener = _listener  # another thread may set it
    if listener is not None:
        listener(sentence)
