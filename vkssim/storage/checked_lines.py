"""Lines of JSON in which damage does not go unseen: whatever a run goes on from is written in this form.

Each line begins with the CRC-32 of what the lines are for and of all entries up to it. A line that is torn, altered, doubled,
missing or out of place has not the sum that it claims, nor has any line behind it.
"""

from __future__ import annotations

import json
import zlib
from typing import Any

RUN = b"vkssim run 1 "
"""The kind of the journal of a run of `vkssim score`."""

BATCH = b"vkssim batch 1 "
"""The kind of the journal of a batch."""


class CheckedLines:
    """Packs entries into lines, or unpacks lines, one after the other.

    `kind` opens the first line and says what the lines are for. `name` is what they are known by, where that matters: lines
    that turn up under another name do not fit.
    """

    def __init__(self, kind: bytes, name: str = "") -> None:
        self._kind = kind
        self._first = True
        self._sum = zlib.crc32(name.encode(), zlib.crc32(kind))

    def pack(self, *entries: Any) -> bytes:
        """Return the next lines, one for each entry, which is anything that JSON can say."""
        lines = []
        for entry in entries:
            text = json.dumps(entry, separators=(",", ":")).encode()
            self._sum = zlib.crc32(text, self._sum)
            lines.append(self._opening() + b"%08x %s\n" % (self._sum, text))
            self._first = False
        return b"".join(lines)

    def unpack(self, line: bytes) -> Any:
        """Return the entry of the next line. Raises ValueError where that is not the line that `pack` gave."""
        rest = line.removeprefix(self._opening())
        text = rest[9:-1]
        total = zlib.crc32(text, self._sum)
        if self._opening() + b"%08x %s\n" % (total, text) != line:
            raise ValueError("the line is torn, altered or out of place")
        entry = json.loads(text)
        self._sum, self._first = total, False
        return entry

    def copy(self) -> CheckedLines:
        """Return lines that go on from here, whatever becomes of these."""
        other = CheckedLines(self._kind)
        other._first, other._sum = self._first, self._sum
        return other

    def _opening(self) -> bytes:
        return self._kind if self._first else b""


def is_damaged_head(line: bytes, kind: bytes) -> bool:
    """Return True for a first line of that kind whose kind alone was altered: its sum says that vkssim wrote it."""
    try:
        CheckedLines(kind).unpack(kind + line[len(kind) :])
    except ValueError:
        return False
    return True


def pack_record(kind: bytes, entry: Any, name: str) -> bytes:
    """Return a file with one entry, for that name and no other."""
    return CheckedLines(kind, name).pack(entry)


def unpack_record(kind: bytes, data: bytes, name: str) -> Any:
    """Return the entry of a file. Raises ValueError where that is not what `pack_record` gave for this kind and this name."""
    return CheckedLines(kind, name).unpack(data)
