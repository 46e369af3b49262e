"""When scores were written, as a page says it."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

_FIXED = "SOURCE_DATE_EPOCH"
"""The variable by which builds that have to repeat to the byte give the only date that there is, in seconds since 1970."""


def date_of_file(path: Path) -> str:
    """Return when a file was changed last; empty where nobody knows."""
    try:
        return _text(path.stat().st_mtime)
    except OSError:
        return ""


def date_of_now() -> str:
    """Return the time now."""
    return _text(datetime.now(UTC).timestamp())


def _text(seconds: float) -> str:
    """Return a time to the minute, in UTC: a page is read anywhere."""
    fixed = os.environ.get(_FIXED, "")
    try:
        return datetime.fromtimestamp(int(fixed) if fixed.isdecimal() else seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (ValueError, OverflowError, OSError):
        return ""
