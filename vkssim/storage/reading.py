"""Read a file of scores or of clips' names as a whole, up to a limit."""

from __future__ import annotations

import os
import stat

from ..errors import InputError
from ..utils.limits import abbreviated
from . import urls
from .location import is_url, redact_url

_HEAD_BYTES = 512  # by which a video is known

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


def read_whole(path: str | os.PathLike[str], most: int) -> bytes:
    """Return the content of a file of scores or of clips' names, from a path, a URL or a pipe.

    Raises InputError if it cannot be read, has more than `most` bytes, or is a video.
    """
    name = redact_url(path)
    try:
        if is_url(name):
            size = urls.size(name)
            data = urls.read(name, 0, min(size, _HEAD_BYTES) if size > most else size)
        else:
            with open(path, "rb") as file:
                state = os.fstat(file.fileno())
                size = state.st_size if stat.S_ISREG(state.st_mode) else 0
                data = file.read(_HEAD_BYTES if size > most else most + 1)
    except OSError as error:
        raise InputError(f"{name} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise InputError(f"{abbreviated(os.fspath(path))} is not a possible file name: {error}") from None
    video = _video_form(data)
    if video is not None:
        raise InputError(
            f"{name} is a video ({video}); score it first: `vkssim score -r REFERENCE -d {name} -o SCORES.json` writes a"
            " report, `vkssim batch MANIFEST.csv -o RESULTS.csv` a table of all pairs of clips that MANIFEST.csv lists in its"
            " columns reference and distorted"
        )
    if max(size, len(data)) > most:
        raise InputError(f"{name} has {max(size, len(data))} bytes or more; the limit for such a file is {most}")
    return data


def _video_form(head: bytes) -> str | None:
    """Return the form of the video that begins with these bytes; None if no known form does."""
    if head[4:8] in _BOXES:
        return "MP4 or MOV"
    if head[:4] == b"RIFF" and head[8:12] == b"AVI ":
        return "AVI"
    if len(head) > 2 * _PACKET and {head[start] for start in (0, _PACKET, 2 * _PACKET)} == {ord("G")} and b"\0" in head:
        return "MPEG-TS"
    return next((form for start, form in _STARTS.items() if head.startswith(start)), None)
