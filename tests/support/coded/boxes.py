"""Writes into a file which part of its pictures is shown."""

from __future__ import annotations

import struct


def with_clap(data: bytes, *numbers: int) -> bytes:
    """Return an MP4 file, whose moov is its last box, with a clean aperture in its sample entry."""
    return _with_box(data, struct.pack(">I4sIIIIiIiI", 40, b"clap", *numbers))


def with_dolby_vision(data: bytes, profile: int, compatibility: int) -> bytes:
    """Return an MP4 file, whose moov is its last box, with the record of Dolby Vision in its sample entry."""
    level, has_metadata, has_base_layer = 6, 1 << 2, 1
    numbers = struct.pack(">BBHB", 1, 0, profile << 9 | level << 3 | has_metadata | has_base_layer, compatibility << 4)
    return _with_box(data, struct.pack(">I4s24s", 32, b"dvcC" if profile <= 7 else b"dvvC", numbers))


def _with_box(data: bytes, box: bytes) -> bytes:
    codec = next(name for name in (b"mp4v", b"hev1", b"avc1") if name in data)
    entry = data.rindex(codec) - 4
    (size,) = struct.unpack_from(">I", data, entry)
    grown = bytearray(data[: entry + size] + box + data[entry + size :])
    for name in (b"moov", b"trak", b"mdia", b"minf", b"stbl", b"stsd", codec):
        at = data.rindex(name) - 4
        struct.pack_into(">I", grown, at, struct.unpack_from(">I", data, at)[0] + len(box))
    return bytes(grown)


def with_pixel_crop(data: bytes, **crops: int) -> bytes:
    """Return a Matroska file whose first video track has these crops. The rest of the file is shifted."""
    ids = {"bottom": 0x54AA, "top": 0x54BB, "left": 0x54CC, "right": 0x54DD}
    added = b"".join(struct.pack(">HBB", ids[name], 0x81, value) for name, value in crops.items())
    sizes, begin, end = [], 0, len(data)
    for name in ("18538067", "1654ae6b", "ae", "e0"):  # Segment, Tracks, TrackEntry, Video
        sizes.append(_size_of(data, begin, end, bytes.fromhex(name)))
        size, length = _size(data, sizes[-1])
        begin, end = sizes[-1] + length, sizes[-1] + length + size
    grown = bytearray(data[:begin] + added + data[begin:])
    for at in sizes:
        size, length = _size(data, at)
        grown[at : at + length] = _sized(size + len(added), length)
    return bytes(grown)


def _size_of(data: bytes, begin: int, end: int, name: bytes) -> int:
    """Return the place of the size of the first element of that name among those in a range."""
    while begin < end:
        at = begin + 9 - data[begin].bit_length()
        size, length = _size(data, at)
        if data[begin:at] == name:
            return at
        begin = at + length + size
    raise ValueError(f"there is no element {name.hex()}")


def _size(data: bytes, at: int) -> tuple[int, int]:
    length = 9 - data[at].bit_length()
    return int.from_bytes(data[at : at + length]) & ((1 << 7 * length) - 1), length


def _sized(value: int, length: int) -> bytes:
    return (value | 1 << 7 * length).to_bytes(length)


def with_matrix(data: bytes, a: int, b: int, c: int, d: int) -> bytes:
    """Return an MP4 file of one track that shows a decoded point (x, y) at (a x + c y, b x + d y)."""
    at = data.index(b"tkhd") + 44
    matrix = struct.pack(">9i", a << 16, b << 16, 0, c << 16, d << 16, 0, 0, 0, 1 << 30)
    return data[:at] + matrix + data[at + len(matrix) :]
