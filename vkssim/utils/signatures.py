"""Identify a video by its first bytes, for messages about videos that were given in place of other files."""

from __future__ import annotations

HEAD_BYTES = 512
"""The number of bytes from the start of a file that `video_form` needs."""

_STARTS = {
    b"\x1a\x45\xdf\xa3": "Matroska or WebM",
    b"YUV4MPEG2": "Y4M",
    b"FLV\x01": "FLV",
    b"OggS": "Ogg",
    b"\x30\x26\xb2\x75\x8e\x66\xcf\x11": "ASF or WMV",
    b"\x06\x0e\x2b\x34": "MXF",
    b"DKIF": "IVF",
    b"\x00\x00\x01\xba": "MPEG-PS",
    b"\x00\x00\x00\x01": "a bare H.264 or H.265 stream",
}
_BOXES = (b"ftyp", b"moov", b"mdat", b"wide")
_PACKET = 188  # bytes of a packet of MPEG-TS; each packet begins with the byte G


def video_form(head: bytes) -> str | None:
    """Return the form of the video that begins with these bytes; None if no known form does."""
    if head[4:8] in _BOXES:
        return "MP4 or MOV"
    if head[:4] == b"RIFF" and head[8:12] == b"AVI ":
        return "AVI"
    if len(head) > 2 * _PACKET and {head[place] for place in (0, _PACKET, 2 * _PACKET)} == {ord("G")} and b"\0" in head:
        return "MPEG-TS"
    return next((form for start, form in _STARTS.items() if head.startswith(start)), None)
