"""Read from files what FFmpeg does not report: their visible rectangle, a missing index, and the number of pages.

Sources: ISO/IEC 14496-12, 12.1.4, for `clap`, the clean aperture of MP4 and MOV; RFC 9559, 5.1.4.1.28.9 to 12, for the
PixelCrop of Matroska.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import BinaryIO

from ...storage.remote import open_description
from ..picture.crop import Crop

FIRST = (b"ftyp", b"moov", b"mdat", b"styp", b"free", b"skip", b"wide", b"moof")
"""The possible names of the first box of a file."""

_MOST_READS = 20_000  # limit for a file of tiny boxes; no real file needs so many
_MOST_BYTES = 1 << 16  # the largest description that is read


class Description:
    """The parts of a file that describe its content; some thousands of them can be read."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._left = _MOST_READS

    def read(self, at: int, count: int) -> bytes:
        """Return `count` bytes from the offset `at`. Raises struct.error if the file ends before, or if they are too many."""
        self._left -= 1
        if count > _MOST_BYTES or self._left < 0:
            raise struct.error("too much of a description")
        self._file.seek(at)
        data = self._file.read(count)
        if len(data) != count:
            raise struct.error("the file ends here")
        return data


def boxes(file: Description, start: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    """Yield the boxes of a part of the file: the name, the start and the end of the content of each."""
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
    """Return whether an MP4 or MOV file lacks its index, because it was cut off or is still being written."""
    try:
        with open_description(path) as file:
            end = file.seek(0, 2)
            description = Description(file)
            has_boxes = description.read(4, 4) in FIRST
            return has_boxes and all(name != b"moov" for name, _, _ in boxes(description, 0, end))
    except (OSError, struct.error):
        return False


_SUBFILE, _REDUCED = 254, 1  # the tag of TIFF for the kind of a page, and the bit for smaller copies


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


_EBML = b"\x1a\x45\xdf\xa3"
_SAMPLE_ENTRY = 78  # bytes of a visual sample entry before its boxes
_SEGMENT, _TRACKS, _TRACK, _VIDEO = 0x18538067, 0x1654AE6B, 0xAE, 0xE0
_BOTTOM, _TOP, _LEFT, _RIGHT = 0x54AA, 0x54BB, 0x54CC, 0x54DD
_NOTE = ", as its container says"


@dataclass(frozen=True)
class Track:
    """A video track of a container, by its `number` in MP4 and MOV, and by its `index` among the video tracks."""

    number: int | None = None
    index: int = 0


def stated_crop(path: str, width: int, height: int, track: Track = Track()) -> Crop | None:
    """Return the visible rectangle of a video track of that size.

    Return None if all of the picture is visible, or if the rectangle is not a whole number of samples within the picture.
    """
    try:
        with open_description(path) as file:
            end = file.seek(0, 2)
            file.seek(0)
            find = _of_matroska if file.read(4) == _EBML else _of_iso
            crop = find(Description(file), end, width, height, track)
    except (OSError, struct.error, ZeroDivisionError):
        return None
    if crop is None or (crop.width, crop.height) == (width, height):
        return None
    inside = min(crop.left, crop.top) >= 0 and crop.left + crop.width <= width and crop.top + crop.height <= height
    return crop if inside and min(crop.width, crop.height) > 0 else None


# -- MP4, MOV ---------------------------------------------------------------------------------------------------------


def _of_iso(file: Description, end: int, width: int, height: int, track: Track) -> Crop | None:
    for name, *moov in boxes(file, 0, end):
        if name == b"moov":
            tracks = [span for kind, *span in boxes(file, *moov) if kind == b"trak" and _is_video(file, span)]
            if track.number is None:
                tracks = tracks[track.index :]
            else:
                tracks = [span for span in tracks if _track_number(file, span) == track.number]
            return next((_of_track(file, span, width, height) for span in tracks), None)
    return None


def _track_number(file: Description, track: list[int]) -> int | None:
    header = _within(file, track, b"tkhd")
    if header is None:
        return None
    long_times = file.read(header[0], 1)[0] == 1
    return int.from_bytes(file.read(header[0] + (20 if long_times else 12), 4))


def _is_video(file: Description, track: list[int]) -> bool:
    handler = _within(file, track, b"mdia", b"hdlr")
    return handler is not None and file.read(handler[0] + 8, 4) == b"vide"


def _of_track(file: Description, track: list[int], width: int, height: int) -> Crop | None:
    table = _within(file, track, b"mdia", b"minf", b"stbl", b"stsd")
    entry = None if table is None else next(boxes(file, table[0] + 8, table[1]), None)
    clap = None if entry is None else _within(file, [entry[1] + _SAMPLE_ENTRY, entry[2]], b"clap")
    if clap is None:
        return None
    numbers = struct.unpack(">IIIIiIiI", file.read(clap[0], 32))
    shown_width, shown_height, right, down = (Fraction(*numbers[first : first + 2]) for first in (0, 2, 4, 6))
    edges = shown_width, shown_height, (width - shown_width) / 2 + right, (height - shown_height) / 2 + down
    if any(edge.denominator != 1 for edge in edges):
        return None
    across, rows, left, top = (int(edge) for edge in edges)
    return Crop(across, rows, left, top, _NOTE, from_clip=True)


def _within(file: Description, span: list[int], *names: bytes) -> list[int] | None:
    """Return start and end of the content of the first box with this path of names; None if there is none."""
    for name in names:
        found = next((inner for kind, *inner in boxes(file, *span) if kind == name), None)
        if found is None:
            return None
        span = found
    return span


# -- Matroska, WebM ---------------------------------------------------------------------------------------------------


def _of_matroska(file: Description, end: int, width: int, height: int, track: Track) -> Crop | None:
    for segment, *content in _elements(file, 0, end):
        if segment != _SEGMENT:
            continue
        for element, *tracks in _elements(file, *content):
            if element == _TRACKS:
                entries = [span for kind, *span in _elements(file, *tracks) if kind == _TRACK]
                videos = [span for entry in entries for kind, *span in _elements(file, *entry) if kind == _VIDEO]
                return _of_video(file, videos[track.index], width, height) if track.index < len(videos) else None
    return None


def _of_video(file: Description, video: list[int], width: int, height: int) -> Crop:
    values = {name: int.from_bytes(file.read(start, stop - start)) for name, start, stop in _elements(file, *video)}
    left, top = values.get(_LEFT, 0), values.get(_TOP, 0)
    right, below = values.get(_RIGHT, 0), values.get(_BOTTOM, 0)
    return Crop(width - left - right, height - top - below, left, top, _NOTE, from_clip=True)


def _elements(file: Description, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield the elements of a part of the file: the kind, the start and the end of the content of each."""
    while end - start >= 2:
        kind, size_at, _ = _number(file, start, keep_marker=True)
        size, content, unknown = _number(file, size_at, keep_marker=False)
        stop = end if unknown else content + size
        if not content <= stop <= end:
            return
        yield kind, content, stop
        start = stop


def _number(file: Description, at: int, *, keep_marker: bool) -> tuple[int, int, bool]:
    """Return a variable-length number of RFC 8794, the offset of its end, and whether it means an unknown size."""
    first = file.read(at, 1)[0]
    length = 9 - first.bit_length()
    if length > 8:
        raise struct.error("no number begins with a zero byte")
    bits = int.from_bytes(file.read(at, length))
    value = bits & ((1 << 7 * length) - 1)
    return bits if keep_marker else value, at + length, value == (1 << 7 * length) - 1
