"""Read from a library of Linux which other libraries it needs, without loading it."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO

_LARGEST_TABLE = 1 << 20
_LOAD, _DYNAMIC = 1, 2  # types of segments
_END, _NEEDED, _STRINGS = 0, 1, 5  # tags of the dynamic section


def needed_libraries(path: Path) -> tuple[str, ...]:
    """Return the names that the dynamic section of an ELF file lists as needed (DT_NEEDED), as the file orders them.

    Return an empty tuple for a file that cannot be read or is no ELF file in little-endian order.
    """
    try:
        with path.open("rb") as file:
            return _Elf(file).needed()
    except (OSError, ValueError, IndexError, OverflowError, struct.error):
        return ()


class _Elf:
    """The program headers of an ELF file, of 32 or 64 bits."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        head = self._read(0, _LARGEST_TABLE)
        if head[:4] != b"\x7fELF" or head[5] != 1:
            raise ValueError("not an ELF file in little-endian order")
        self._wide = head[4] == 2
        start, size, count = (
            (*struct.unpack_from("<Q", head, 32), *struct.unpack_from("<HH", head, 54))
            if self._wide
            else (*struct.unpack_from("<I", head, 28), *struct.unpack_from("<HH", head, 42))
        )
        self._segments = [self._segment(head, start + number * size) for number in range(count)]

    def _segment(self, head: bytes, place: int) -> tuple[int, int, int, int]:
        """Return the type of a segment, its offset in the file, its address and its size in the file."""
        if self._wide:
            kind, _flags, offset, address, _physical, size = struct.unpack_from("<IIQQQQ", head, place)
        else:
            kind, offset, address, _physical, size = struct.unpack_from("<IIIII", head, place)
        return kind, offset, address, size

    def _read(self, offset: int, size: int) -> bytes:
        self._file.seek(offset)
        return self._file.read(min(size, _LARGEST_TABLE))

    def needed(self) -> tuple[str, ...]:
        """Return the needed libraries."""
        form = "<qQ" if self._wide else "<iI"
        tables = [(offset, size) for kind, offset, _, size in self._segments if kind == _DYNAMIC]
        if not tables:
            return ()
        data = self._read(*tables[0])
        entries = []
        for tag, value in struct.iter_unpack(form, data[: len(data) // struct.calcsize(form) * struct.calcsize(form)]):
            if tag == _END:
                break
            entries.append((tag, value))
        address = next((value for tag, value in entries if tag == _STRINGS), None)
        if address is None:
            return ()
        strings = self._read(self._offset(address), _LARGEST_TABLE)
        places = [value for tag, value in entries if tag == _NEEDED]
        return tuple(strings[place : strings.index(b"\0", place)].decode(errors="replace") for place in places)

    def _offset(self, address: int) -> int:
        for kind, offset, start, size in self._segments:
            if kind == _LOAD and start <= address < start + size:
                return offset + address - start
        raise ValueError(f"no segment has the address {address:#x}")
