"""Format the dates at which scores were written, for a page."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

_FIXED = "SOURCE_DATE_EPOCH"
"""The variable with which reproducible builds set the only date, in seconds since 1970."""


def date_of_file(path: Path) -> str:
    """Return when a file was last changed; empty if that is unknown."""
    try:
        return _text(path.stat().st_mtime)
    except OSError:
        return ""


def date_of_now() -> str:
    """Return the current time."""
    return _text(datetime.now(UTC).timestamp())


def _text(seconds: float) -> str:
    """Return a time to the minute, in UTC, because a page is read in any time zone."""
    fixed = os.environ.get(_FIXED, "")
    try:
        return datetime.fromtimestamp(int(fixed) if fixed.isdecimal() else seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (ValueError, OverflowError, OSError):
        return ""
