"""Write and read lines of JSON with checksums, so that damage is always found. A run continues only from such lines.

Each line begins with the CRC-32 of the kind of the lines and of all entries up to it. If a line is torn, altered, doubled,
missing or out of place, the checksums of this line and of all lines behind it do not match.
"""

from __future__ import annotations

import json
import zlib
from typing import Any

RUN = b"vkssim run 1 "
"""The kind of the journal of a run of `vkssim score`."""

BATCH = b"vkssim batch 1 "
"""The kind of the journal of a batch."""

SEARCH = b"vkssim search 1 "
"""The kind of the journal of a search."""


class CheckedLines:
    """Pack entries into lines, or unpack lines, one after the other.

    `kind` opens the first line and identifies the purpose of the lines. `name` binds the lines to a name, where that matters:
    lines that appear under another name do not match.
    """

    def __init__(self, kind: bytes, name: str = "") -> None:
        self._kind = kind
        self._first = True
        self._sum = zlib.crc32(name.encode(), zlib.crc32(kind))

    def pack(self, *entries: Any) -> bytes:
        """Return the next lines, one for each entry. An entry is any value that JSON can express."""
        lines = []
        for entry in entries:
            text = json.dumps(entry, separators=(",", ":")).encode()
            self._sum = zlib.crc32(text, self._sum)
            lines.append(self._opening() + b"%08x %s\n" % (self._sum, text))
            self._first = False
        return b"".join(lines)

    def unpack(self, line: bytes) -> Any:
        """Return the entry of the next line. Raises ValueError if the line differs from the one that `pack` wrote."""
        rest = line.removeprefix(self._opening())
        text = rest[9:-1]
        total = zlib.crc32(text, self._sum)
        if self._opening() + b"%08x %s\n" % (total, text) != line:
            raise ValueError("the line is torn, altered or out of place")
        entry = json.loads(text)
        self._sum, self._first = total, False
        return entry

    def copy(self) -> CheckedLines:
        """Return an independent copy, which continues at the same line."""
        other = CheckedLines(self._kind)
        other._first, other._sum = self._first, self._sum
        return other

    def _opening(self) -> bytes:
        return self._kind if self._first else b""


def is_damaged_head(line: bytes, kind: bytes) -> bool:
    """Return True for a first line in which only the kind was altered: the checksum proves that vkssim wrote it."""
    try:
        CheckedLines(kind).unpack(kind + line[len(kind) :])
    except ValueError:
        return False
    return True


def pack_record(kind: bytes, entry: Any, name: str) -> bytes:
    """Return the content of a file with one entry, bound to a name."""
    return CheckedLines(kind, name).pack(entry)


def unpack_record(kind: bytes, data: bytes, name: str) -> Any:
    """Return the entry of a file. Raises ValueError if `pack_record` did not write it for this kind and this name."""
    return CheckedLines(kind, name).unpack(data)
