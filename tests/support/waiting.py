"""Waits for other processes and threads. A machine may be busy: a deadline is there to end a test that hangs."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 300.0
"""Seconds until what has not come never will."""


def until(condition: Callable[[], object]) -> None:
    """Return when the condition holds. Fails if it does not within PATIENCE."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.005)
