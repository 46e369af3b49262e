"""Journals of runs and batches, as tests read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vkssim.storage.checked_journal import BATCH, RUN, CheckedLines


def entries(path: Path) -> list[dict[str, Any]]:
    """Return the entries of a journal, in order. Fails if a line is not as it was written; the last may be torn."""
    data = path.read_bytes() if path.exists() else b""
    lines = CheckedLines(RUN if data.startswith(RUN) else BATCH)
    found = [lines.unpack(line) for line in data.splitlines(keepends=True) if line.endswith(b"\n")][1:]
    common: dict[str, Any] = {}  # what entries of frames leave out
    for place, entry in enumerate(found):
        if "frames" in entry:
            found[place] = common | entry
            common = {name: value for name, value in found[place].items() if name not in ("first", "frames")}
    return found


def records(path: Path) -> list[dict[str, Any]]:
    """Return the records in the journal of a batch, in order."""
    return [entry["record"] for entry in entries(path) if "record" in entry]


def frames(path: Path) -> int:
    """Return how many frames were written to a journal."""
    return sum(len(entry.get("frames", ())) for entry in entries(path))


def ranges(path: Path) -> list[int]:
    """Return the first pair of each range that is complete, in order."""
    return sorted(entry["range"][0] for entry in entries(path) if "end" in entry)
