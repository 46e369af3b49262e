"""The file format of the pipeline cache: the driver's data after a header of our own, which detects damaged files.

Drivers trust the data after Vulkan's own header, and may crash if it is damaged. So they only get data that was written
completely.
"""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path

from . import private

MOST_BYTES = 1 << 26
"""The largest size of a cache file; typical files have some 100 kB."""

_MAGIC = b"vkssim pipelines"
_FORM = 1
_HEADER = struct.Struct("<16sIQ32s")  # magic, form, length of the data, its SHA-256


def packed(data: bytes) -> bytes:
    """Return the content of a file for the driver's data."""
    return _HEADER.pack(_MAGIC, _FORM, len(data), hashlib.sha256(data).digest()) + data


def unpacked(content: bytes) -> bytes:
    """Return the driver's data from the content of a file; empty if the content is not exactly the output of `packed`."""
    data = content[_HEADER.size :]
    return data if content == packed(data) else b""


def read(path: Path) -> bytes:
    """Return the driver's data from a file.

    The data is empty if others may have written the file, if it is damaged, or if it has more than MOST_BYTES.
    """
    return unpacked(private.load(path, MOST_BYTES))
