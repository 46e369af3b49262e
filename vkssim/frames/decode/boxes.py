"""Read what FFmpeg does not pass on: boxes of MP4 and MOV files, and how many pages a TIFF file has."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO

from ...storage.remote import open_description

FIRST = (b"ftyp", b"moov", b"mdat", b"styp", b"free", b"skip", b"wide", b"moof")
"""The names that the first box of a file may have."""

_MOST_READS = 20_000  # boxes read of one file, so that a file of tiny boxes ends; no real file needs as many
_MOST_BYTES = 1 << 16  # the largest description that is read


class Description:
    """Read the parts that describe what is in a file, some thousands at most."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._left = _MOST_READS

    def read(self, at: int, count: int) -> bytes:
        """Return so many bytes from there. Raises struct.error where they are not there, or too many."""
        self._left -= 1
        if count > _MOST_BYTES or self._left < 0:
            raise struct.error("too much of a description")
        self._file.seek(at)
        data = self._file.read(count)
        if len(data) != count:
            raise struct.error("the file ends here")
        return data


def boxes(file: Description, start: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    """Yield the boxes of a part of the file: their names, and where their content begins and ends."""
    while end - start >= 8:
        size, name = struct.unpack(">I4s", file.read(start, 8))
        content = start + 8
        if size == 1:
            (size,), content = struct.unpack(">Q", file.read(content, 8)), content + 8
        stop = end if size == 0 else start + size
        if not content <= stop <= end:
            return
        yield name, content, stop
        start = stop


def lacks_index(path: str) -> bool:
    """Return True for an MP4 or MOV file without a whole index: it was cut off, or is still being written."""
    try:
        with open_description(path) as file:
            end = file.seek(0, 2)
            description = Description(file)
            is_one = description.read(4, 4) in FIRST
            return is_one and all(name != b"moov" for name, _, _ in boxes(description, 0, end))
    except (OSError, struct.error):
        return False


_SUBFILE, _REDUCED = 254, 1  # the tag of TIFF that tells pages from smaller copies of them, and the bit for these


def tiff_pages(path: str) -> int:
    """Return the number of pages of a TIFF file, without smaller copies of a page; 0 if it cannot be read."""
    pages, seen = 0, set()
    try:
        with open_description(path) as file:
            description = Description(file)
            head = description.read(0, 8)
            order = ">" if head.startswith(b"MM") else "<"
            (at,) = struct.unpack(f"{order}I", head[4:])
            while at and at not in seen:
                seen.add(at)
                (count,) = struct.unpack(f"{order}H", description.read(at, 2))
                tags = description.read(at + 2, 12 * count)
                kinds = [kind for tag, kind in struct.iter_unpack(f"{order}H6xI", tags) if tag == _SUBFILE]
                pages += not any(kind & _REDUCED for kind in kinds)
                (at,) = struct.unpack(f"{order}I", description.read(at + 2 + 12 * count, 4))
    except (OSError, struct.error):
        return pages
    return pages
