"""Journals of batches, as tests read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vkssim.storage.checked_lines import BATCH, CheckedLines


def records(path: Path) -> list[dict[str, Any]]:
    """Return the records in the journal of a batch, in order. Fails where a line is not as it was written."""
    lines = CheckedLines(BATCH)
    return [lines.unpack(line) for line in path.read_bytes().splitlines(keepends=True)][1:]
